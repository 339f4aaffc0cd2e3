"""Journal: a server's log in a file; a killed server can resume the round from the log."""

from __future__ import annotations

from secagg.journal.journal import Journal

__all__ = ["Journal"]
