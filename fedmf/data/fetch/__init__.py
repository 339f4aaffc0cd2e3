"""Download, checksums and unpacking of data sets, all of a set or nothing."""

from __future__ import annotations

from fedmf.data.fetch.fetch import State, check_content, check_files, fetch

__all__ = ["State", "check_content", "check_files", "fetch"]
