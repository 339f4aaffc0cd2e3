"""Masks of vectors, and messages into which masked vectors are written in place.

AES-128-CTR expands a key to a stream that is uniform over [0, R)^d for every R.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from io import BytesIO
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._threads import in_slices
from secagg.encoding import Lanes, Ring

T = TypeVar("T")
U8 = NDArray[np.uint8]


@dataclass
class MaskSum:
    """Collection of masks that `apply` adds to a vector in one pass; see `add`."""

    _keys: list[bytes] = field(default_factory=list, repr=False)
    _signs: bytearray = field(default_factory=bytearray, repr=False)

    def add(self, keys: bytes | U8, *, negate: bool | NDArray[np.bool_] = False) -> None:
        """Collect masks PRG(key), to be added, or subtracted where `negate` is True.

        Either there is one key of 16 bytes, or m keys, shape (m, 16), and `negate` has shape
        (m,).
        """
        self._keys.append(bytes(keys))
        self._signs += np.asarray(negate, bool).tobytes()

    def apply(self, values: Lanes, ring: Ring) -> None:
        """Add all collected masks to `values` modulo R, in place, on several threads.

        `values` are in [0, R), shape (d,), in the lanes of the ring. If R is a power of two,
        the results are congruent modulo R only; call ``ring.reduce`` afterwards.
        """
        add, (least, alone) = self.adder(ring), self.slices(values.itemsize)
        in_slices(lambda rows: add(values[rows], rows.start), values.size, least, alone)

    def adder(self, ring: Ring) -> Callable[[Lanes, int], None]:
        """Return a function that adds all collected masks to a part of a vector; see `apply`.

        The arguments of this function are the elements of the part, and the number of the first
        element in the vector.
        """
        keys, signs = b"".join(self._keys), bytes(self._signs)
        if ring.is_power_of_two:
            return lambda part, start: _fast.mask_words(part, keys, signs, start)
        modulus = ring.modulus
        return lambda part, start: _fast.mask_mod(
            part.view(np.uint64), keys, signs, modulus, start
        )

    def slices(self, itemsize: int) -> tuple[int, int]:
        """Return `least` and `alone` of `in_slices` for a vector with lanes of `itemsize`."""
        alone = _fast.MASK_BYTES // (max(1, len(self._signs)) * itemsize)
        # each slice expands all keys again, which takes as long as about 1 KB of their masks
        return max(alone // 8, _fast.SLICE_BYTES // itemsize), alone


def filled(
    parts: Iterable[bytes], size: int, fill: Callable[[memoryview], T]
) -> tuple[bytes, T]:
    """Return `parts` and `size` ≥ 1 more bytes as one string, and the result of `fill`.

    `fill` overwrites the memory of these bytes, which is zero before, and must not keep the
    memory. A ``join`` would copy the bytes, which takes longer than writing them.
    """
    made = BytesIO()
    made.writelines(parts)
    start = made.tell()
    # one byte at the end makes all memory before it, as zeros
    made.seek(start + size - 1)
    made.write(b"\0")
    result = fill(made.getbuffer()[start:])
    return made.getvalue(), result  # a copy only if a thread still has the view
