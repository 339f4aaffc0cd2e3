"""Prime fields: the twins and every compiled tier against plain integers."""

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

P = 2**61 - 1
LARGEST = 2**63 - 25
PRIMES = [
    3, 5, 97, 65537, 2**31 - 1, 2**32 - 5, 2**32 + 15, 2**52 - 47, 2**52 + 21, 2**61 - 1,
    2**62 - 57, 2**62 + 135, LARGEST,
]  # fmt: skip
"""Beside the powers of two at which an implementation changes its arithmetic."""


def field_of(kernels, tier=None) -> SimpleNamespace:
    """The kernels for any prime; a tier has its own way to evaluate polynomials."""
    return SimpleNamespace(
        primes=PRIMES,
        lagrange=kernels.prime_lagrange_at_zero,
        matmul=kernels.prime_matmul,
        poly_eval=(tier or kernels).prime_poly_eval,
    )


def m61_of(kernels) -> SimpleNamespace:
    """The kernels for 2^61 - 1, which take no modulus."""
    return SimpleNamespace(
        primes=[P],
        lagrange=lambda xs, p: kernels.m61_lagrange_at_zero(xs),
        matmul=lambda a, b, p: kernels.m61_matmul(a, b),
        poly_eval=lambda coeffs, xs, p: kernels.m61_poly_eval(coeffs, xs),
    )


M61 = {"reference": reference, "active": _fast}
FIELDS = {"any prime, reference": field_of(reference), "any prime, active": field_of(_fast)}
if _fast.COMPILED:  # the tier "ifma" has another way to evaluate polynomials
    from secagg._fast import _kernels

    M61["m61.c"] = _kernels
    for tier in _kernels.prime_tiers():
        FIELDS[tier] = field_of(_kernels, _kernels.Primes(tier))
FIELDS |= {f"m61, {name}": m61_of(kernels) for name, kernels in M61.items()}

every = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())
every_m61 = pytest.mark.parametrize("kernels", M61.values(), ids=M61.keys())
compiled = pytest.mark.skipif(not _fast.COMPILED, reason="compares kernels with their twin")
quick = examples(50)

elements = st.one_of(
    st.integers(0, P - 1),
    st.sampled_from([0, 1, 2, P - 1, P - 2, 2**32 - 1, 2**32, 2**60, 2**60 - 1]),
)
units = elements.filter(bool)
pairs = st.lists(st.tuples(elements, elements), max_size=100)
seeds = st.integers(0, 2**32)


