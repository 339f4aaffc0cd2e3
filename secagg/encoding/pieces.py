"""Encoding of a vector in pieces; each piece can be masked and packed in the cache."""

from __future__ import annotations

from typing import Protocol

from secagg.encoding.checks import check_encoded
from secagg.encoding.encoding import Encoding, Entropy, Vector
from secagg.encoding.fixed_point import FixedPoint
from secagg.encoding.ring import Lanes, Ring


class Pieces(Protocol):
    """Vector that is being encoded; several threads may call `write`.

    Attributes
    ----------
    size : int
        Number of elements.
    """

    size: int

    def write(self, out: Lanes, rows: slice) -> None:
        """Overwrite `out` with the elements of `rows`, encoded."""

    def clipped(self) -> int:
        """Return the number of clipped elements once all are written.

        Raises
        ------
        ParameterError
            An element is invalid; the written elements have no meaning then.
        """


class Whole:
    """Vector that an encoding has encoded at once."""

    def __init__(self, values: Lanes, clipped: int) -> None:
        self._values, self._clipped = values, clipped
        self.size: int = values.size

    def write(self, out: Lanes, rows: slice) -> None:
        """Copy the elements of `rows` to `out`."""
        out[:] = self._values[rows]

    def clipped(self) -> int:
        """Return the number of clipped elements."""
        return self._clipped


def begin(
    encoding: Encoding, vector: Vector, ring: Ring, weight: int, entropy: Entropy
) -> Pieces:
    """Return the pieces of ``encoding.encode(vector, ring, weight, entropy)``.

    Raises
    ------
    ParameterError
        The vector or weight is invalid, or elements of the application's own encoding are not
        in the ring. Elements may be checked by `Pieces.clipped`.
    """
    if type(encoding) is FixedPoint:  # a subclass may have another `encode`
        return encoding.pieces(vector, ring, weight, entropy)
    values, clipped = encoding.encode(vector, ring, weight, entropy)
    check_encoded(values, ring)
    return Whole(values, clipped)
