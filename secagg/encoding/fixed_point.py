"""Encoding of floats as integers modulo R, in fixed point.

A float x becomes the signed integer round(clip(x) · 2^f). Sums of such integers are exact, so
the errors of a sum are each client's own clipping and rounding. ``RoundParams`` checks that a
sum of n encoded vectors fits R.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import check_integer, is_real
from secagg._printable import at_least, in_short
from secagg._secrets import without_frames
from secagg._threads import in_slices
from secagg.encoding import suggestion
from secagg.encoding.bounded import BOUNDED, Bounded
from secagg.encoding.encoding import Entropy, Lanes, Ring, Vector
from secagg.encoding.integers import INTEGERS, Integers
from secagg.encoding.pieces import (
    FixedPointPieces,
    Floats,
    check_lanes,
    check_weight,
    one_dimensional,
)
from secagg.errors import ParameterError, PrecisionWarning

_CHOICES = {"rounding": ("stochastic", "nearest"), "beyond_clip": ("clip", "refuse")}
_LABEL = b"fixed point"
_ALONE, _LEAST = 1 << 19, 1 << 16
"""Elements that one thread encodes or decodes in a millisecond, and the least for a slice."""


@dataclass(frozen=True)
class FixedPoint:
    """Encoding of floats in [−clip, clip] as integer multiples of 2^−fractional_bits.

    Parameters
    ----------
    clip : float
        Largest absolute value of an element, 2^−f ≤ clip ≤ 2^61.
    fractional_bits : int
        f, 0 ≤ f ≤ 52: elements are rounded to multiples of the step, 2^−f.
    rounding : "stochastic" or "nearest"
        Stochastic rounding is unbiased and uses the client's entropy. Rounding to nearest, with
        ties to even, is reproducible.
    beyond_clip : "clip" or "refuse"
        Treatment of larger elements: "clip" clips and counts them, "refuse" raises an error.

    Raises
    ------
    ParameterError
        A value is out of range, the clip is below the step, or clip · 2^f exceeds 2^61.

    Warns
    -----
    PrecisionWarning
        A clip below 1 has fewer than 100 steps: rounding moves elements by up to one step.
    """

    clip: float
    fractional_bits: int = 16
    rounding: Literal["stochastic", "nearest"] = "stochastic"
    beyond_clip: Literal["clip", "refuse"] = "clip"
    signed: ClassVar[bool] = True
    """Encoded elements lie in [−max_encoded, max_encoded]."""

    def __post_init__(self) -> None:
        if not is_real(self.clip) or not 0 < self.clip <= 2.0**61:
            shown = in_short(self.clip)
            raise ParameterError(f"clip must be a number above 0, up to 2^61, not {shown}")
        object.__setattr__(self, "clip", float(self.clip))
        check_integer("fractional_bits", self.fractional_bits, 0, 52)
        object.__setattr__(self, "fractional_bits", int(self.fractional_bits))
        for name, (one, other) in _CHOICES.items():
            value: object = getattr(self, name)
            if value not in (one, other):
                raise ParameterError(
                    f"{name} must be {one!r} or {other!r}, not {in_short(value)}"
                )
        steps = self.clip * self.scale
        if steps > 2.0**61:
            raise ParameterError(
                f"clip {self.clip} with {self.fractional_bits} fractional bits exceeds 2^61; "
                f"take {61 - suggestion.exponent_of(self.clip)} fractional bits or fewer, or "
                f"a clip of at most {1 << (61 - self.fractional_bits)}"
            )
        # from 1 on few steps are a choice: whole numbers and halves are multiples of a step
        if steps >= 1 and (self.clip >= 1 or steps >= suggestion.FEW_STEPS):
            return
        wanted = math.ceil(math.log2(suggestion.FEW_STEPS) - math.log2(self.clip))
        # beyond 52 bits only a scale helps
        finer = f"raise fractional_bits to {wanted}, " if wanted <= 52 else ""
        larger = at_least(min(1.0, suggestion.FEW_STEPS / self.scale))
        remedy = f"take a larger clip, {larger} or more, {finer}or "
        if steps < 1:
            raise ParameterError(
                f"clip {self.clip} is below the step, 2^-{self.fractional_bits}, so rounding "
                f"would lose every element; {remedy}scale clip and vectors up"
            )
        warnings.warn(
            f"clip {self.clip} is only {steps:.3g} steps of 2^-{self.fractional_bits}, and "
            f"rounding moves an element by up to one step; {remedy}scale clip and vectors up",
            PrecisionWarning,
            stacklevel=3,  # of the dataclass's constructor
        )

    @classmethod
    @without_frames
    def suggest(
        cls,
        sample: Vector,
        summands: int,
        *,
        max_weight: int | None = None,
        modulus_bits: int = 32,
        quantile: float = 0.999,
    ) -> Suggestion:
        """Propose a clip and fractional bits for values like a sample's values.

        The clip is the smallest power of two that at least `quantile` of the sample's absolute
        values do not exceed. The fractional bits are as many as fit the sum into the modulus.
        The result shows in public parameters, so the sample must be public data. A client may
        also take a private sample to judge alone.

        Parameters
        ----------
        sample : float or integer array, any shape
            Typical elements of the clients' vectors, finite and not all 0.
        summands : int
            n, the largest number of vectors in a sum, 1 to 2^20: `n_clients` of RoundParams.
        max_weight : int, optional
            W, the largest weight, 1 to 2^53.
        modulus_bits : int
            b of the modulus R = 2^b, 1 to 64.
        quantile : float
            Part of the sample within the clip, 0 < quantile ≤ 1.

        Raises
        ------
        ParameterError
            An argument is out of range, or no fractional bits fit.

        Warns
        -----
        PrecisionWarning
            The clip is below 1 and has fewer than 100 steps.
        """
        clip, clipped = suggestion.clip_for(sample, quantile)
        bits = suggestion.bits_for(clip, summands, max_weight, modulus_bits)
        with warnings.catch_warnings():  # its remedies are not arguments of this function
            warnings.simplefilter("ignore", PrecisionWarning)
            encoding = cls(clip, bits)
        steps = clip * encoding.scale
        if clip < 1 and steps < suggestion.FEW_STEPS:
            warnings.warn(
                f"the suggested clip {clip} is only {steps:.3g} steps of 2^-{bits}, and "
                "rounding moves an element by up to one step; "
                + suggestion.remedy_for_steps(clip, summands, max_weight),
                PrecisionWarning,
                stacklevel=3,  # of without_frames
            )
        # a client's rounding error is below 2^-f, before its weight multiplies it
        return Suggestion(
            encoding=encoding,
            modulus_bits=int(modulus_bits),
            sum_error=int(summands) * int(max_weight or 1) / encoding.scale,
            mean_error=1 / encoding.scale,
            clipped=clipped,
        )

    @property
    def scale(self) -> float:
        """2^f, the factor of a float before rounding."""
        return 2.0**self.fractional_bits

    @property
    def max_encoded(self) -> int:
        """⌈clip · 2^f⌉, the largest absolute value of an encoded element."""
        return math.ceil(self.clip * self.scale)

    def canonical(self) -> bytes:
        """Return the bytes that identify this encoding in the parameters' digest."""
        return _LABEL + struct.pack("<dQ", self.clip, self.fractional_bits)

    @without_frames
    def encode(
        self, vector: Vector, ring: Ring, weight: int = 1, entropy: Entropy = os.urandom
    ) -> tuple[Lanes, int]:
        """Return weight · round(clip(vector) · 2^f) modulo R.

        Parameters
        ----------
        vector : float64 or float32 array, shape (d,)
            Vector of finite elements. Subnormal numbers of the dtype are taken as zero.
        ring : Ring
            Z_R.
        weight : int
            Factor ≥ 0 with weight · max_encoded < min(R, 2^62).
        entropy : callable
            Source of the 16-byte seed of stochastic rounding.

        Returns
        -------
        lanes : uint32 or uint64 array, shape (d,), in [0, R)
        clipped : int
            Number of elements beyond the clip.

        Raises
        ------
        ParameterError
            The vector is not a 1-d array of floats, an element is NaN or infinite, or the
            weight is out of range. Or an element is beyond the clip and `beyond_clip` "refuse".
        """
        check_weight(weight, self.max_encoded, ring)
        pieces = self.pieces(vector, ring, weight, entropy)
        out = np.empty(pieces.values.size, dtype=ring.dtype)
        in_slices(lambda rows: pieces.write(out[rows], rows), out.size, _LEAST, _ALONE)
        return out, pieces.clipped()

    def pieces(
        self, vector: Vector, ring: Ring, weight: int, entropy: Entropy
    ) -> FixedPointPieces:
        """Begin to encode a vector with a valid weight; see `encode`."""
        floats = one_dimensional(vector, "f", "float64 or float32")
        # the kernel widens: numpy takes longer for subnormals
        wanted = np.float32 if floats.dtype.itemsize == 4 else np.float64
        values = cast("Floats", np.ascontiguousarray(floats, wanted))
        seed = None if self.rounding == "nearest" else entropy(16)
        how = self.clip, self.scale, weight, ring.modulus
        return FixedPointPieces(values, how, seed, self.beyond_clip == "refuse")

    def decode(self, total: Lanes, ring: Ring) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return a sum of encoded vectors as floats, and as exact integers in units of 2^−f.

        Parameters
        ----------
        total : uint32 or uint64 array, shape (d,), in [0, R)
        ring : Ring

        Returns
        -------
        floats : float64 array, shape (d,)
        integers : int64 array, shape (d,)
        """
        check_lanes(total, ring)
        floats = np.empty(total.size, dtype=np.float64)
        integers = np.empty(total.size, dtype=np.int64)

        def part(rows: slice) -> None:
            _fast.decode(total[rows], floats[rows], ring.modulus, 1.0 / self.scale)
            integers[rows] = ring.centre(total[rows])

        in_slices(part, total.size, _LEAST, _ALONE)
        return floats, integers

    @without_frames
    def encode_integers(
        self, vector: Vector, entropy: Entropy = os.urandom
    ) -> tuple[NDArray[np.int64], int]:
        """Return a vector's signed integers, int64, and the number of clipped elements.

        The integers equal the output of `encode` without a modulus, for aggregation without
        masks.
        """
        lanes, clipped = self.encode(vector, Ring(1 << 64), 1, entropy)
        return lanes.view(np.int64), clipped

    def decode_integers(self, integers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return integers of `encode_integers`, or sums of them, as floats."""
        return integers / self.scale


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Encoding that `FixedPoint.suggest` proposes, and the errors of the encoding.

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

    encoding: FixedPoint
    modulus_bits: int
    sum_error: float
    mean_error: float
    clipped: float


def from_canonical(data: bytes) -> FixedPoint | Integers | Bounded | None:
    """Return the encoding of ``canonical()`` bytes, or None for another class.

    `rounding` and `beyond_clip` are the defaults. ParameterError: a value is out of range.
    """
    if data[:-16] == _LABEL:
        return FixedPoint(*struct.unpack("<dQ", data[-16:]))
    if data[:-16] == BOUNDED:
        return Bounded(*struct.unpack("<dQ", data[-16:]))
    label, largest = data[:-8], data[-8:]
    return Integers(int.from_bytes(largest, "little")) if label == INTEGERS else None
