"""Journal of a helper: private keys, and every list of clients that the helper ever reserved.

One key, one journal: key and journal are created together, in one file of mode 600. All
sessions of the key are in the journal. **Never copy or restore the file.** A helper with an
older copy opens a second list of the same clients, and the difference of two sums can be a
single vector.

The lists are chained rows (`secagg.journal.chain`), so damage to the file is detected. There is
no defence against a deliberate change, which takes the same access as reading the keys.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from secagg._secrets import Confined, without_frames
from secagg.encoding import Entropy
from secagg.encoding.encoding import take
from secagg.errors import JournalError
from secagg.journal import database
from secagg.journal.chain import Chain
from secagg.journal.database import JournalFile
from secagg.journal.lock import FileLock, errors_of, spoilt
from secagg.oneshot import suites
from secagg.oneshot.messages import violation
from secagg.oneshot.suites import BoxKey
from secagg.protocol import Identity
from secagg.protocol.suites import SuiteName, as_suite

_CHAIN = Chain(
    "lists",
    "list",
    ("params", "batch", "digest", "ids"),
    head="suite TEXT, box BLOB, identity BLOB, ",
)
_NEXT_OF = (
    "SELECT number, batch, digest, ids FROM lists WHERE number >= ? AND params = ? "
    "ORDER BY number LIMIT 1"
)
_FIRST = hashlib.sha256(b"secagg/1 one-shot journal").digest()


class HelperJournal(Confined, JournalFile):
    """Keys and journal of a helper in a file, made with `create` and reopened with `open`.

    Close the journal at the end, or use the journal as a context manager. Delete the file when
    the application has a new list of helpers: recorded boxes then stay shut.

    Attributes
    ----------
    path : Path
        Absolute path of the file.
    public : (bytes, bytes)
        Public HPKE key and Ed25519 key, for ``OneShotParams(helpers=…)``.
    identity : Identity
        Signing key.
    box_key : BoxKey
        Key that opens boxes.
    """

    _remedy = "close it here and open its file in the process that needs it"

    def __init__(self, path: Path, lock: FileLock, identity: Identity, box_key: BoxKey) -> None:
        super().__init__(path, lock)
        self.identity = identity
        self.box_key = box_key
        self.public = (box_key.public, identity.public)

    @classmethod
    @without_frames
    def create(
        cls,
        path: str | os.PathLike[str],
        suite: SuiteName = "hybrid",
        *,
        entropy: Entropy = os.urandom,
    ) -> Self:
        """Draw new keys and create a journal for them in a new file at `path`.

        Parameters
        ----------
        path : str or path
        suite : "hybrid" or "x25519"
            ``OneShotParams.suite`` of the sessions.
        entropy : callable
            Source of secret random bytes.

        Raises
        ------
        ParameterError
            An argument is invalid.
        JournalError
            The file exists already, or cannot be written.
        MissingExtra
            The installed cryptography lacks the suite.
        """
        where = database.absolute(path)
        as_suite(suite)
        secrets = take(entropy, suites.SECRET_BYTES[suite]), take(entropy, 32)
        # raises for a missing suite, before there is a file with keys that nobody can use
        BoxKey(suite, secrets[0])

        head = suite, *secrets
        with errors_of(where):
            database.create(where, _CHAIN.schema, lambda new: _CHAIN.begin(new, _FIRST, head))
        return cls.open(where)

    @classmethod
    @without_frames
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a helper's journal, and validate all lists.

        Raises
        ------
        ParameterError
            The path is of the wrong type.
        JournalError
            The file is missing, is open already in any process, or was truncated or altered.
            Or the file was moved after a crash, without the -wal file, and used there.
        MissingExtra
            The installed cryptography lacks the suite of the keys.
        """
        where = database.absolute(path)
        with database.locked(where, "HelperJournal") as (lock, connection):
            # first: the next statement would already apply a log of an older state
            _check_log(where.resolve())
            database.claim(connection, where, _CHAIN.schema)
            for _ in _CHAIN.rows(lock.use, _FIRST):
                pass
            keys = _keys(connection)
        return cls(where, lock, *keys)

    def reserve(
        self, params: bytes, batch: int, digest: bytes, ids: NDArray[np.uint64]
    ) -> None:
        """Reserve a list, durably: the list is on the disk when the call returns.

        Parameters
        ----------
        params : bytes
            Digest of the parameters.
        batch : int
            Number of the batch, 0 ≤ batch < 2^64.
        digest : bytes
            D of the list.
        ids : uint64 array, strictly ascending

        Raises
        ------
        RemoteProtocolError
            "batch": another list has this number. "spent": another list has one of these ids.
        JournalError
            The journal is closed, this process is a fork, or the file was deleted or moved;
            nothing was written. Or the disk is full or failing: the journal is then closed, and
            the request can be repeated after `open`.
        """
        number = batch.to_bytes(8, "little")
        with errors_of(self.path), self._lock.use() as connection:
            # before the lists: if a signal's handler reserves meanwhile, INSERT fails
            end = _CHAIN.end(connection)
            for stored, other, spent in _lists(connection, params):
                # a repeated request, also after a crash: the same list is reserved once
                if stored == number and other == digest:
                    return
                if stored == number:
                    why = f"batch {batch} is reserved for another list; take another number"
                    raise violation("reserve", "batch", why)
                common = ids[np.isin(ids, spent, assume_unique=True)]
                if common.size:
                    why = "it is in a list that was reserved before, and spent; drop it"
                    raise violation("reserve", "spent", why, sender=int(common[0]))
            row = (params, number, digest, ids.astype("<u8", copy=False).tobytes())
            with database.transaction(connection, self.close):
                _CHAIN.append(connection, end, [row])


