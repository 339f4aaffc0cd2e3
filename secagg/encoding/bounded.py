"""Encoding of vectors of bounded L2 norm as integers modulo R, rotated to need few bits.

A vector is clipped to norm C, padded, multiplied by random signs and the Walsh–Hadamard matrix,
and rounded to S steps for C. Differential privacy needs the norm of the rounded vector, which
is checked in exact integers: Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian
Mechanism for Federated Learning with Secure Aggregation" (ICML 2021), §4.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, isqrt, sqrt
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import check_integer, is_real
from secagg._printable import in_short
from secagg._secrets import without_frames
from secagg._threads import in_slices
from secagg.encoding.encoding import Entropy, Lanes, Ring, Vector, take
from secagg.encoding.pieces import FixedPointPieces, Floats, check_lanes, one_dimensional
from secagg.errors import ParameterError

BOUNDED = b"bounded"
"""Label of the canonical bytes."""
_ALONE, _LEAST = 1 << 19, 1 << 16
"""Elements that one thread rounds in a millisecond, and the least for a slice."""
_BLOCK = 1 << 13
"""Elements that are squared together, in memory that stays in the cache."""
_COUNT = 16
"""The element that counts clipped vectors is the sixteenth part of the bound C."""
_SAME = 1 + 2.0**-40
"""Vectors that an application scaled to norm C itself are not counted as clipped."""
_TAIL = 5266
"""1000 √(2 ln 1/β), β = 2^−20, rounded up."""
_WRAP = Fraction(13_863, 10_000)
"""2 ln 2, rounded up: with `_WRAP` · (11 + log₂ D) any element wraps with chance 2^−10."""


@dataclass(frozen=True)
class Bounded:
    """Encoding of vectors with L2 norm up to C in integer multiples of C / S, rotated.

    Longer vectors are scaled down to norm C. Rounding is stochastic and unbiased, but for a
    probability of 2^−20 with which elements are rounded towards zero.

    Parameters
    ----------
    norm : float
        C, the largest L2 norm of a vector, 2^−100 ≤ C ≤ 2^100.
    steps : int
        S, the number of steps of rounding in C, 1 ≤ S ≤ 2^30.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    norm: float
    steps: int
    signed: ClassVar[bool] = True
    """Encoded elements lie in [−max_encoded, max_encoded]."""

    def __post_init__(self) -> None:
        if not is_real(self.norm) or not 2.0**-100 <= self.norm <= 2.0**100:
            shown = in_short(self.norm)
            raise ParameterError(
                f"norm must be a number between 2^-100 and 2^100, not {shown}; scale the "
                "vectors"
            )
        object.__setattr__(self, "norm", float(self.norm))
        check_integer("steps", self.steps, 1, 1 << 30)
        object.__setattr__(self, "steps", int(self.steps))

    @property
    def step(self) -> float:
        """γ = C / S, the unit of the integers."""
        return self.norm / self.steps

    @property
    def max_encoded(self) -> int:
        """S, the largest absolute value of an encoded element."""
        return self.steps

    def canonical(self) -> bytes:
        """Return the bytes that identify this encoding in the parameters' digest."""
        return BOUNDED + struct.pack("<dQ", self.norm, self.steps)

    def of_round(self, session: bytes, length: int, *, counts: bool = False) -> Rotated:
        """Return the encoding of a round's vectors.

        Parameters
        ----------
        session : bytes
            Name of the round, which decides the signs of the rotation.
        length : int
            d, the number of elements of a vector.
        counts : bool
            True: the sum has the number of clipped vectors, too.
        """
        return Rotated(self, session, length, counts)

    def encode(
        self, vector: Vector, ring: Ring, weight: int = 1, entropy: Entropy = os.urandom
    ) -> tuple[Lanes, int]:
        """Encode a vector for the round of empty name; see `Rotated.encode`."""
        if weight != 1:
            raise ParameterError(
                "vectors of bounded norm have no weights; sum weight · vector and the weight "
                "together, under one norm"
            )
        return self.of_round(b"", np.size(vector)).encode(vector, ring, entropy)

    def decode(self, total: Lanes, ring: Ring) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Decode all elements of a sum of the round of empty name; see `Rotated.decode`."""
        return self.of_round(b"", len(total)).decode(total, ring)


@dataclass(frozen=True)
class Rotated:
    """Encoding of the vectors of a round, made by `Bounded.of_round`.

    Attributes
    ----------
    bounded : Bounded
    session : bytes
    length : int
    counts : bool
    """

    bounded: Bounded
    session: bytes
    length: int
    counts: bool = False

    @property
    def elements(self) -> int:
        """D, the number of elements of an encoded vector: a power of two."""
        return 1 << (self.length + self.counts - 1).bit_length()

    @property
    def squared_steps(self) -> int:
        """S'², a bound on the squared norm before rounding, in squared steps."""
        square = self.bounded.steps**2
        return -(-square * (_COUNT**2 + 1) // _COUNT**2) if self.counts else square

    @property
    def max_encoded(self) -> int:
        """⌈S'⌉, the largest absolute value of an encoded element."""
        return isqrt(self.squared_steps - 1) + 1

    @cached_property
    def squared_norm(self) -> int:
        """B, which Σ q² of an encoded vector q never exceeds.

        B = S'² + D/4 + √(2 ln 1/β) (S' + √D / 2) with β = 2^−20, each term rounded up, and at
        most (S' + √D)². Stochastic rounding exceeds B with probability below β (Kairouz, Liu
        and Steinke 2021, Proposition 22).
        """
        size, most = self.elements, self.max_encoded
        root = isqrt(size - 1) + 1
        slack = -(-_TAIL * (2 * most + root) // 2000)
        return min(self.squared_steps - (-size // 4) + slack, (most + root) ** 2)

    def smallest_modulus(self, vectors: int, variance: Fraction) -> int:
        """Return the least R for sums of n vectors, R ≥ ⌈S'⌉ + 1, which may wrap.

        ((R − 1) / 2)² ≥ K² (n² B / D + n s² + n / 4) with K² = 2 ln(2^11 D). So for inputs that
        do not depend on the rotation, any element of the sum wraps with chance 2^−10 at most.

        Parameters
        ----------
        vectors : int
            n, 1 ≤ n ≤ 2^20.
        variance : Fraction
            s² ≥ 0, the variance of the noise that is added to each vector.
        """
        logarithm = self.elements.bit_length() - 1
        spread = Fraction(vectors**2 * self.squared_norm, self.elements)
        square = 4 * _WRAP * (11 + logarithm) * (spread + vectors * (variance + Fraction(1, 4)))
        return max(isqrt(ceil(square) - 1) + 2, self.max_encoded + 1)

    @cached_property
    def _signs(self) -> NDArray[np.uint64]:
        seed = hashlib.sha256(b"secagg/4 rotation" + self.session).digest()[:16]
        signs = np.zeros(-(-self.elements // 64), np.uint64)
        _fast.mask_words(signs, seed, b"\x00")
        return signs

    @without_frames
    def encode(
        self, vector: Vector, ring: Ring, entropy: Entropy = os.urandom
    ) -> tuple[Lanes, int]:
        """Return a vector, clipped, rotated and rounded, modulo R.

        Parameters
        ----------
        vector : float64 or float32 array, shape (d,)
            Vector of finite elements. Elements below 2^−300, and subnormal elements of
            float32, are taken as zero, and elements beyond 2^300 as 2^300.
        ring : Ring
            Z_R, R > ⌈S'⌉.
        entropy : callable
            Source of the 16-byte seed of stochastic rounding.

        Returns
        -------
        lanes : uint32 or uint64 array, shape (D,), in [0, R)
        clipped : int
            1 if the vector was longer than C by more than rounding errors, else 0.

        Raises
        ------
        ParameterError
            The vector is not a 1-d array of d floats, an element is NaN or infinite, or R is
            too small.
        """
        integers, clipped = self.integers(vector, entropy)
        if ring.modulus <= self.max_encoded:
            raise ParameterError(
                f"modulus {ring} is not above {self.max_encoded} steps; take a larger modulus"
            )
        lanes = ring.residues(integers)
        ring.reduce(lanes)
        return lanes, clipped

    def integers(self, vector: Vector, entropy: Entropy) -> tuple[NDArray[np.int64], int]:
        """Return integers of squared norm up to B, and 1 for a clipped vector, else 0."""
        rotated, clipped = self._rotate(vector)
        integers = self._round(rotated, take(entropy, 16))
        # both branches are rare for every vector: the first has probability below 2^−20, the
        # second would need rounding errors of the rotation that are far larger than they are
        if squared_norm(integers) > self.squared_norm:
            integers = np.trunc(rotated).astype(np.int64)
            if squared_norm(integers) > self.squared_norm:
                integers.fill(0)
        return integers, clipped

    def _rotate(self, vector: Vector) -> tuple[NDArray[np.float64], int]:
        """Return the rotated vector in steps, of norm up to S', and 1 for a clipped vector."""
        floats = one_dimensional(vector, "f", "float64 or float32")
        if floats.size != self.length:
            raise ParameterError(
                f"the vector has {floats.size} elements; the vectors of this round have "
                f"{self.length}"
            )
        values = np.empty(self.elements)
        # the kernel widens: numpy takes longer for subnormals
        wanted = np.float32 if floats.dtype.itemsize == 4 else np.float64
        narrow = cast("Floats", np.ascontiguousarray(floats, wanted))
        square, bad = _fast.widen(narrow, values)
        if bad >= 0:
            raise ParameterError(
                f"element {bad} of the vector is NaN or infinite; replace it, or the sum "
                "would be lost"
            )
        norm, steps = sqrt(square), self.bounded.steps
        clipped = int(norm > self.bounded.norm * _SAME)
        values *= steps / max(norm, self.bounded.norm)
        if self.counts:
            values[self.length] = clipped * (steps / _COUNT)
        _fast.rotate(values, self._signs, False)
        return values, clipped

    def _round(self, rotated: NDArray[np.float64], seed: bytes) -> NDArray[np.int64]:
        integers = np.empty(rotated.size, np.uint64)
        how = float(self.max_encoded), 1.0, 1, 1 << 64
        pieces = FixedPointPieces(rotated, how, seed, refuses=False)
        in_slices(lambda rows: pieces.write(integers[rows], rows), rotated.size, _LEAST, _ALONE)
        return integers.view(np.int64)

    def decode(self, total: Lanes, ring: Ring) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return a sum of encoded vectors as floats, and as integers before the rotation back.

        Parameters
        ----------
        total : uint32 or uint64 array, shape (D,), in [0, R)
        ring : Ring

        Returns
        -------
        floats : float64 array, shape (d,); with `counts`, shape (d + 1,)
            The last element is then the number of clipped vectors, with the noise of the sum.
        integers : int64 array, shape (D,)
        """
        check_lanes(total, ring)
        integers = ring.centre(total)
        values = integers.astype(np.float64)
        values *= self.bounded.step
        _fast.rotate(values, self._signs, True)
        floats = values[: self.length + self.counts].copy()
        floats[self.length :] *= _COUNT / self.bounded.norm
        return floats, integers


def squared_norm(integers: NDArray[np.int64]) -> int:
    """Return Σ q² exactly, for at most 2^31 integers below 2^31 in absolute value."""
    total = 0
    for start in range(0, integers.size, _BLOCK):
        some = integers[start : start + _BLOCK]
        squares = (some * some).view(np.uint64)
        high, low = squares >> np.uint64(32), squares & np.uint64(0xFFFFFFFF)
        total += (int(high.sum()) << 32) + int(low.sum())
    return total
