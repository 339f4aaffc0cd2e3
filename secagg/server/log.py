"""Interface of a server's log, written before each answer so that a killed server can resume.

The entries of a log are the accepted messages and the closes of phases. Replayed in order, they
give the server's state. ``secagg.journal`` stores them in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from secagg._check import check_kind
from secagg.errors import JournalError, ParameterError
from secagg.graph import SEED_BYTES
from secagg.protocol import RoundParams
from secagg.protocol.ledger import Page

Entry = tuple[int | None, bytes]
"""A client's id and its accepted message. Entries of the server have None in place of an id.
The first entry has the server's seed for the graph, and the kind of the server's ledger, if
any. Each later entry, empty, marks the close of a phase."""

_LEDGER = b"ledger "


@runtime_checkable
class Log(Protocol):
    """Log of a round; another implementation can store the entries elsewhere than in a file."""

    @property
    def params(self) -> RoundParams:
        """The parameters of the round."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Yield all entries from the first on.

        Raises
        ------
        JournalError
            The stored entries were altered or cannot be read.
        """
        ...

    def append(self, number: int, entry: Entry) -> None:
        """Write `entry` as entry `number`, counted from 0; on return the entry must be durable.

        Raises
        ------
        JournalError
            The entry cannot be written, or the log does not have exactly `number` entries.
        """
        ...


def check_log(journal: Log, params: RoundParams | None = None) -> None:
    """Raise `ParameterError` if `journal` does not implement `Log`; a path, for example.

    Raise the same error if the journal's parameters differ from `params`.
    """
    wanted = "a secagg.Journal (Journal.create or Journal.open makes one)"
    check_kind("journal", journal, Log, wanted)
    if params is not None and journal.params.digest != params.digest:
        raise ParameterError(
            "the journal's parameters differ from the server's; make a journal with the same "
            "ones"
        )


def first_entry(seed: bytes, page: Page | None) -> Entry:
    """Return the first entry of a log: the seed of the graph, and the ledger's kind if any."""
    return None, seed + (b"" if page is None else _LEDGER + page.kind.encode())


def seed_of(first: Entry, page: Page | None) -> bytes:
    """Return the seed of a log's first entry.

    Raise JournalError if the entry has no seed. Raise ParameterError if only the server that
    wrote the entry has a ledger, or only this server, or if the kinds differ.
    """
    sender, data = first
    seed, rest = data[:SEED_BYTES], data[SEED_BYTES:]
    whole = len(seed) == SEED_BYTES and (not rest or rest.startswith(_LEDGER))
    if sender is not None or not whole:
        raise JournalError("the journal does not begin with a server's seed")
    if first != first_entry(seed, page):
        label = rest.removeprefix(_LEDGER).decode(errors="replace")
        had = f"a ledger and the kind {label!r}" if rest else "no ledger"
        raise ParameterError(f"the server of this journal had {had}; resume it with the same")
    return seed
