"""Interfaces of an encoding and of a source of entropy.

To add an encoding, implement `Encoding` and pass an object of the class to `secagg.RoundParams`
or `secagg.Packing`. The ``canonical()`` bytes must differ from all other encodings' bytes.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from secagg.encoding.ring import Lanes, Ring
from secagg.errors import ParameterError

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
