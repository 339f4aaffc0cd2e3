"""Journal whose entries are written together."""

from __future__ import annotations

from collections.abc import Iterator

from secagg.journal import Journal
from secagg.protocol import RoundParams
from secagg.server import Entry


class GroupedJournal:
    """Log of a `Server` that keeps entries in memory until `flush`, which precedes any answer.

    Parameters
    ----------
    journal : Journal
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._first, self._entries = 0, list[Entry]()

    @property
    def params(self) -> RoundParams:
        """The parameters of the round."""
        return self._journal.params

    def entries(self) -> Iterator[Entry]:
        """Yield the entries that are on the disk."""
        return self._journal.entries()

    def append(self, number: int, entry: Entry) -> None:
        """Take an entry as number `number`; it is on the disk after `flush`."""
        if not self._entries:
            self._first = number
        self._entries.append(entry)

    def flush(self) -> None:
        """Write the entries; they are on the disk when the call returns, all or none.

        JournalError is raised if they cannot be written. The server has then to be resumed.
        """
        if self._entries:
            self._journal.extend(self._first, self._entries)
            self._entries.clear()
