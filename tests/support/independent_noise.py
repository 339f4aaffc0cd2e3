"""Noise of one-shot sums: docs/oneshot.md §8."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from independent_primitives import number, sha256, u16le
from independent_sums import stream


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
