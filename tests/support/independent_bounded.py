"""Vectors of bounded norm, rotated and rounded: docs/protocol.md §4.5.

Floats of Python are binary64, and no operation on them is fused with another.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real

from independent_primitives import integer, sha256, u64le, valid
from independent_streams import words


@dataclass(frozen=True)
class Bounded:
    """The encoding: C and S."""

    norm: float
    steps: int

    def encode(self) -> bytes:
        """§3.3."""
        return b"bounded" + struct.pack("<d", self.norm) + u64le(self.steps)

    def validate(self) -> None:
        """§3.1."""
        integer(self.steps, "steps", 1, 2**30)
        valid(type(self.norm) in (int, float), "norm: no number")
        valid(2.0**-100 <= self.norm <= 2.0**100, "norm")


@dataclass(frozen=True)
class Rotation:
    """The encoding of the vectors of a round."""

    of: Bounded
    session: bytes
    d: int
    counted: bool

    @property
    def log(self) -> int:
        """ℓ; D is 2^ℓ."""
        return (self.d + self.counted - 1).bit_length()

    @property
    def D(self) -> int:
        return 2**self.log

    @property
    def square(self) -> int:
        """S'²."""
        return -(-257 * self.of.steps**2 // 256) if self.counted else self.of.steps**2

    @property
    def most(self) -> int:
        """⌈S'⌉."""
        return rounded_root(self.square)

    @property
    def B(self) -> int:
        root = rounded_root(self.D)
        slack = -(-5266 * (2 * self.most + root) // 2000)
        return min(self.square - (-self.D // 4) + slack, (self.most + root) ** 2)

    def has_room(self, n: int, R: int, p: int) -> bool:
        """§3.1, the headroom; p is 0 without noise."""
        spread = Fraction(n * n * self.B, self.D) + n * Fraction(p, 256) ** 2 + Fraction(n, 4)
        wide = Fraction(13863, 10000) * (11 + self.log) * spread
        return self.most < R and Fraction(R - 1, 2) ** 2 >= wide

    def integers(self, vector: Sequence[float], key: bytes) -> list[int]:
        """q; `key` is the one of stochastic rounding."""
        y = self._hadamard(self._signed(self.scaled(vector)[0]))
        random = [word >> 11 for word in words(key, 0, 8, self.D)]
        held = [min(max(each, -float(self.most)), float(self.most)) for each in y]
        q = [rounded(each, r) for each, r in zip(held, random, strict=True)]
        for other in ([math.trunc(each) for each in y], [0] * self.D):
            if sum(each**2 for each in q) > self.B:
                q = other
        return q

    def scaled(self, vector: Sequence[float]) -> tuple[list[float], int]:
        """y before the signs, and κ."""
        C, S = self.of.norm, self.of.steps
        x = [bounded(each) for each in vector]
        lanes = [0.0] * 8
        for i, each in enumerate(x):
            lanes[i % 8] += each * each
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
        N = math.sqrt(lanes[0])
        clipped = int(N > C * (1 + 2.0**-40))
        scale = S / max(N, C)
        y = [each * scale for each in x] + [0.0] * (self.D - self.d)
        if self.counted:
            y[self.d] = clipped * (S / 16)
        return y, clipped

    def _signed(self, y: list[float]) -> list[float]:
        key = sha256(b"secagg/4 rotation", self.session)[:16]
        signs = words(key, 0, 8, -(-self.D // 64))
        return [-each if signs[i // 64] >> (i % 64) & 1 else each for i, each in enumerate(y)]

    def _hadamard(self, y: list[float]) -> list[float]:
        h = 1
        while h < self.D:
            for i in range(self.D):
                if not i & h:
                    y[i], y[i + h] = y[i] + y[i + h], y[i] - y[i + h]
            h *= 2
        factor = 2.0 ** -(self.log // 2) * (math.sqrt(0.5) if self.log % 2 else 1.0)
        return [each * factor for each in y]

    def decoded(self, integers: Sequence[int]) -> tuple[list[float], float | None]:
        """The sum of the vectors, and the number of clipped vectors."""
        step = self.of.norm / self.of.steps
        x = self._signed(self._hadamard([a * step for a in integers]))
        return x[: self.d], x[self.d] * (16 / self.of.norm) if self.counted else None


def rounded_root(x: int) -> int:
    """⌈√x⌉."""
    return math.isqrt(x - 1) + 1


def bounded(x: float) -> float:
    valid(isinstance(x, Real) and math.isfinite(x), "vector: element")
    x = min(max(float(x), -(2.0**300)), 2.0**300)
    return x if abs(x) >= 2.0**-300 else 0.0


def rounded(y: float, random: int) -> int:
    """Annex B."""
    return math.floor(y) + (random < (Fraction(y) - math.floor(y)) * 2**53)
