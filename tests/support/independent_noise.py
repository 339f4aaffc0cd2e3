"""Noise: of one-shot sums, docs/oneshot.md §8; of clients, docs/protocol.md §5.14 (`P §`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from independent_primitives import (
    integer,
    integers,
    number,
    sha256,
    u8,
    u16le,
    u32le,
    u64le,
    valid,
)
from independent_streams import stream


@dataclass(frozen=True)
class Noise:
    """P §3.1: of a round; 256 σ and c."""

    scaled: int
    colluders: int

    def encode(self) -> bytes:
        """P §3.3."""
        return u8(1) + u64le(self.scaled) + u32le(self.colluders)

    def share(self, m: int) -> int:
        """P §3.1: p, every number in its range."""
        integer(self.scaled, "noise: sigma", 1, 2**48)
        integer(self.colluders, "noise: colluders", 0, m - 2)
        p = scaled_share(self.scaled, m, self.colluders)
        return integer(p, "noise: a share", 2**10, 2**36)


def read_noise(data: bytes) -> Noise:
    """P §3.3."""
    valid(len(data) == 13 and data[0] == 1, "noise")
    return Noise(number(data[1:9]), number(data[9:]))


def bound(p: int, seeds: int) -> int:
    """§8.1: ν, the smallest integer with 256 ν ≥ 10 √C p."""
    return -(-(math.isqrt(100 * seeds * p**2 - 1) + 1) // 256)


def noise_key(i: int, seeds: Sequence[bytes], D: bytes) -> bytes:
    """§8: of the seeds by ascending ids."""
    return sha256(b"secagg/1 one-shot noise", u16le(i), *seeds, D)[:16]


def noises(key: bytes, p: int, size: int) -> list[int]:
    """N(key)."""
    words = stream(key, 0)
    return [sample(p, lambda _: number(words.update(bytes(8)))) for _ in range(size)]


def sample(p: int, word: Callable[[int], int]) -> int:
    """§8.2. The argument of `word` is the word with which a decision needs another, or −1."""

    def bernoulli(n: int, d: int) -> bool:
        while 0 < n < d:
            n *= 2**64
            n -= word(n // d) * d
        return n > 0

    def exponential(n: int, d: int) -> bool:
        k = 1
        while bernoulli(n, d * k):
            k += 1
        return k % 2 == 1

    def uniform() -> int:
        while (m := word(-1) * p) % 2**64 < 2**64 % p:
            pass
        return m // 2**64

    def proposal() -> int | None:
        u, v = uniform(), 0
        if not exponential(u, p):
            return None
        while exponential(1, 1):
            v += 1
        y = (u + p * v) // 256
        negative = bernoulli(1, 2)
        if negative and y == 0:
            return None
        n, d = (256 * y - p) ** 2, 2 * p**2
        while n >= d:
            if not exponential(1, 1):
                return None
            n -= d
        return (-y if negative else y) if exponential(n, d) else None

    while (y := proposal()) is None:
        pass
    return y


def scaled_share(sigma: int, m: int, c: int) -> int:
    """P §5.14: p = 256 s, the least integer with p² (m − c) ≥ sigma², of sigma = 256 σ."""
    return math.isqrt((sigma**2 - 1) // (m - c)) + 1


def shares(key: bytes, p: int, size: int) -> list[int]:
    """P §5.14: the noise of a client for a vector of this size."""
    found: list[int] = []
    for b in range(-(-size // 4096)):
        wanted, block = min(4096, size - 4096 * b), list[int]()
        source = stream(key, 0, 32768 * b)  # a block of AES has two words
        while len(block) < wanted:  # two proposals a sample are nearly always enough
            block += share(p, integers(source.update(bytes(64 * wanted))))
        found += block[:wanted]
    return found


def share(p: int, words: Sequence[int]) -> list[int]:
    """P §5.14: the samples of the accepted proposals among as many as there are words for."""
    k, steps, scale, shift = law(p)
    found = []
    for a, b, c, e in zip(*(iter(words),) * 4, strict=False):
        x = sum((a * 2**64 + b) // 2 >= step for step in steps)
        z, rest = c * k // 2**64, c * k % 2**64
        exponent = z * (z + 2 * k * x) * scale // 2**shift
        y = k * x + z
        chance = half(exponent % 2**64) // 2 ** (exponent // 2**64)
        if rest >= 2**64 % k and e // 2 < chance and (y, b % 2) != (0, 1):
            found.append(-y if b % 2 else y)
    return found


@cache
def law(p: int) -> tuple[int, list[int], int, int]:
    """P §5.14: k, the table T, scale and shift."""
    k = 5 * p // 1536
    weights = [exponential((256 * k * x) ** 2, 2 * p**2) for x in range(40)]
    below = [sum(weights[: x + 1]) * 2**127 // sum(weights) for x in range(40)]
    rate = Fraction(2**15 * 2**_BITS, p**2 * LN2)  # 1 / (2 s² ln 2)
    shift = next(i for i in range(64) if rate * 2 ** (65 + i) >= 2**63)
    scale = math.floor(rate * 2 ** (64 + shift))
    return k, [step for step in below if step < 2**127 - 1], scale, shift


_BITS = 256
LN2 = sum(2**_BITS // (i * 2**i) for i in range(1, _BITS))
"""ln 2 · 2^256, but for the last ten bits."""


def exponential(n: int, d: int) -> int:
    """exp(−n / d) · 2^256, but for the last bits: the series of a part, squared often."""
    halvings = max(0, (n // d).bit_length() + 8)
    part, term, total = (n << _BITS) // (d << halvings), 1 << _BITS, 0
    for i in range(1, 60):
        total, term = total + term, -term * part // (i << _BITS)
    for _ in range(halvings):
        total = total * total >> _BITS
    return total


COEFFICIENTS = [LN2**i * 2**63 // (math.factorial(i) * 2 ** (_BITS * i)) for i in range(16)]
"""P §5.14: c_i."""


def half(f: int) -> int:
    """2^(−f / 2^64) in units of 2^−63, by Horner's rule in integers."""
    y = 0
    for coefficient in reversed(COEFFICIENTS):
        y = coefficient - f * y // 2**64
    return y