def vector(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


def matrix(seed: int, rows: int, columns: int, p: int = P) -> np.ndarray:
    """Half of it random, half of it p - 1, where sums are largest."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, p, (rows, columns), dtype=np.uint64)
    values[rng.random(values.shape) < 0.5] = p - 1
    return values


def points_of(seed: int, n: int, p: int) -> np.ndarray:
    """Distinct points other than 0, the largest among them."""
    rng = np.random.default_rng(seed)
    drawn = {p - 1, p // 2, 1, *rng.integers(1, p, n, dtype=np.uint64).tolist()}
    return vector(sorted(drawn, reverse=True)[:n])


def prime_of(field, seed: int) -> int:
    return field.primes[seed % len(field.primes)]


@every
@quick
@given(seed=seeds, t=st.integers(0, 12), n=st.integers(0, 70), m=st.integers(0, 11))
def test_poly_eval(field, seed, t, n, m):
    p = prime_of(field, seed)
    coeffs, xs = matrix(seed, t, m, p), matrix(seed + 1, 1, n, p)[0]
    result = field.poly_eval(coeffs, xs, p)
    assert (result.shape, result.dtype) == ((n, m), np.uint64)
    assert result.tolist() == [
        [sum(int(coeffs[j, c]) * pow(int(x), j, p) for j in range(t)) % p for c in range(m)]
        for x in xs
    ]


@pytest.mark.parametrize("field", [f for f in FIELDS.values() if LARGEST in f.primes])
def test_poly_eval_where_both_quotients_are_rounded_down_most(field):
    """Found by a search: with AVX-512 the rest exceeds 2^64 unless their sum is rounded."""
    x, value = 2503699138582300279, 6785835181117495005
    coeffs = vector([[LARGEST - 1], [value]])
    expected = (value * x + LARGEST - 1) % LARGEST
    for count in (1, 8, 33):
        result = field.poly_eval(coeffs, np.full(count, x, np.uint64), LARGEST)
        assert result.tolist() == [[expected]] * count


@every
@quick
@given(seed=seeds, n=st.integers(0, 5), k=st.integers(0, 70), m=st.integers(0, 11))
def test_matmul(field, seed, n, k, m):
    p = prime_of(field, seed)
    a, b = matrix(seed, n, k, p), matrix(seed + 1, k, m, p)
    result = field.matmul(a, b, p)
    assert (result.shape, result.dtype) == ((n, m), np.uint64)
    expected = (a.astype(object) @ b.astype(object)) % p
    assert result.tolist() == expected.tolist() if k else not result.any()


@every
def test_sums_of_the_largest_products(field):
    """The lazy 128-bit sums are fullest when every element is p - 1, which is -1."""
    for p in field.primes:
        for size in (31, 32, 33, 64, 1000):
            row = np.full((1, size), p - 1, np.uint64)
            assert field.matmul(row, row.T.copy(), p).tolist() == [[size % p]]


@every
@quick
@given(seed=seeds, n=st.integers(0, 25))
def test_lagrange_at_zero(field, seed, n):
    p = prime_of(field, seed)
    xs = points_of(seed, n, p)
    expected = []
    for x in xs.tolist():
        others = [y for y in xs.tolist() if y != x]
        below = pow(math.prod(y - x for y in others), -1, p)
        expected.append(math.prod(others) * below % p)
    assert field.lagrange(xs, p).tolist() == expected


@every
@pytest.mark.parametrize("xs", [[1, 0, 3], [0], [5, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8]])
def test_lagrange_needs_different_points_other_than_zero(field, xs):
    with pytest.raises(ZeroDivisionError):
        field.lagrange(vector(xs), field.primes[-1])


ODD = st.integers(1, 2**62 - 1).map(lambda half: 2 * half + 1)


@compiled
@examples(40)
@given(p=ODD, seed=seeds, n=st.integers(1, 60), t=st.integers(1, 60), m=st.integers(1, 9))
def test_every_tier_equals_the_twin_modulo_any_odd_number(p, seed, n, t, m):
    """Products and sums need no prime; only Lagrange's inverses do."""
    coeffs, xs = matrix(seed, t, m, p), matrix(seed + 1, 1, n, p)[0]
    a = matrix(seed + 2, n, t, p)
    values = reference.prime_poly_eval(coeffs, xs, p)
    for name in _kernels.prime_tiers():
        np.testing.assert_array_equal(FIELDS[name].poly_eval(coeffs, xs, p), values)
    found = _kernels.prime_matmul(a, coeffs, p)
    np.testing.assert_array_equal(found, reference.prime_matmul(a, coeffs, p))


ROW = np.ones(4, np.uint64)
SQUARE = np.ones((4, 4), np.uint64)


@pytest.mark.parametrize("field", [f for f in FIELDS.values() if LARGEST in f.primes])
@pytest.mark.parametrize("p", [-3, 0, 1, 2, 4, 2**63 - 26, 2**63, 2**63 + 29])
def test_a_modulus_that_is_even_or_too_large_is_rejected(field, p):
    for call in (
        lambda: field.poly_eval(SQUARE, ROW, p),
        lambda: field.matmul(SQUARE, SQUARE, p),
        lambda: field.lagrange(ROW, p),
    ):
        with pytest.raises(ValueError, match="odd prime"):
            call()


@every
def test_wrong_shapes_and_dtypes_are_rejected(field):
    for kernel, *arguments in (
        (field.lagrange, SQUARE),
        (field.lagrange, ROW.astype(np.uint32)),
        (field.matmul, SQUARE, SQUARE[:3]),
        (field.matmul, SQUARE, ROW),
        (field.matmul, np.asfortranarray(matrix(0, 4, 4, 3)), SQUARE),
        (field.poly_eval, ROW, ROW),
        (field.poly_eval, SQUARE, SQUARE),
        (field.poly_eval, SQUARE.astype(np.int64), ROW),
        (field.poly_eval, SQUARE, np.ones(8, np.uint64)[::2]),
    ):
        with pytest.raises(ValueError, match=r"."):
            kernel(*arguments, field.primes[-1])


@every_m61
@quick
@given(pairs=pairs, values=st.lists(units, max_size=100))
def test_vectors_of_m61(kernels, pairs, values):
    a, b = vector([x for x, _ in pairs]), vector([y for _, y in pairs])
    assert kernels.m61_add(a, b).tolist() == [(x + y) % P for x, y in pairs]
    assert kernels.m61_sub(a, b).tolist() == [(x - y) % P for x, y in pairs]
    assert kernels.m61_mul(a, b).tolist() == [x * y % P for x, y in pairs]
    assert kernels.m61_dot(a, b) == sum(x * y for x, y in pairs) % P
    assert type(kernels.m61_dot(a, b)) is int
    largest = np.full(len(values), P - 1, np.uint64)
    assert kernels.m61_dot(largest, largest) == len(values)
    assert kernels.m61_inv(vector(values)).tolist() == [pow(x, -1, P) for x in values]


@every_m61
def test_zero_has_no_inverse(kernels):
    for place in (0, 3, 8):
        for zero in (0, P):
            values = np.arange(1, 10, dtype=np.uint64)
            values[place] = zero
            with pytest.raises(ZeroDivisionError):
                kernels.m61_inv(values)


@every_m61
def test_vectors_of_m61_that_do_not_fit_are_rejected(kernels):
    binary = kernels.m61_add, kernels.m61_sub, kernels.m61_mul, kernels.m61_dot
    others = ROW[:3], SQUARE, ROW.astype(np.int64), ROW.astype(float), np.ones(8, "u8")[::2]
    for kernel, *arguments in (
        *((kernel, ROW, b) for kernel in binary for b in others),
        *((kernel, b, ROW) for kernel in binary for b in others),
        *((kernels.m61_inv, b) for b in others[1:]),
        *((kernels.m61_errors, *[ROW[:n]] * 3, t) for n, t in ((3, 0), (3, 4), (0, 0))),
        (kernels.m61_errors, ROW[:3], ROW, ROW, 1),
    ):
        with pytest.raises(ValueError, match=r"."):
            kernel(*arguments)


def dual_of(xs: np.ndarray) -> np.ndarray:
    return reference.m61_mul(reference.m61_lagrange_at_zero(xs), xs)


@every_m61
@quick
@given(xs=st.lists(units, unique=True, min_size=1, max_size=25), data=st.data())
def test_errors_are_the_rows_of_the_wrong_values(kernels, xs, data):
    """Up to half of the surplus exactly; beyond it another word may be near, mostly none is."""
    points, n = vector(xs), len(xs)
    t = data.draw(st.integers(1, n))
    wrong = data.draw(st.sets(st.integers(0, n - 1), max_size=(n - t) // 2))
    word = kernels.m61_poly_eval(matrix(n, t, 1), points)[:, 0]
    for row in wrong:
        word[row] = (int(word[row]) + data.draw(units)) % P
    found = kernels.m61_errors(points, dual_of(points), word, t)
    assert found is not None
    assert found.dtype == np.intp
    assert found.tolist() == sorted(wrong)


@compiled
@examples(30)
@given(seed=seeds, n=st.integers(1, 60), data=st.data())
def test_errors_of_any_word_against_the_reference(seed, n, data):
    """Whatever is found, near a codeword or not."""
    t, wrong = data.draw(st.integers(1, n)), data.draw(st.integers(0, n))
    xs = np.unique(matrix(seed, 1, n)[0] % (P - 2)) + 1
    t = min(t, xs.size)
    word = reference.m61_poly_eval(matrix(seed + 1, t, 1), xs)[:, 0]
    word[:wrong] = matrix(seed + 2, 1, xs.size)[0][:wrong]
    ours, twins = (one.m61_errors(xs, dual_of(xs), word, t) for one in (_fast, reference))
    assert (ours is None) == (twins is None)
    assert ours is None or ours.tolist() == twins.tolist()
