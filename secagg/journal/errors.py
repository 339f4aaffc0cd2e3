"""Errors of a journal: a JournalError with a remedy for every failure of SQLite or the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from secagg.errors import JournalError

__all__ = ["errors_of", "spoilt"]

_BUSY = "it is open already, in this process or another: close it there first"
_SPOILT = "; its round cannot be continued: begin a new one with a new journal"
_REMEDIES = {
    sqlite3.SQLITE_NOTADB: _SPOILT,
    sqlite3.SQLITE_CORRUPT: _SPOILT,
    sqlite3.SQLITE_FULL: "; make room, open it again and use Server.resume",
    sqlite3.SQLITE_IOERR: "; check the disk, open it again and use Server.resume",
}


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn any error of SQLite or the file in the block into a JournalError with its path."""
    try:
        yield
    except FileExistsError:
        why = (
            "it or its -wal file exists: use Journal.open, delete both, or choose another name"
        )
    except BlockingIOError:
        why = _BUSY
    except (sqlite3.Error, UnicodeDecodeError) as error:  # unchained: it may quote the file
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
