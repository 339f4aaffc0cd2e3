"""Errors of the files in this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from secagg.errors import VaultError


@contextmanager
def errors_of(path: Path, name: str = "") -> Iterator[None]:
    """Turn any OSError in the block into a VaultError with the path, after the `name`."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise VaultError(
            f"{name}{path}: {why}; it needs a folder on a local disk that this process may "
            "write to",
            check="file",
        ) from None
