"""Vectors as integers modulo R, masks and bytes: docs/protocol.md §4 and §5.9."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real

from independent_bounded import Bounded, Rotation
from independent_primitives import ParameterError, integer, number, require, u64le, valid
from independent_streams import prg


@dataclass(frozen=True)
class FixedPoint:
    """§4.1."""

    clip: float
    f: int

    @property
    def bound(self) -> int:
        """The largest |q|."""
        return math.ceil(self.clip * 2.0**self.f)

    def encode(self) -> bytes:
        """§3.3."""
        return b"fixed point" + struct.pack("<d", self.clip) + u64le(self.f)

    def validate(self) -> None:
        """§3.1."""
        integer(self.f, "fractional_bits", 0, 52)
        valid(type(self.clip) in (int, float), "clip: no number")
        valid(2.0**-self.f <= self.clip <= 2.0 ** (61 - self.f), "clip")

    def clips(self, x: float) -> bool:
        return abs(x) > self.clip

    def quantise(self, x: float, random: int | None = None) -> int:
        """To the nearest or, given 53 random bits, stochastically as Annex B has it."""
        valid(isinstance(x, Real) and math.isfinite(x), "vector: element")
        x = 0.0 if abs(x) < 2.0**-1022 else float(x)  # subnormal
        y = min(max(x, -self.clip), self.clip) * 2.0**self.f
        if random is None:  # Python's round() is exact and takes ties to even
            return round(y)
        return math.floor(y) + (random < (Fraction(y) - math.floor(y)) * 2**53)


@dataclass(frozen=True)
class Integers:
    """§4.2."""

    max: int

    @property
    def bound(self) -> int:
        return self.max

    def encode(self) -> bytes:
        return b"integers" + u64le(self.max)

    def validate(self) -> None:
        integer(self.max, "max", 1, 2**62)

    def clips(self, x: int) -> bool:
        return False

    def quantise(self, x: int, random: int | None = None) -> int:
        valid(isinstance(x, Integral) and 0 <= x <= self.max, "vector: element")
        return int(x)


Encoding = FixedPoint | Integers | Bounded


def read_encoding(data: bytes) -> Encoding:
    """§3.3."""
    if data.startswith(b"fixed point") and len(data) == 27:
        return FixedPoint(*struct.unpack("<dQ", data[11:]))
    if data.startswith(b"bounded") and len(data) == 23:
        return Bounded(*struct.unpack("<dQ", data[7:]))
    valid(data.startswith(b"integers") and len(data) == 16, "encoding")
    return Integers(number(data[8:]))


class Sums:
    """A sum of n vectors of d elements, with the names of §3; ν and p are 0 without noise.

    `W` is None in an unweighted sum. `b` are the bits of an element, `e` the elements of a
    masked vector, `packed` its bytes.
    """

    def __init__(
        self,
        n: int,
        d: int,
        encoding: Encoding,
        R: int,
        W: int | None,
        counted: bool = False,
        nu: int = 0,
        p: int = 0,
        session: bytes = b"",
    ) -> None:
        """Every value in its range (§3.1)."""
        self.n, self.d = n, integer(d, "length", 1, 2**31)
        self.R = integer(R, "modulus", 2, 2**64)
        valid(R & (R - 1) == 0 or R <= 2**62, "modulus: above 2^62")
        self.W = None if W is None else integer(W, "max_weight", 1, 2**53)
        self.encoding, self.counted, self.nu = encoding, counted, nu
        valid(isinstance(encoding, Encoding), "encoding")
        encoding.validate()
        self.signed = not isinstance(encoding, Integers)
        self.b, self.e = (R - 1).bit_length(), d + (W is not None) + counted
        self.rotation: Rotation | None = None
        if isinstance(encoding, Bounded):
            valid(W is None, "max_weight: Bounded has no weights")
            self.rotation = Rotation(encoding, session, d, counted)
            self.e = integer(self.rotation.D, "length: padded", 1, 2**31)
            valid(self.rotation.has_room(n, R, p), "headroom: modulus too small")
        else:
            self.bound = encoding.bound
            X = n * self.bound * (W or 1)  # headroom
            valid(X + nu < 2**63, "headroom: sums of 2^63 or more")
            valid(X * (2 if self.signed else 1) + 2 * nu < R, "headroom: modulus too small")
            valid(not counted or n * d + 2 * nu < R, "headroom: too many to count")
        self.packed = -(-self.e * self.b // 8)
        valid(self.packed < 2**32, "length: a masked vector is too large")

    def elements(
        self, vector: Iterable, weight: int | None, key: bytes | None = None
    ) -> list[int]:
        """§4.3, §4.5: e elements; `key` is the one of stochastic rounding."""
        try:
            values = list(vector)
        except TypeError:
            raise ParameterError("vector") from None
        valid(len(values) == self.d, "vector: its length")
        valid(weight is None or self.W is not None, "weight: the sum is not weighted")
        if self.rotation:
            return [a % self.R for a in self.rotation.integers(values, key or b"")]
        random = [word >> 11 for word in prg(key, self.d, 2**64)] if key else [None] * self.d
        q = [self.encoding.quantise(x, r) for x, r in zip(values, random, strict=True)]
        more = [self.clipped(values)] if self.counted else []
        if self.W is None:
            return [a % self.R for a in q] + more
        weight = integer(weight, "weight", 0, self.W)
        return [weight * a % self.R for a in q] + [weight, *more]

    def clipped(self, values: Sequence) -> int:
        """κ."""
        if self.rotation:
            return self.rotation.scaled(values)[1]
        return sum(map(self.encoding.clips, values))

    def decode(self, total: Sequence[int], survivors: int) -> list[int]:
        """§4.4 and §4.5, without weight and κ; before 2^-f, and before the rotation back."""
        half = (self.R - 1) // 2
        most = half if self.signed else survivors * (self.W or 1) * self.bound + self.nu
        amount = self.e if self.rotation else self.d
        return [self._below(most, v) for v in total[:amount]]

    def counts(self, total: Sequence[int], survivors: int) -> tuple[int | None, int | None]:
        """§4.4: the sum of weights, and that of κ; None if it is not summed."""
        weight = clipped = None
        if self.W is not None:
            weight = self._below(survivors * self.W + self.nu, total[self.d])
        if self.counted and not self.rotation:
            clipped = self._below(survivors * self.d + self.nu, total[-1])
        return weight, clipped

    def _below(self, most: int, v: int) -> int:
        return v if v <= most else v - self.R

    def mask(self, key: bytes) -> list[int]:
        return prg(key, self.e, self.R)

    def add(self, *vectors: Iterable[int], minus: Iterable[Iterable[int]] = ()) -> list[int]:
        """The sum of the vectors less those of `minus`."""
        negative = [[-x for x in vector] for vector in minus]
        columns = zip([0] * self.e, *vectors, *negative, strict=True)
        return [sum(column) % self.R for column in columns]

    def pack(self, elements: Sequence[int]) -> bytes:
        return pack(elements, self.b)

    def unpack(self, data: bytes, phase: str = "") -> list[int]:
        bits = number(data)
        out = [bits >> (self.b * i) & (2**self.b - 1) for i in range(self.e)]
        require(bits < 2 ** (self.b * self.e), "range", phase)
        require(all(x < self.R for x in out), "range", phase)
        return out


def pack(elements: Sequence[int], b: int) -> bytes:
    """§5.9."""
    bits = sum(x << (b * i) for i, x in enumerate(elements))
    return bits.to_bytes(-(-len(elements) * b // 8), "little")
