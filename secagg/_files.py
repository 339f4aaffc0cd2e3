"""Files that survive a crash: locked, and replaced as a whole."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows: all but journals, vaults and nodes works
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against all other processes and threads."""
    # the system releases this lock when the process ends, so a crash leaves no lock behind
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def create_file(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a new file; all bytes are on the disk when the call returns.

    FileExistsError is raised for a file or a link with this name. After another OSError, which
    has the name, there is no file.
    """
    # O_EXCL: nobody else can put a file or a link there before
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600 if private else 0o666)
    try:
        try:
            rest = memoryview(data)
            while rest:  # a full disk or a limit of sizes makes a write short
                count = os.write(descriptor, rest)
                if count == 0:
                    raise OSError(errno.EIO, "the file takes no bytes")
                rest = rest[count:]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException as error:
        path.unlink(missing_ok=True)  # half a key would be taken for a whole key
        if isinstance(error, OSError) and error.errno:  # a write does not know the name
            error.filename = str(path)
        raise


def replace_file(path: Path, content: bytes | str, *, private: bool = False) -> None:
    """Replace a file; the new content is on the disk at the return.

    Readers see the old content or all of the new content. If writing fails, OSError is raised
    and the old file stays. A crash can leave a file in the same folder, with a name that begins
    with the file's name and ends in ``.part``.

    Parameters
    ----------
    path : Path
    content : bytes or str
        A str is written in UTF-8.
    private : bool
        True: the new file has mode 600.
    """
    data = content.encode() if isinstance(content, str) else content
    # a new name, so never through a link; not longer than names may be
    part = path.with_name(f"{path.name[:200]}.{secrets.token_hex(8)}.part")
    try:
        create_file(part, data, private=private)
        os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno:
            error.filename = str(path)
        raise
    # else a power cut could bring back the old file under this name
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def private_folder(path: Path) -> None:
    """Make a folder of mode 700 with its parents, if missing; the names are on the disk."""
    missing = {one for one in path.parents if not one.exists()}
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in {path} | missing:  # also a folder of a process that died before this line
        sync_folder(one.parent)
