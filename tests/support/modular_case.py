"""Shared by the tests of large numbers: every implementation, and numbers as limbs."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from secagg import _fast
from secagg._fast import reference

IMPLEMENTATIONS = {"reference": reference, "active": _fast}
if _fast.COMPILED:
    from secagg._fast import _kernels

    IMPLEMENTATIONS |= {name: _kernels.Modular(name) for name in _kernels.modular_tiers()}

every = pytest.mark.parametrize("modular", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())


def limbs_of(number: int, limbs: int) -> np.ndarray:
    return np.frombuffer(number.to_bytes(8 * limbs, "little"), "<u8").astype(np.uint64)


def batch(numbers: list[int], limbs: int) -> np.ndarray:
    rows = [limbs_of(number, limbs) for number in numbers]
    return np.array(rows, np.uint64).reshape(len(rows), limbs)


def numbers(rows: np.ndarray) -> list[int]:
    return [int.from_bytes(row.astype("<u8").tobytes(), "little") for row in rows]


class Case:
    """A modulus and numbers below it, for one implementation."""

    def __init__(self, modular, n: int, seed: int = 0) -> None:
        self.modular = modular
        self.n = n
        self.limbs = -(-n.bit_length() // 64)
        radix = 1 << modular.modular_radix(self.limbs)
        root, half = math.isqrt(n), (self.limbs + 1) // 2
        self.constants = (
            limbs_of(n, self.limbs),
            limbs_of(radix * radix % n, self.limbs),
            limbs_of(root, half) if root * root == n else np.empty(0, np.uint64),
        )
        self._random = random.Random(seed)

    def draw(self, count: int) -> list[int]:
        """Half at random, half at the edges."""
        edges = [0, 1 % self.n, 2 % self.n, self.n - 1, self.n // 2]
        return [
            self._random.choice([*edges, *(self._random.randrange(self.n) for _ in edges)])
            for _ in range(count)
        ]

    def empty(self, count: int) -> np.ndarray:
        return np.full((count, self.limbs), 0xDEAD, np.uint64)

    def multiply(self, a: list[int], b: list[int]) -> list[int]:
        out = self.empty(len(a))
        left, right = batch(a, self.limbs), batch(b, self.limbs)
        self.modular.modular_multiply(left, right, out, *self.constants)
        return numbers(out)

    def power(self, base: list[int], exponent: int, exponent_limbs: int) -> list[int]:
        out = self.empty(len(base))
        digits = limbs_of(exponent, exponent_limbs)
        self.modular.modular_power(batch(base, self.limbs), digits, out, *self.constants)
        return numbers(out)

    def table(self, base: int, windows: int, window: int) -> np.ndarray:
        shape = (windows, 1 << window, self.modular.modular_width(self.limbs))
        table = np.full(shape, 0xDEAD, np.uint64)
        rows = limbs_of(base, self.limbs)
        self.modular.modular_table(rows, table, window, *self.constants)
        return table

    def power_fixed(
        self, table: np.ndarray, exponents: list[int], limbs: int, window: int
    ) -> list[int]:
        out = self.empty(len(exponents))
        digits = batch(exponents, limbs)
        self.modular.modular_power_fixed(table, digits, out, window, *self.constants)
        return numbers(out)
