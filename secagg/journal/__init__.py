"""Log of a server in a file: acknowledged messages survive kill −9 and a power cut."""

from __future__ import annotations

from secagg.journal.journal import Journal

__all__ = ["Journal"]
