"""Noise of docs/oneshot.md §8, from the document alone: plain integers, word by word."""

from collections.abc import Iterator
from itertools import count
from math import isqrt

import primitives as pr
from primitives import sha256

KNOWN = {
    128: [-1, 0, 0, -1, 0, 0, 1, 0],
    1000: [-2, -4, -6, -1, -4, -2, -1, 7],
}
"""§8.2: the first samples of the key 000102…0f."""


def noise_key(i: int, seeds: list[bytes], digest: bytes) -> bytes:
    """§8: of the seeds of the list's clients, by ascending ids."""
    return sha256(b"secagg/1 one-shot noise", i.to_bytes(2, "little"), *seeds, digest)[:16]


def noises(key: bytes, p: int, size: int) -> list[int]:
    """N(key): the first samples of the key's stream."""
    sampler = Sampler(key, p)
    return [sampler.sample() for _ in range(size)]


def bound(p: int, seeds: int) -> int:
    """§8.1: ν, the smallest integer with 256 ν ≥ 10 √C p."""
    square = 100 * seeds * p * p
    v = isqrt(square) // 256
    while (256 * v) ** 2 < square:
        v += 1
    return v


def words(key: bytes) -> Iterator[int]:
    """The 64-bit words of the stream, domain 0."""
    for i in count():
        block = pr.aes_blocks(key, [(0, i)])
        yield int.from_bytes(block[:8], "little")
        yield int.from_bytes(block[8:], "little")


class Sampler:
    """§8.2, with the names and the steps there."""

    def __init__(self, key: bytes, p: int) -> None:
        self.words, self.p = words(key), p

    def bernoulli(self, n: int, d: int) -> bool:
        while 0 < n < d:
            n = n * 2**64 - next(self.words) * d
        return n > 0

    def exponential(self, n: int, d: int) -> bool:
        k = 1
        while self.bernoulli(n, d * k):
            k += 1
        return k % 2 == 1

    def uniform(self) -> int:
        while True:
            m = next(self.words) * self.p
            if m % 2**64 >= 2**64 % self.p:
                return m // 2**64

    def sample(self) -> int:
        while True:
            y = self.attempt()
            if y is not None:
                return y

    def attempt(self) -> int | None:
        """Steps 1 to 6; None is "go to 1"."""
        u = self.uniform()
        if not self.exponential(u, self.p):
            return None
        v = 0
        while self.exponential(1, 1):
            v += 1
        y = (u + self.p * v) // 256
        negative = self.bernoulli(1, 2)
        if negative and y == 0:
            return None
        n, d = (256 * y - self.p) ** 2, 2 * self.p**2
        while n >= d:
            if not self.exponential(1, 1):
                return None
            n -= d
        if not self.exponential(n, d):
            return None
        return -y if negative else y


def confirm() -> None:
    for p, samples in KNOWN.items():
        assert noises(bytes(range(16)), p, len(samples)) == samples
