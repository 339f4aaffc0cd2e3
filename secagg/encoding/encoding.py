"""Ring of a sum, and the interfaces of an encoding and of a source of entropy.

To add an encoding, implement `Encoding` and pass an object of the class to `secagg.RoundParams`
or `secagg.Packing`. The ``canonical()`` bytes must differ from all other encodings' bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from secagg._printable import in_short
from secagg.errors import ParameterError

Lanes = NDArray[np.uint32] | NDArray[np.uint64]


@dataclass(frozen=True)
class Ring:
    """Ring of the integers modulo R, with elements in arrays of unsigned integers.

    An element of such an array is a *lane*. If R is a power of two, a lane may hold any number
    that is congruent to the element modulo R; `reduce` brings the number into [0, R).

    Parameters
    ----------
    modulus : int
        R: a power of two up to 2^64, or any integer 2 ≤ R ≤ 2^62.

    Attributes
    ----------
    is_power_of_two : bool
        True if R = 2^b for some b.
    bits : int
        Bits of an element on the wire: ⌈log2 R⌉.
    dtype : dtype
        The dtype of a lane, which stores one element: uint32 or uint64.

    Raises
    ------
    ParameterError
        The modulus is not such an int.
    """

    modulus: int
    is_power_of_two: bool = field(init=False, repr=False, compare=False)
    bits: int = field(init=False, repr=False, compare=False)
    dtype: np.dtype[np.uint32] | np.dtype[np.uint64] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.modulus, int) or isinstance(self.modulus, bool):
            raise ParameterError(f"modulus must be an int, not {in_short(self.modulus)}")
        if self.modulus < 2:
            raise ParameterError(
                f"modulus {in_short(self.modulus)} is below 2; a sum needs at least 2"
            )
        power, bits = self.modulus & (self.modulus - 1) == 0, (self.modulus - 1).bit_length()
        limit = 64 if power else 62
        if self.modulus > 1 << limit:
            raise ParameterError(
                f"modulus {in_short(self.modulus)} is above 2^{limit}; take a power of two up "
                "to 2^64 or any other modulus up to 2^62"
            )
        dtype = np.dtype(np.uint32 if power and bits <= 32 else np.uint64)
        for name, value in (("is_power_of_two", power), ("bits", bits), ("dtype", dtype)):
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"2^{self.bits}" if self.is_power_of_two else str(self.modulus)

    def zeros(self, length: int) -> Lanes:
        """Return an array of `length` zeros, in the dtype of this ring."""
        return np.zeros(length, dtype=self.dtype)

    def packed_bytes(self, length: int) -> int:
        """Return the number of bytes of `length` packed elements."""
        return -(-length * self.bits // 8)

    def add_into(self, total: Lanes, values: Lanes) -> None:
        """Add `values` to `total` in place; both are arrays of this ring, of equal shape."""
        np.add(total, values, out=total)
        if not self.is_power_of_two:
            # where total < R the difference wraps to a huge number, so the minimum is
            # total mod R in either case
            np.minimum(total, total - np.uint64(self.modulus), out=total)

    def subtract_from(self, total: Lanes, values: Lanes) -> None:
        """Subtract `values` from `total` in place, as `add_into` adds values."""
        if self.is_power_of_two:
            np.subtract(total, values, out=total)
        else:
            self.add_into(total, np.uint64(self.modulus) - values)

    def reduce(self, values: Lanes) -> None:
        """Reduce `values` to [0, R) in place, after sums modulo a power of two."""
        if self.is_power_of_two and self.bits < 8 * self.dtype.itemsize:
            np.bitwise_and(values, values.dtype.type(self.modulus - 1), out=values)

    def residues(self, integers: NDArray[np.int64]) -> Lanes:
        """Return integers as lanes: the inverse of `centre`, for integers in (−R, R).

        If R is a power of two, the integers may be any, and the lanes are congruent only.
        """
        if self.is_power_of_two:
            words = integers.view(np.uint64)
            return words.astype(np.uint32) if self.dtype == np.uint32 else words
        # a division would take longer for larger numbers on some CPUs
        return (integers + (integers >> 63 & self.modulus)).view(np.uint64)

    def centre(self, values: Lanes) -> NDArray[np.int64]:
        """Return elements of [0, R) as the congruent int64 in [−R/2, R/2)."""
        wide = values.astype(np.uint64)
        negative = wide > np.uint64((self.modulus - 1) // 2)
        # 2^64 fits no uint64; taken as 0, the signed view alone makes the number negative
        wide -= negative * np.uint64(self.modulus % (1 << 64))
        return wide.view(np.int64)


Vector = (
    NDArray[np.float64]
    | NDArray[np.float32]
    | NDArray[np.int64]
    | NDArray[np.int32]
    | NDArray[np.uint64]
    | NDArray[np.uint32]
)


class Entropy(Protocol):
    """Source of secret random bytes: ``os.urandom``, unless a test replays a round."""

    def __call__(self, size: int, /) -> bytes:
        """Return `size` uniformly random bytes."""


def take(entropy: Entropy, size: int) -> bytes:
    """Return `size` bytes of `entropy`; raise `ParameterError` for another number of bytes."""
    drawn = entropy(size)
    if len(drawn) != size:
        raise ParameterError(
            f"the source of entropy returned {len(drawn)} bytes instead of {size}; pass one "
            "that returns as many as asked, such as os.urandom"
        )
    return drawn


@runtime_checkable
class Encoding(Protocol):
    """Conversion of a client's vector to integers modulo R, and of their sum back."""

    @property
    def max_encoded(self) -> int:
        """The largest absolute value of an encoded element of weight 1."""

    @property
    def signed(self) -> bool:
        """True if encoded elements can be negative."""

    def canonical(self) -> bytes:
        """Return the bytes that identify this encoding in the parameters' digest."""

    def encode(
        self, vector: Vector, ring: Ring, weight: int, entropy: Entropy
    ) -> tuple[Lanes, int]:
        """Return weight · encode(vector) mod R and the number of clipped elements."""

    def decode(
        self, total: Lanes, ring: Ring
    ) -> tuple[NDArray[np.float64] | NDArray[np.int64], NDArray[np.int64]]:
        """Return a sum of encoded vectors in the vectors' units, and as exact integers."""
