"""Input of an aggregation, the users' tables, and the result of an aggregation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64] | NDArray[np.int64]
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Rows:
    """Sparse form of a user's (m, k) table, which is zero outside a few rows.

    A user sends the full table, `dense()`. Sums in the clear add the sparse form, which is
    faster and gives the same integers. A sum in the clear may add the rows of many users in a
    single sparse form.

    Parameters
    ----------
    indices : shape (n,), numbers of the given rows, 0 ≤ index < n_rows, distinct for one user
    values : shape (n, k), float64 to be summed, or int64 zeros and ones to be counted
    n_rows : int, m, the number of rows of the full table
    """

    indices: NDArray[np.int32]
    values: Table
    n_rows: int

    def dense(self) -> Table:
        """Return the full table as an array of shape (m · k,), row by row."""
        table = np.zeros_like(self.values, shape=(self.n_rows, self.values.shape[1]))
        table[self.indices] = self.values
        return cast(Table, table.reshape(-1))


class _Lazy(Mapping[int, Item]):
    """Mapping that computes an item at each look-up."""

    def __init__(self, users: Iterable[int], compute: Callable[[int], Item]) -> None:
        self._users = dict.fromkeys(sorted(users))
        self._compute = compute

    def __getitem__(self, user: int) -> Item:
        if user not in self._users:
            raise KeyError(user)
        return self._compute(user)

    def __iter__(self) -> Iterator[int]:
        return iter(self._users)

    def __len__(self) -> int:
        return len(self._users)


class Vectors(_Lazy[Rows]):
    """Mapping of user ids to tables. A look-up computes the table, to keep one in memory.

    Parameters
    ----------
    users : ids, whole numbers of at least 0
    compute : function from an id to the user's table
    shape : (m, k), the shape of every table
    compute_blocks
        Function of ascending ids that yields the rows of all these users in a few pieces. The
        values are the same as from `compute`. If None, `compute` is called for each user.
    """

    def __init__(
        self,
        users: Iterable[int],
        compute: Callable[[int], Rows],
        shape: tuple[int, int],
        compute_blocks: Callable[[Sequence[int]], Iterator[Rows]] | None = None,
    ) -> None:
        super().__init__(users, compute)
        self.shape, self._compute_blocks = shape, compute_blocks

    def blocks(self, users: Sequence[int]) -> Iterator[Rows]:
        """Return the rows of some users in a few pieces; a piece has one or several users."""
        if self._compute_blocks is not None:
            return self._compute_blocks(users)
        return (self[user] for user in users)

    def dense(self) -> Mapping[int, Table]:
        """Return the same mapping with every table in full, as the users send the table."""
        return _Lazy(self, lambda user: self[user].dense())


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Result of an aggregation.

    Parameters
    ----------
    sum : float64, shape (m · k,), sum over the survivors
    integers : int64, shape (m · k,), exact sum of the encoded integers
    survivors : ids of the users with a vector in the sum, ascending (U3 of the protocol)
    clipped : number of elements, over all users, that exceeded the encoding's clip
    client_seconds, server_seconds
        Time of all clients together, their local steps included, and of the server.
    key_holder_seconds : time of the key holder, trustees or helpers, 0 if there are none
    bytes_up, bytes_down : mean bytes that a user sent and received, without the model itself
    """

    sum: NDArray[np.float64]
    integers: NDArray[np.int64]
    survivors: tuple[int, ...]
    clipped: int
    client_seconds: float = 0.0
    server_seconds: float = 0.0
    bytes_up: float = 0.0
    bytes_down: float = 0.0
    key_holder_seconds: float = 0.0

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal of the integers and the survivors, as little-endian int64."""
        numbers = np.concatenate((self.integers, np.array(self.survivors, dtype=np.int64)))
        return hashlib.sha256(numbers.astype("<i8").tobytes()).hexdigest()