def _check_log(path: Path) -> None:
    """Raise unless the write-ahead log beside the file, if there is one, continues the file.

    A crash can leave a log, and SQLite applies the log to any later file with the same name. If
    the file got further lists under another name meanwhile, the log would take these lists
    back.
    """
    log = Path(f"{path}-wal")
    if not log.exists() or log.stat().st_size == 0:
        return
    with closing(_reader(path, "immutable=1")) as alone:
        try:
            count, last = _CHAIN.end(alone)
        except (sqlite3.Error, JournalError):
            return  # torn by a crash while the log was moved into the file
    with closing(_reader(path, "mode=ro")) as both:
        database.check_schema(both, _CHAIN.schema)
        query = "SELECT chain FROM lists WHERE number = ?"
        if count and both.execute(query, (count - 1,)).fetchone() != (last,):
            raise spoilt("the -wal file beside it is of an older state")


def _reader(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection that leaves file and log as they are; "immutable" ignores the log."""
    return sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)


def _lists(
    connection: sqlite3.Connection, params: bytes
) -> Iterator[tuple[bytes, bytes, NDArray[np.uint64]]]:
    """Yield batch, D and ids of the lists of a session."""
    least = 0
    # no statement stays open between two rows: an open statement would block the checkpoint
    while rows := connection.execute(_NEXT_OF, (least, params)).fetchall():
        number, batch, digest, ids = rows[0]
        least = number + 1
        yield batch, digest, np.frombuffer(ids, "<u8").astype(np.uint64, copy=False)


def _keys(connection: sqlite3.Connection) -> tuple[Identity, BoxKey]:
    """Return the keys of a file with validated rows."""
    suite, box, identity = connection.execute(
        "SELECT suite, box, identity FROM head"
    ).fetchone()
    found = [len(key) if isinstance(key, bytes) else 0 for key in (box, identity)]
    if found != [suites.SECRET_BYTES.get(suite), 32]:
        raise spoilt("its keys were altered")
    return Identity(identity), BoxKey(suite, box)
