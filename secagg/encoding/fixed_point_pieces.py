"""Vector of floats in the middle of the encoding, element by element or in slices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg.encoding.ring import Lanes
from secagg.errors import ParameterError

Floats = NDArray[np.float32] | NDArray[np.float64]

_SLICE = 1 << 15
"""Elements that are rounded stochastically together."""


class FixedPointPieces:
    """Vector of floats that is being encoded; see `secagg.encoding.pieces.Pieces`.

    Parameters
    ----------
    values : float64 or float32 array, shape (d,), contiguous
    how : (float, float, int, int)
        Clip, scale 2^f, weight and R.
    seed : bytes or None
        Seed of the random bits of stochastic rounding. None: rounding to nearest.
    refuses : bool
        True: elements beyond the clip are an error.
    """

    def __init__(
        self,
        values: Floats,
        how: tuple[float, float, int, int],
        seed: bytes | None,
        *,
        refuses: bool,
    ) -> None:
        self._values, self._how, self._seed, self._refuses = values, how, seed, refuses
        # number of clipped elements, and the place of a bad element, −1 if there is none
        self._found: list[tuple[int, int]] = []
        self.size: int = values.size

    def write(self, out: Lanes, rows: slice) -> None:
        """Overwrite `out` with the elements of `rows`, encoded."""
        for some, bits in _rounding_bits(rows, self._seed):
            part = out[some.start - rows.start : some.stop - rows.start]
            clipped, bad = _fast.encode(self._values[some], part, *self._how, bits)
            self._found.append((clipped, some.start + bad if bad >= 0 else -1))

    def clipped(self) -> int:
        """Return the number of clipped elements once all are written, or raise."""
        # the first place, or the error would depend on the order of the threads
        bad = min((place for _, place in self._found if place >= 0), default=-1)
        if bad >= 0:
            raise ParameterError(
                f"element {bad} of the vector is NaN or infinite; replace it, or the sum "
                "would be lost"
            )
        clipped = sum(count for count, _ in self._found)
        if self._refuses and clipped:
            raise ParameterError(
                f"{clipped} elements of {self.size} are beyond the clip "
                f"{self._how[0]}; scale the vector, raise the clip, or pass "
                "beyond_clip='clip' to have them clipped and counted"
            )
        return clipped


def _rounding_bits(
    rows: slice, seed: bytes | None
) -> Iterator[tuple[slice, NDArray[np.uint64] | None]]:
    """Yield blocks of elements, and random words for each; all, and None, without a seed."""
    if seed is None:
        yield rows, None
        return
    # the words of a block stay in the cache, and all blocks share memory, because the first
    # touch of new pages takes longer than the words
    memory = np.empty(min(_SLICE, rows.stop - rows.start), dtype=np.uint64)
    for first in range(rows.start, rows.stop, _SLICE):
        bits = memory[: rows.stop - first]
        bits.fill(0)
        _fast.mask_words(bits, seed, b"\x00", first)
        yield slice(first, first + bits.size), bits
