"""Suggestion of a fixed-point encoding for the values of a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from secagg._check import check_integer
from secagg.encoding.encoding import Encoding, Vector
from secagg.errors import ParameterError

E = TypeVar("E", bound=Encoding)


@dataclass(frozen=True, kw_only=True)
class Suggestion(Generic[E]):
    """Encoding that `FixedPoint.suggest` proposes, and its errors.

    Attributes
    ----------
    encoding : FixedPoint
        Encoding for RoundParams.
    modulus_bits : int
        b of the modulus R = 2^b that the sum fits.
    sum_error, mean_error : float
        Bounds of the error that rounding makes in an element of the sum, and of the mean.
    clipped : float
        Fraction of the sample beyond the clip, 0 to 1. Clipping adds to the errors.
    """

    encoding: E
    modulus_bits: int
    sum_error: float
    mean_error: float
    clipped: float


def clip_for(sample: Vector, quantile: float) -> tuple[float, float]:
    """Return the clip for a sample, a power of two, and the fraction of the sample beyond it.

    See `FixedPoint.suggest` for the arguments and errors.
    """
    values = np.asarray(sample)
    if values.dtype.kind not in "fiu" or values.size == 0:
        raise ParameterError(
            f"the sample must be a non-empty array of floats, not {values.dtype} of size "
            f"{values.size}"
        )
    if not 0 < quantile <= 1:
        raise ParameterError(f"quantile is {quantile}; it must lie above 0 and up to 1")
    sizes = np.abs(values.astype(np.float64)).ravel()
    if not np.isfinite(sizes).all():
        raise ParameterError(
            f"element {int((~np.isfinite(sizes)).argmax())} of the sample is NaN or infinite; "
            "leave it out"
        )
    reached = float(np.quantile(sizes, quantile, method="inverted_cdf"))
    if not 2.0**-52 <= reached <= 2.0**61:
        raise ParameterError(
            f"the {quantile} quantile of the sample's absolute values is {reached}; scale the "
            "values to between 2^-52 and 2^61, or take a larger quantile"
        )
    mantissa, exponent = math.frexp(reached)
    clip = 2.0 ** (exponent - 1 if mantissa == 0.5 else exponent)
    return clip, float(np.count_nonzero(sizes > clip) / sizes.size)


def bits_for(clip: float, summands: int, max_weight: int | None, modulus_bits: int) -> int:
    """Return the most fractional bits, up to 52, with which the sum fits the modulus.

    The rule is that of `RoundParams`: R > 2 · n · W · clip · 2^f.
    """
    check_integer("summands", summands, 1, 1 << 20)
    check_integer("modulus_bits", modulus_bits, 1, 64)
    if max_weight is not None:
        check_integer("max_weight", max_weight, 1, 1 << 53)
    # the largest clip · 2^f, and a power of two like it: R/2 itself is no element of the ring
    room = ((1 << (modulus_bits - 1)) - 1) // (int(summands) * int(max_weight or 1))
    bits = min(room.bit_length() - 1, 61) - (math.frexp(clip)[1] - 1)
    if room == 0 or bits < 0:
        raise ParameterError(
            f"{modulus_bits} bits have no room for the sum of {summands} vectors with elements "
            f"up to {clip:g}{f' and weights up to {max_weight}' if max_weight else ''}; take "
            "more modulus_bits, or scale the values"
        )
    return min(bits, 52)
