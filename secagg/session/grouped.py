"""Log of a server whose entries are written together, before any answer."""

from __future__ import annotations

from secagg.journal import Journal
from secagg.server import Entry


class GroupedJournal:
    """Log of a `Server`, with the entries in memory until `flush`, which precedes any answer.

    Parameters
    ----------
    journal : Journal
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.params, self.entries, self.close = journal.params, journal.entries, journal.close
        self._first, self._entries = 0, list[Entry]()

    def append(self, number: int, entry: Entry) -> None:
        """Take an entry as number `number`; the entry is on the disk after `flush`."""
        if not self._entries:
            self._first = number
        self._entries.append(entry)

    def flush(self) -> None:
        """Write the entries: all entries are on the disk when the call returns, or none.

        JournalError is raised if the write fails. The server has then to be resumed.
        """
        if self._entries:
            self._journal.extend(self._first, self._entries)
            self._entries.clear()
