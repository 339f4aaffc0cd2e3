"""Byte strings of equal size by client id, for a million clients.

A dict with an object for each id and each value takes three to five times the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]
Rows = NDArray[np.uint8]

_RECENT = 1 << 13
_SHARE = 8  # one of so many records is in the dict, at most


class Records(MutableMapping[int, bytes]):
    """Mapping of ids in [0, 2^64) to `size` bytes each, in ascending order of ids.

    New records are in a dict, and most others in two arrays. A dict that has grown by a
    fraction is added to the arrays. The mapping is not safe for threads.
    """

    def __init__(self, size: int) -> None:
        self._ids: Ids = np.empty(0, np.uint64)
        self._rows: Rows = np.empty((0, size), np.uint8)
        self._recent: dict[int, bytes] = {}  # none of them is in the arrays

    @classmethod
    def of(cls, ids: Ids, rows: Rows) -> Self:
        """Return records in the memory of these arrays, with strictly ascending ids."""
        new = cls(rows.shape[1])
        new._ids, new._rows = ids, rows
        return new

    def __len__(self) -> int:
        return self._ids.size + len(self._recent)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())

    def __getitem__(self, client_id: int) -> bytes:
        found = self._recent.get(client_id)
        return self._rows[self._place(client_id)].tobytes() if found is None else found

    def __setitem__(self, client_id: int, record: bytes) -> None:
        try:
            self._rows[self._place(client_id)] = np.frombuffer(record, np.uint8)
        except KeyError:
            self._recent[client_id] = record
            self._limit()

    def __delitem__(self, client_id: int) -> None:
        if self._recent.pop(client_id, None) is None:
            at = self._place(client_id)
            self._ids, self._rows = np.delete(self._ids, at), np.delete(self._rows, at, axis=0)

    @property
    def ids(self) -> Ids:
        """All ids, ascending. Do not write into the array."""
        self._sort()
        return self._ids

    @property
    def rows(self) -> Rows:
        """All records by ascending ids, a row each. Do not write into the array."""
        self._sort()
        return self._rows

    def rows_of(self, ids: Ids) -> Rows:
        """Return a copy of the records of some ids, a row each.

        Raises
        ------
        KeyError
            An id has no record; the error has the first such id.
        """
        self._sort()
        known = self._known(ids)
        if not known.all():
            raise KeyError(int(ids[~known][0]))
        return self._rows[self._ids.searchsorted(ids)]

    def common(self, other: Records) -> int | None:
        """Return the smallest id with a record in both mappings, or None."""
        fewer, more = sorted((self, other), key=len)
        ids = fewer.ids
        known = more._known(ids)
        known |= np.fromiter((u in more._recent for u in ids.tolist()), bool, ids.size)
        return int(ids[known][0]) if known.any() else None

    def merge(self, other: Records) -> None:
        """Add all records of another mapping, which shares no id with this mapping."""
        if len(other) > _RECENT:
            self._insert(other.ids, other.rows)
        else:
            self._recent |= zip(other.ids.tolist(), map(bytes, other.rows), strict=True)
            self._limit()

    def discard(self, ids: Iterable[int]) -> None:
        """Remove the records of some ids, as far as records exist."""
        rest = [u for u in ids if self._recent.pop(u, None) is None]
        if rest:
            kept = ~np.isin(self._ids, np.array(rest, np.uint64))
            self._ids, self._rows = self._ids[kept], self._rows[kept]

    def _place(self, client_id: int) -> int:
        """Return the place of an id in the arrays; raise KeyError for any other id."""
        try:
            at = int(self._ids.searchsorted(np.uint64(client_id)))
        except (OverflowError, TypeError, ValueError):
            # a mapping has no item for a key of another range or type
            raise KeyError(client_id) from None
        if at == self._ids.size or self._ids[at] != client_id:
            raise KeyError(client_id)
        return at

    def _known(self, ids: Ids) -> NDArray[np.bool_]:
        """Return True for each id that is in the arrays."""
        if not self._ids.size:
            return np.zeros(ids.size, np.bool_)
        places = self._ids.searchsorted(ids)
        # an id beyond the last gets the last place, where another id stands
        found: NDArray[np.bool_] = self._ids.take(places, mode="clip") == ids
        return found

    def _limit(self) -> None:
        if len(self._recent) > max(_RECENT, len(self) // _SHARE):
            self._sort()

    def _sort(self) -> None:
        """Move the dict into the arrays."""
        if self._recent:
            ids = np.fromiter(self._recent, np.uint64, len(self._recent))
            joined = np.frombuffer(b"".join(self._recent.values()), np.uint8)
            order = ids.argsort()
            self._insert(ids[order], joined.reshape(ids.size, -1)[order])
            self._recent = {}

    def _insert(self, ids: Ids, rows: Rows) -> None:
        """Insert new records, by ascending ids, into the arrays."""
        places = self._ids.searchsorted(ids)
        merged = np.insert(self._rows, places, rows, axis=0)
        self._ids, self._rows = np.insert(self._ids, places, ids), merged
