"""GF(p), p an odd prime below 2^63: the twin and every compiled tier against plain integers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg._fast import reference

FIELDS = {"reference": reference, "active": _fast}
if _fast.COMPILED:
    from secagg._fast import _kernels

    FIELDS |= {
        name: SimpleNamespace(
            prime_poly_eval=_kernels.Primes(name).prime_poly_eval,
            prime_matmul=_kernels.prime_matmul,
            prime_lagrange_at_zero=_kernels.prime_lagrange_at_zero,
        )
        for name in _kernels.prime_tiers()
    }

every = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())
quick = examples(50)

LARGEST = 2**63 - 25
PRIMES = [
    3, 5, 97, 65537, 2**31 - 1, 2**32 - 5, 2**32 + 15, 2**52 - 47, 2**52 + 21, 2**61 - 1,
    2**62 - 57, 2**62 + 135, LARGEST,
]  # fmt: skip
"""Beside the powers of two at which an implementation changes its arithmetic."""

primes = st.sampled_from(PRIMES)
seeds = st.integers(0, 2**32)


def matrix(seed: int, rows: int, columns: int, p: int) -> np.ndarray:
    """Half of it random, half of it p - 1, where sums are largest."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, p, (rows, columns), dtype=np.uint64)
    values[rng.random(values.shape) < 0.5] = p - 1
    return values


