"""Clip and fractional bits that `FixedPoint.suggest` takes for a sample, and the remedies."""

from __future__ import annotations

import math

import numpy as np

from secagg._check import check_integer, is_real
from secagg._printable import at_least, in_short
from secagg.encoding.encoding import Vector
from secagg.errors import ParameterError

FEW_STEPS = 100
"""Steps up to a clip below 1, with fewer of which a sum can be a percent off."""
_ENOUGH = FEW_STEPS.bit_length()
"""Bits of so many steps, as a power of two."""
MOST_BITS, _MOST_EXPONENT = 52, 61
"""Largest number of fractional bits, those of a float64, and log2 of the largest clip."""


def clip_for(sample: Vector, quantile: float) -> tuple[float, float]:
    """Return the clip for a sample, a power of two, and the fraction beyond the clip.

    See `FixedPoint.suggest` for the arguments and errors.
    """
    values = np.asarray(sample)
    if values.dtype.kind not in "fiu" or values.size == 0:
        raise ParameterError(
            f"the sample must be a non-empty array of floats, not {str(values.dtype)[:20]} of "
            f"size {values.size}; pass typical elements"
        )
    if not is_real(quantile) or not 0 < quantile <= 1:
        raise ParameterError(
            f"quantile is {in_short(quantile)}; it must be a number above 0 and up to 1"
        )
    sizes = np.abs(values.astype(np.float64)).ravel()
    if not np.isfinite(sizes).all():
        raise ParameterError(
            f"element {int((~np.isfinite(sizes)).argmax())} of the sample is NaN or infinite; "
            "leave it out"
        )
    # a value of the sample: an interpolated quantile could lie below some of the values within
    reached = float(np.quantile(sizes, quantile, method="inverted_cdf"))
    if not 2.0**-MOST_BITS <= reached <= 2.0**_MOST_EXPONENT:
        remedy = "pass typical elements, which are not all 0"
        if reached > 1:
            remedy = _scaled("down", exponent_of(reached) - _MOST_EXPONENT)
        elif reached > 0:
            remedy = _scaled("up", _missing(reached))
        elif sizes.any():
            remedy = "take a larger quantile, such as 1.0"
        raise ParameterError(
            f"the {quantile} quantile of the sample's absolute values is {reached}, and the "
            f"clip lies between 2^-52 and 2^61; {remedy}"
        )
    clip = 2.0 ** exponent_of(reached)
    return clip, float(np.count_nonzero(sizes > clip) / sizes.size)


def exponent_of(value: float) -> int:
    """Return e of the smallest power of two, 2^e, that is not below a number above 0."""
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent


def bits_for(clip: float, summands: int, max_weight: int | None, modulus_bits: int) -> int:
    """Return the largest number of fractional bits, up to 52, so that the sum fits R.

    The rule is the same as in `RoundParams`: R > 2 · n · W · clip · 2^f.
    """
    check_integer("summands", summands, 1, 1 << 20)
    check_integer("modulus_bits", modulus_bits, 1, 64)
    if max_weight is not None:
        check_integer("max_weight", max_weight, 1, 1 << 53)
    room = _room(modulus_bits, int(summands) * int(max_weight or 1))
    bits = min(room.bit_length() - 1, _MOST_EXPONENT) - exponent_of(clip)
    if room == 0 or bits < 0:
        exponent = exponent_of(clip)
        remedy = _remedy(summands, max_weight, _ENOUGH if exponent < 0 else exponent)
        if room and exponent >= 0:
            remedy += f", or {_scaled('down', exponent - room.bit_length() + 1)}"
        weighted = f" and weights up to {max_weight}" if max_weight else ""
        raise ParameterError(
            f"{modulus_bits} bits have no room for the sum of {summands} vectors with elements "
            f"up to {clip:g}{weighted}; {remedy}"
        )
    return min(bits, MOST_BITS)


def remedy_for_steps(clip: float, summands: int, max_weight: int | None) -> str:
    """Return the arguments of `FixedPoint.suggest` with which a clip below 1 has 100 steps."""
    remedy = _remedy(summands, max_weight, _ENOUGH)
    missing = _missing(clip)
    return f"{_scaled('up', missing)}, and {remedy}" if missing > 0 else remedy


def _missing(clip: float) -> int:
    """Return log2 of the factor with which a clip has 100 steps of the finest encoding."""
    return _ENOUGH - MOST_BITS - exponent_of(clip)


def _scaled(how: str, exponent: int) -> str:
    factor = 2.0 ** min(exponent, 1000)  # a float; numbers that need more are next to 0
    return f"scale the sample, and all vectors, {how} by {at_least(factor)} or more"


def _remedy(summands: int, max_weight: int | None, exponent: int) -> str:
    """Return the arguments with which a sum has room for elements of 2^exponent steps."""
    factor = int(summands) * int(max_weight or 1)
    bits = (factor << exponent).bit_length() + 1
    if bits <= 64:
        return f"take modulus_bits={bits} or more"
    most = _room(64, 1 << exponent)
    named = "summands" if max_weight is None else "the product of summands and max_weight"
    return f"lower {named} to {most}, and take modulus_bits=64"


def _room(modulus_bits: int, factor: int) -> int:
    """Return the largest encoded element of which a sum has `factor` in the modulus.

    R/2 itself is no element of the ring, so that 2^(b−1) − 1 is the largest sum.
    """
    return ((1 << (modulus_bits - 1)) - 1) // factor
