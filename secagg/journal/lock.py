"""Lock of a journal's file, for one process and SQLite connection at a time, and the errors.

The lock is taken with ``flock`` besides SQLite's own locks. These are POSIX locks, which a
process loses when the process closes any descriptor of the file, for example after a copy. An
``flock`` belongs to a single descriptor. On NFS an ``flock`` is a POSIX lock, so use a local
disk.

The connection is opened after the lock is taken, and closed before the lock is released. So a
write needs no further descriptor, and nobody opens the file while the write-ahead log is being
emptied.

A child of ``os.fork`` inherits lock and connection but can neither write nor unlock. The file
stays locked until the parent closes the file or both processes have ended.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from secagg._secrets import process
from secagg.errors import JournalError

try:
    import fcntl
except ModuleNotFoundError:  # Windows: all but journals works
    fcntl = None  # type: ignore[assignment]

_BUSY = "it is open already, in this process or another: close it there first"
_SPOILT = "; it cannot be continued: begin a new round or session with a new journal"
_REMEDIES = {
    sqlite3.SQLITE_NOTADB: _SPOILT,
    sqlite3.SQLITE_CORRUPT: _SPOILT,
    sqlite3.SQLITE_FULL: "; make room and open it again, a server's with Server.resume",
    sqlite3.SQLITE_IOERR: "; check the disk and open it again, a server's with Server.resume",
}


class FileLock:
    """Exclusive lock on a database at an absolute path, with the connection to the database.

    BlockingIOError is raised if the file is locked already, in this process or another. OSError
    or sqlite3.Error is raised if the file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._busy = threading.RLock()
        self._process = process()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            connection = sqlite3.connect(
                f"{path.as_uri()}?mode=rw",
                uri=True,
                timeout=0,
                isolation_level=None,  # transactions begin and end explicitly
                check_same_thread=False,  # `_busy` lets one thread in at a time
            )
            # A child that frees the connection, at the latest at exit, closes it. SQLite then
            # unlinks the parent's log. Modules are freed, too: no list in a module is enough.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
            self._connection = connection
        except BaseException:
            self.close()
            raise

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; other threads and `close` wait until the block ends.

        Raises
        ------
        JournalError
            This process is a fork of the process that locked the file, the lock is closed, or
            the file was deleted, moved or replaced.
        """
        # before `_busy`, which a thread of the parent may have locked when it forked
        if process() != self._process:
            raise JournalError(
                "it was opened in the process that forked this one; close it there, then "
                "open it in this process"
            )
        with self._busy:
            if self._connection is None:
                raise JournalError("it is closed; open it again")
            self._check_name()
            yield self._connection

    def close(self) -> None:
        """Close the connection and unlock the file; in a fork, close the descriptor only."""
        if process() != self._process:  # without `_busy`: no thread is left to release it
            self._close_descriptor()
            return
        with self._busy:
            connection = self._connection
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
                # after an interrupt before this line, close() can be called again
                self._connection = None
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(connection))
            if self._descriptor >= 0:  # a child forked a moment ago has the descriptor too
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._close_descriptor()

    def __del__(self) -> None:
        """Close the lock if the owner has not."""
        if hasattr(self, "_descriptor"):
            self.close()

    def _check_name(self) -> None:
        """Raise JournalError unless the path still names the locked file."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), os.fstat(self._descriptor)):
                return
        raise JournalError(
            "the file was deleted, moved or replaced while open: put the same file back and "
            "open it again, a server's with Server.resume, or begin with a new journal"
        )

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn any error of SQLite or the file in the block into a JournalError with the path."""
    try:
        if fcntl is None:
            raise JournalError("this system has no flock; keep it on Linux or macOS")
        yield
    except FileExistsError:
        why = "it or its -wal file exists: open it, delete both, or choose another name"
    except BlockingIOError:
        why = _BUSY
    except (sqlite3.Error, UnicodeDecodeError) as error:  # unchained: may quote the file
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        busy = code == sqlite3.SQLITE_BUSY
        why = _BUSY if busy else f"{error}{_REMEDIES.get(code, '')}"
    except OSError as error:
        why = error.strerror or str(error)  # without the name of a temporary file
    except JournalError as error:
        why = str(error)
    else:
        return
    raise JournalError(f"journal {path}: {why}")


def spoilt(why: str) -> JournalError:
    """Return the error for a file that was altered or truncated."""
    return JournalError(why + _SPOILT)
