"""Warnings that a sum lacks clipped elements of vectors, or whole vectors below a step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from secagg._printable import at_least
from secagg.encoding.bounded import Bounded
from secagg.encoding.encoding import Encoding, Vector
from secagg.encoding.fixed_point import FixedPoint
from secagg.errors import ClippingWarning, PrecisionWarning

LOSSES = (ClippingWarning, PrecisionWarning)
"""Warnings of losses in a sum; a filter of the application can make errors of them."""
_FIRST = 256
"""Elements that are scanned first: most vectors have an element above half a step here."""


def is_lost(vector: Vector, encoding: Encoding) -> bool:
    """Return whether a valid vector has elements other than 0, all below half a step."""
    if type(encoding) is not FixedPoint:
        return False
    half = 0.5 / encoding.scale
    for part in (vector[:_FIRST], vector[_FIRST:]):
        if part.size and (part.max() >= half or part.min() <= -half):
            return False
    return bool(vector.any())


def warn_of_losses(
    encoding: Encoding, clipped: int, elements: int, lost: int, *, stacklevel: int = 4
) -> None:
    """Warn the caller of an encoding's losses in valid vectors; by default of `without_frames`.

    Parameters
    ----------
    encoding : Encoding
    clipped, elements : int
        Number of clipped elements, and of all elements.
    lost : int
        Number of vectors for which `is_lost` is true.
    """
    # the norm of `Bounded` is a price of privacy that is stated in advance
    if clipped and not isinstance(encoding, Bounded):
        warnings.warn(
            f"{clipped:,} of {elements:,} elements ({100 * clipped / elements:.3g} %) were "
            f"beyond the clip of {encoding} and were clipped; raise the clip, which "
            "FixedPoint.suggest proposes, or scale the vectors",
            ClippingWarning,
            stacklevel=stacklevel,
        )
    if lost and isinstance(encoding, FixedPoint):
        warnings.warn(
            f"all elements of {lost:,} vector{'s' * (lost != 1)} are below half the step of "
            f"{encoding}, so that the sum has zeros or noise of rounding in their place; "
            "raise fractional_bits, or scale the vectors up: their largest elements need "
            f"{at_least(0.5 / encoding.scale)} at least",
            PrecisionWarning,
            stacklevel=stacklevel,
        )


@contextmanager
def losses_ignored() -> Iterator[None]:
    """Give no warning of losses in the block, where they are counted or made on purpose."""
    with warnings.catch_warnings():
        for kind in LOSSES:
            warnings.simplefilter("ignore", kind)
        yield
