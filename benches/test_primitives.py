"""The kernels under pytest-benchmark; with ``--benchmark-disable`` these are smoke tests."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches import primitives as plain
from secagg import _fast

D = plain.LENGTH


@pytest.mark.parametrize("acc", [np.zeros(D, np.uint32), np.zeros(D, np.uint64)])
def test_mask_words(benchmark: BenchmarkFixture, acc: plain.U32 | plain.U64) -> None:
    benchmark(_fast.mask_words, acc, plain.KEYS, plain.SIGNS)
    acc[:] = 0
    expected = acc.copy()
    _fast.mask_words(acc, plain.KEYS, plain.SIGNS)
    plain.plain_masks(expected)
    np.testing.assert_array_equal(acc, expected)


def test_mask_mod(benchmark: BenchmarkFixture) -> None:
    acc = np.zeros(D, np.uint64)
    benchmark(_fast.mask_mod, acc, plain.KEYS, plain.SIGNS, plain.P)
    assert acc.max() < plain.P


@pytest.mark.parametrize(("t", "n"), [(67, 100), (667, 1000)])
def test_shamir(benchmark: BenchmarkFixture, t: int, n: int) -> None:
    coeffs = np.random.default_rng(t).integers(0, plain.P, (t, 1), dtype=np.uint64)
    xs = np.arange(1, n + 1, dtype=np.uint64)
    shares = benchmark(_fast.m61_poly_eval, coeffs, xs)
    assert shares[:2, 0].tolist() == plain.plain_split(coeffs[:, 0].tolist(), [1, 2])
    assert plain.reconstruct(shares[:t, 0].copy(), xs[:t].copy()) == coeffs[0, 0]


@pytest.mark.parametrize("stochastic", [True, False])
def test_encode(benchmark: BenchmarkFixture, stochastic: bool) -> None:
    rng = np.random.default_rng(1)
    x, out = rng.normal(size=D) * 4, np.zeros(D, np.uint32)
    random = rng.integers(0, 2**64, D, dtype=np.uint64) if stochastic else None
    benchmark(_fast.encode, x, out, plain.CLIP, plain.SCALE, 1, 2**32, random)
    np.testing.assert_array_equal(out, plain.plain_encode(x, random))


def test_bits(benchmark: BenchmarkFixture) -> None:
    values = np.random.default_rng(1).integers(0, 2**26, D, dtype=np.uint32)
    packed = benchmark(_fast.pack_bits, values, 26)
    assert packed == plain.plain_pack(values)
    np.testing.assert_array_equal(plain.plain_unpack(packed), values)


def test_large_numbers(benchmark: BenchmarkFixture) -> None:
    numbers = plain.Numbers(1024)
    benchmark(numbers.power_fixed)
    assert [plain.integer(row) for row in numbers.out] == numbers.plain_power()
    _fast.modular_multiply(numbers.rows, numbers.others, numbers.out, *numbers.constants)
    assert [plain.integer(row) for row in numbers.out] == numbers.plain_multiply()
