"""Warnings that a sum lacks clipped elements of vectors, or whole vectors below a step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from secagg._printable import at_least
from secagg.encoding.encoding import Encoding, Vector
from secagg.encoding.fixed_point import FixedPoint
from secagg.errors import ClippingWarning, PrecisionWarning

LOSSES = (ClippingWarning, PrecisionWarning)
"""Warnings of losses in a sum; a filter of the application can make errors of them."""
_FIRST = 256
"""Elements that are scanned first: most vectors have an element above half a step here."""


def warn_of_clipping(
    clipped: int, elements: int, encoding: Encoding, *, stacklevel: int = 4
) -> None:
    """Warn the caller if some of all elements were clipped; by default of `without_frames`."""
    if clipped:
        warnings.warn(
            f"{clipped:,} of {elements:,} elements ({100 * clipped / elements:.3g} %) were "
            f"beyond the clip of {encoding} and were clipped; raise the clip, which "
            "FixedPoint.suggest proposes, or scale the vectors",
            ClippingWarning,
            stacklevel=stacklevel,
        )


def is_lost(vector: Vector, encoding: Encoding) -> bool:
    """Return whether a valid vector has elements other than 0, all below half a step."""
    if type(encoding) is not FixedPoint:
        return False
    half = 0.5 / encoding.scale
    first, rest = vector[:_FIRST], vector[_FIRST:]
    if _exceeds(first, half) or _exceeds(rest, half):
        return False
    return bool(first.any() or rest.any())


def _exceeds(part: Vector, half: float) -> bool:
    return part.size > 0 and bool(part.max() >= half or part.min() <= -half)


def warn_of_rounding(lost: int, encoding: Encoding, *, stacklevel: int = 4) -> None:
    """Warn the caller that `is_lost` is true for some vectors; `lost` is their number."""
    if lost and isinstance(encoding, FixedPoint):
        warnings.warn(
            f"all elements of {lost:,} vector{'s' * (lost != 1)} are below half the step of "
            f"{encoding}, so that the sum has zeros or noise of rounding in their place; "
            "raise fractional_bits, or scale the vectors up: their largest elements need "
            f"{at_least(0.5 / encoding.scale)} at least",
            PrecisionWarning,
            stacklevel=stacklevel,
        )


def warn_of_losses(
    vector: Vector | None, clipped: int, encoding: Encoding, *, stacklevel: int = 4
) -> None:
    """Warn the caller of an encoding's losses in a valid vector; None is no vector."""
    if vector is not None:
        warn_of_clipping(clipped, vector.size, encoding, stacklevel=stacklevel + 1)
        warn_of_rounding(is_lost(vector, encoding), encoding, stacklevel=stacklevel + 1)


@contextmanager
def losses_ignored() -> Iterator[None]:
    """Give no warning of losses in the block, where they are counted or made on purpose."""
    with warnings.catch_warnings():
        for kind in LOSSES:
            warnings.simplefilter("ignore", kind)
        yield