def points_of(seed: int, n: int, p: int) -> np.ndarray:
    """Distinct points other than 0, the largest ones among them."""
    rng = np.random.default_rng(seed)
    drawn = {p - 1, p // 2, 1, *rng.integers(1, p, n, dtype=np.uint64).tolist()}
    return np.array(sorted(drawn, reverse=True)[:n], np.uint64)


def lagrange(xs: list[int], p: int) -> list[int]:
    return [
        math.prod(y for y in xs if y != x)
        * pow(math.prod(y - x for y in xs if y != x), -1, p)
        % p
        for x in xs
    ]


@every
@quick
@given(p=primes, seed=seeds, t=st.integers(0, 9), n=st.integers(0, 70), m=st.integers(0, 3))
def test_poly_eval(field, p, seed, t, n, m):
    coeffs, xs = matrix(seed, t, m, p), matrix(seed + 1, 1, n, p)[0]
    result = field.prime_poly_eval(coeffs, xs, p)
    assert result.shape == (n, m)
    assert result.dtype == np.uint64
    assert result.tolist() == [
        [sum(int(coeffs[j, c]) * int(x) ** j for j in range(t)) % p for c in range(m)]
        for x in xs
    ]


@every
def test_poly_eval_where_both_quotients_are_rounded_down_most(field):
    """Found by a search: with AVX-512 the rest exceeds 2^64 unless their sum is rounded."""
    x, value = 2503699138582300279, 6785835181117495005
    coeffs = np.array([[LARGEST - 1], [value]], np.uint64)
    expected = (value * x + LARGEST - 1) % LARGEST
    for count in (1, 8, 33):
        points = np.full(count, x, np.uint64)
        result = field.prime_poly_eval(coeffs, points, LARGEST)
        assert result.tolist() == [[expected]] * count


@every
@quick
@given(p=primes, seed=seeds, n=st.integers(0, 5), k=st.integers(0, 70), m=st.integers(0, 11))
def test_matmul(field, p, seed, n, k, m):
    a, b = matrix(seed, n, k, p), matrix(seed + 1, k, m, p)
    result = field.prime_matmul(a, b, p)
    assert result.shape == (n, m)
    assert result.dtype == np.uint64
    expected = (a.astype(object) @ b.astype(object)) % p
    assert result.tolist() == expected.tolist() if k else not result.any()


@every
@pytest.mark.parametrize("p", PRIMES)
def test_sums_of_the_largest_products(field, p):
    row = np.full((1, 1000), p - 1, np.uint64)
    assert field.prime_matmul(row, row.T.copy(), p).tolist() == [[1000 % p]]


@every
@quick
@given(p=primes, seed=seeds, n=st.integers(0, 25))
def test_lagrange_at_zero(field, p, seed, n):
    xs = points_of(seed, n, p)
    assert field.prime_lagrange_at_zero(xs, p).tolist() == lagrange(xs.tolist(), p)


@every
@pytest.mark.parametrize("xs", [[1, 0, 3], [0], [5, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8]])
def test_lagrange_needs_different_points_other_than_zero(field, xs):
    with pytest.raises(ZeroDivisionError):
        field.prime_lagrange_at_zero(np.array(xs, np.uint64), LARGEST)


@every
@pytest.mark.parametrize("p", [2**62 - 57, LARGEST])
@pytest.mark.parametrize(
    ("t", "n"), [(67, 100), pytest.param(667, 1000, marks=pytest.mark.large)]
)
def test_shares_give_the_secrets_back(field, p, t, n):
    coeffs, xs = matrix(1, t, 3, p), np.arange(1, n + 1, dtype=np.uint64)
    shares = field.prime_poly_eval(coeffs, xs, p)
    chosen = np.sort(np.random.default_rng(2).permutation(n)[:t])
    weights = field.prime_lagrange_at_zero(xs[chosen], p)
    secrets = field.prime_matmul(weights[None, :], shares[chosen], p)
    assert secrets.tolist() == [coeffs[0].tolist()]


ODD = st.integers(1, 2**62 - 1).map(lambda half: 2 * half + 1)


@pytest.mark.skipif(not _fast.COMPILED, reason="compares the compiled fields with the twin")
@examples(40)
@given(p=ODD, seed=seeds, n=st.integers(1, 60), t=st.integers(1, 60), m=st.integers(1, 9))
def test_every_tier_equals_the_twin_modulo_any_odd_number(p, seed, n, t, m):
    """Products and sums need no prime; only Lagrange's inverses do."""
    coeffs, xs = matrix(seed, t, m, p), matrix(seed + 1, 1, n, p)[0]
    a = matrix(seed + 2, n, t, p)
    values = reference.prime_poly_eval(coeffs, xs, p)
    for name in _kernels.prime_tiers():
        found = FIELDS[name].prime_poly_eval(coeffs, xs, p)
        np.testing.assert_array_equal(found, values)
    found = _kernels.prime_matmul(a, coeffs, p)
    np.testing.assert_array_equal(found, reference.prime_matmul(a, coeffs, p))


@every
@pytest.mark.parametrize("p", [-3, 0, 1, 2, 4, 2**63 - 26, 2**63, 2**63 + 29])
def test_a_modulus_that_is_even_or_too_large_is_rejected(field, p):
    row = np.ones(1, np.uint64)
    for call in (
        lambda: field.prime_poly_eval(row[None], row, p),
        lambda: field.prime_matmul(row[None], row[None], p),
        lambda: field.prime_lagrange_at_zero(row, p),
    ):
        with pytest.raises(ValueError, match="odd prime"):
            call()


@every
def test_wrong_shapes_and_dtypes_are_rejected(field):
    row, square = np.ones(4, np.uint64), np.ones((4, 4), np.uint64)
    for kernel, *arguments in (
        (field.prime_lagrange_at_zero, square),
        (field.prime_lagrange_at_zero, row.astype(np.uint32)),
        (field.prime_matmul, square, square[:3]),
        (field.prime_matmul, square, row),
        (field.prime_matmul, np.asfortranarray(matrix(0, 4, 4, 97)), square),
        (field.prime_poly_eval, row, row),
        (field.prime_poly_eval, square, square),
        (field.prime_poly_eval, square.astype(np.int64), row),
        (field.prime_poly_eval, square, np.ones(8, np.uint64)[::2]),
    ):
        with pytest.raises(ValueError, match=r"."):
            kernel(*arguments, 97)
