"""Ring Z_R, in which inputs are masked and summed: R = 2^b or any modulus up to 2^62.

Elements live in lanes: ``uint32`` when R = 2^b with b ≤ 32, else ``uint64``. A power of two
needs no reduction while summing, because a lane wraps at a multiple of R; ``reduce`` brings
the result back to [0, R).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secagg.errors import ParameterError

__all__ = ["Lanes", "Ring"]

Lanes = NDArray[np.uint32] | NDArray[np.uint64]


@dataclass(frozen=True)
class Ring:
    """The integers modulo R.

    Parameters
    ----------
    modulus : int
        R: a power of two up to 2^64, or any integer 2 ≤ R ≤ 2^62.

    Raises
    ------
    ParameterError
        The modulus is neither.
    """

    modulus: int

    def __post_init__(self) -> None:
        if not isinstance(self.modulus, int) or isinstance(self.modulus, bool):
            raise ParameterError(f"modulus must be an int, not {self.modulus!r}")
        if self.modulus < 2:
            raise ParameterError(f"modulus {self.modulus} is below 2; a sum needs at least 2")
        limit = 64 if self.is_power_of_two else 62
        if self.modulus > 1 << limit:
            raise ParameterError(
                f"modulus {self.modulus} is above 2^{limit}; take a power of two up to 2^64 "
                "or any other modulus up to 2^62"
            )

    def __str__(self) -> str:
        return f"2^{self.bits}" if self.is_power_of_two else str(self.modulus)

    @property
    def is_power_of_two(self) -> bool:
        """True for R = 2^b."""
        return self.modulus & (self.modulus - 1) == 0

    @property
    def bits(self) -> int:
        """Bits of an element on the wire: ⌈log2 R⌉."""
        return (self.modulus - 1).bit_length()

    @property
    def dtype(self) -> np.dtype[np.uint32] | np.dtype[np.uint64]:
        """The dtype of a lane, which holds one element."""
        narrow = self.is_power_of_two and self.bits <= 32
        return np.dtype(np.uint32) if narrow else np.dtype(np.uint64)

    def zeros(self, length: int) -> Lanes:
        """Return `length` zeros in this ring's lanes."""
        return np.zeros(length, dtype=self.dtype)

    def add_into(self, total: Lanes, values: Lanes) -> None:
        """Add `values` to `total` in place; both hold elements of this ring in its lanes."""
        np.add(total, values, out=total)
        if not self.is_power_of_two:
            # where total < R the difference wraps to something huge, so the minimum is
            # total mod R in either case
            np.minimum(total, total - np.uint64(self.modulus), out=total)

    def reduce(self, values: Lanes) -> None:
        """Bring wrapped lanes back to [0, R), in place."""
        if self.is_power_of_two and self.bits < 8 * self.dtype.itemsize:
            np.bitwise_and(values, values.dtype.type(self.modulus - 1), out=values)

    def centre(self, values: Lanes) -> NDArray[np.int64]:
        """Lift elements of [0, R) to the int64 of least absolute value: (−R/2, R/2]."""
        wide = values.astype(np.uint64)
        negative = wide > np.uint64((self.modulus - 1) // 2)
        wide[negative] -= np.uint64(self.modulus % (1 << 64))
        return wide.view(np.int64)
