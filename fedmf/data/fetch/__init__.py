"""Download, validation and unpacking of data sets; after an error nothing is left behind."""

from __future__ import annotations

from fedmf.data.fetch.fetch import State, check_content, check_files, fetch

__all__ = ["State", "check_content", "check_files", "fetch"]
