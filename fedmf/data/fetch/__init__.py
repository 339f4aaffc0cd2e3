"""Download, validation and unpacking of data sets: all files of a set, or none."""

from __future__ import annotations

from fedmf.data.fetch.fetch import State, check_content, check_files, fetch

__all__ = ["State", "check_content", "check_files", "fetch"]
