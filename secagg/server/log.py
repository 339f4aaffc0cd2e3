"""Log of a server, written before each answer so that a killed server can be resumed.

A server's state is a fold over the entries: its accepted messages and closed phases.
``secagg.journal`` stores them in a file. Each entry has a SHA-256 over the previous hash and
its own content. So the last hash identifies all entries in their order.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from secagg._check import check_kind
from secagg.protocol import RoundParams

__all__ = ["Entry", "Log", "check_log", "first_link", "link"]

Entry = tuple[int | None, bytes]
"""A client's id and its accepted message. With None the server's own: first its seed for the
graph, after that an empty one for each close of a phase."""


@runtime_checkable
class Log(Protocol):
    """Entries of one round, in their order."""

    @property
    def params(self) -> RoundParams:
        """The parameters of the round."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Read everything from the beginning, one entry at a time.

        Raises
        ------
        JournalError
            The stored entries are not those that were written.
        """
        ...

    def append(self, number: int, entry: Entry) -> None:
        """Write entry `number`, counted from 0 by the only writer; it is durable on return.

        Raises
        ------
        JournalError
            It could not be written, or there are more entries than the server knows.
        """
        ...


def check_log(journal: Log) -> None:
    """Raise `ParameterError` if `journal` is no journal, a path for example."""
    wanted = "a secagg.Journal (Journal.create or Journal.open makes one)"
    check_kind("journal", journal, Log, wanted)


def first_link(params: RoundParams) -> bytes:
    """Return the first value of a round's chain of entries, 32 bytes."""
    return hashlib.sha256(b"secagg/1 journal" + params.digest).digest()


def link(chain: bytes, entry: Entry) -> bytes:
    """Return the value of an entry, given that of the one before it, 32 bytes."""
    client_id, data = entry
    sender = struct.pack("<?Q", client_id is not None, client_id or 0)
    digest = hashlib.sha256(chain + sender)
    digest.update(data)
    return digest.digest()
