"""One file for one process: a journal's lock, and the process that alone may write to it.

The lock is ``flock`` and not SQLite's: SQLite's are POSIX locks, and those a process loses as
soon as it opens and closes the file once more, be it to copy it. An ``flock`` belongs to the
one descriptor. It is for a local disk: over NFS it is a POSIX lock again.

SQLite's connection must not be used, nor even closed, on both sides of a fork: either side
would empty or unlink the write-ahead log under the other. So a child of ``os.fork`` lets go of
the lock, which its parent keeps, and keeps the connection without ever closing it. A child that
was forked behind Python's back, by a library, still refuses to write, but shares the lock until
it ends: when it outlives its parent, the journal is open already until then.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from secagg.errors import JournalError

__all__ = ["HeldFile"]


class HeldFile:
    """A file that no other ``HeldFile`` has, in this process or another, until it is closed.

    Parameters
    ----------
    path : Path
        Absolute; of a SQLite database.

    Raises
    ------
    BlockingIOError
        Another one has it.
    OSError, sqlite3.Error
        It cannot be opened for writing.

    Attributes
    ----------
    connection : sqlite3.Connection or None
        None when it is closed.
    busy : lock
        To be held around every use of the connection: closing it in one thread while another
        is inside SQLite would bring the process down.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection: sqlite3.Connection | None = None
        self.busy = threading.RLock()
        self._process = os.getpid()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        _held.add(self)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.connection = sqlite3.connect(
                f"{path.as_uri()}?mode=rw",
                uri=True,
                timeout=0,
                isolation_level=None,  # transactions are begun and ended by name
                check_same_thread=False,  # the server lets one thread in at a time
            )
        except BaseException:
            self.close()
            raise

    def check(self) -> sqlite3.Connection:
        """Return the connection, to be used now.

        Raises
        ------
        JournalError
            This process was forked from the one that opened it, or it is closed.
        """
        if os.getpid() != self._process:
            raise JournalError(
                "it was opened by the process that this one was forked from; open it in the "
                "process that uses it, once no other one does"
            )
        if self.connection is None:
            raise JournalError("it is closed; open it again with Journal.open")
        return self.connection

    def check_name(self) -> None:
        """See that the name still stands for this file: else nobody will find what is written.

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
        """Release the file; in a forked process nothing happens to it."""
        if os.getpid() != self._process:
            self._let_go()
            return
        with self.busy:
            connection, self.connection = self.connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
            if self._descriptor >= 0:  # also for a child that was forked just now and has it
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            # last: with it go SQLite's own locks
            self._close_descriptor()

    def __del__(self) -> None:
        """Release a file that nobody closed."""
        if hasattr(self, "_descriptor"):
            self.close()

    def _let_go(self) -> None:
        """Forget the connection in a forked process, in such a way that it stays open."""
        connection, self.connection = self.connection, None
        if connection is not None:
            # its last reference would close it: one that nobody holds is never given back
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._close_descriptor()

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)  # not LOCK_UN, which would take the lock from a parent too


_held: WeakSet[HeldFile] = WeakSet()


def _after_fork() -> None:
    for held in list(_held):
        held._let_go()


os.register_at_fork(after_in_child=_after_fork)
