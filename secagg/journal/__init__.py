"""Journal: a server's log in a file, from which a killed server can resume its round."""

from __future__ import annotations

from secagg.journal.journal import Journal

__all__ = ["Journal"]
