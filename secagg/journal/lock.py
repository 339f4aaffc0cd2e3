"""File lock of a journal: one file, one holder.

The lock is ``flock``, not SQLite's. SQLite takes POSIX locks, which a process loses when it
closes any descriptor of the file, for example after copying it. An ``flock`` belongs to one
descriptor. It needs a local disk: over NFS it is a POSIX lock again.

A child of ``os.fork`` inherits the descriptor. It can neither write nor unlock, but the file
stays locked until the parent closes it or both have ended.
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

from secagg.errors import JournalError

__all__ = ["FileLock"]


class FileLock:
    """Exclusive lock on a file, from construction to ``close``.

    Parameters
    ----------
    path : Path
        Absolute.

    Raises
    ------
    BlockingIOError
        Another lock holds the file, in this process or another.
    OSError
        The file cannot be opened for writing.

    Attributes
    ----------
    busy : lock
        Held around every use of the file, so that ``close`` waits for other threads.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.busy = threading.RLock()
        self._process = os.getpid()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            self._close_descriptor()
            raise

    def check(self) -> None:
        """Validate that this process may use the file now.

        Raises
        ------
        JournalError
            This process was forked from the holder, or the lock is closed.
        """
        if os.getpid() != self._process:
            raise JournalError(
                "it was opened by the process that this one was forked from; open it in the "
                "process that uses it, once no other one does"
            )
        if self._descriptor < 0:
            raise JournalError("it is closed; open it again with Journal.open")

    def check_name(self) -> None:
        """Validate that the path still names the locked file.

        Raises
        ------
        JournalError
            The file was deleted, moved or replaced.
        """
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), os.fstat(self._descriptor)):
                return
        raise JournalError(
            "the file was deleted, moved or replaced while it was open, and nothing more is "
            "written to it: put the same file back and use Server.resume, or begin a new round"
        )

    def close(self) -> None:
        """Release the file; a forked process only closes its own descriptor."""
        if os.getpid() != self._process:  # without `busy`: no thread is left to release it
            self._close_descriptor()
            return
        with self.busy:
            if self._descriptor >= 0:  # a child forked a moment ago has the descriptor too
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._close_descriptor()

    def __del__(self) -> None:
        """Release a file that nobody closed."""
        if hasattr(self, "_descriptor"):
            self.close()

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
