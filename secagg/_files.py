"""Small files of a party that survive a crash: locked, and replaced as a whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Yield a descriptor of a folder, which no other process or thread has locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes, folder: int) -> None:
    """Replace a file of a locked folder; its new content is on the disk at the return.

    Parameters
    ----------
    path : Path
    content : bytes
    folder : int
        Descriptor of the file's folder, which `locked` yields.
    """
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)  # of a crash; or a link, whose target would be overwritten
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    os.fsync(folder)
