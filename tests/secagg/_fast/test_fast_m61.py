"""GF(2^61 - 1): the twin and the compiled kernels against plain integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg._fast import reference

P = 2**61 - 1

FIELDS = {"reference": reference, "active": _fast}
if _fast.COMPILED:  # the tier "ifma" has another way to evaluate polynomials
    from secagg._fast import _kernels

    FIELDS["m61.c"] = _kernels

every = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())
quick = examples(50)

elements = st.one_of(
    st.integers(0, P - 1),
    st.sampled_from([0, 1, 2, P - 1, P - 2, 2**32 - 1, 2**32, 2**60, 2**60 - 1]),
)
pairs = st.lists(st.tuples(elements, elements), max_size=100)
seeds = st.integers(0, 2**32)


def vector(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


def matrix(seed: int, rows: int, columns: int) -> np.ndarray:
    """Half of it random, half of it p - 1, where sums are largest."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, P, (rows, columns), dtype=np.uint64)
    values[rng.random(values.shape) < 0.5] = P - 1
    return values


@every
@quick
@given(pairs=pairs)
def test_add_sub_mul_dot(field, pairs):
    a, b = vector([x for x, _ in pairs]), vector([y for _, y in pairs])
    assert field.m61_add(a, b).tolist() == [(x + y) % P for x, y in pairs]
    assert field.m61_sub(a, b).tolist() == [(x - y) % P for x, y in pairs]
    assert field.m61_mul(a, b).tolist() == [x * y % P for x, y in pairs]
    assert field.m61_dot(a, b) == sum(x * y for x, y in pairs) % P
    assert type(field.m61_dot(a, b)) is int


@every
@pytest.mark.parametrize("size", [31, 32, 33, 64, 1000])
def test_dot_of_the_largest_elements(field, size):
    """The lazy 128-bit sums are fullest when every element is p - 1, which is -1."""
    a = np.full(size, P - 1, np.uint64)
    assert field.m61_dot(a, a) == size
    assert field.m61_matmul(a[None, :], a[:, None]).tolist() == [[size]]


@every
@quick
@given(values=st.lists(elements.filter(bool), max_size=100))
def test_inv(field, values):
    assert field.m61_inv(vector(values)).tolist() == [pow(x, -1, P) for x in values]


@every
def test_zero_has_no_inverse(field):
    for place in (0, 3, 8):
        for zero in (0, P):
            values = np.arange(1, 10, dtype=np.uint64)
            values[place] = zero
            with pytest.raises(ZeroDivisionError):
                field.m61_inv(values)


@every
@quick
@given(seed=seeds, n=st.integers(0, 5), k=st.integers(0, 70), m=st.integers(0, 11))
def test_matmul(field, seed, n, k, m):
    a, b = matrix(seed, n, k), matrix(seed + 1, k, m)
    product = a.astype(object) @ b.astype(object) % P
    result = field.m61_matmul(a, b)
    assert result.shape == (n, m)
    assert result.dtype == np.uint64
    assert result.tolist() == product.tolist() if k else not result.any()


@every
@quick
@given(seed=seeds, t=st.integers(0, 12), n=st.integers(0, 19), m=st.integers(0, 11))
def test_poly_eval(field, seed, t, n, m):
    coeffs, xs = matrix(seed, t, m), matrix(seed + 1, 1, n)[0]
    expected = [
        [sum(int(coeffs[j, c]) * pow(int(x), j, P) for j in range(t)) % P for c in range(m)]
        for x in xs
    ]
    result = field.m61_poly_eval(coeffs, xs)
    assert result.shape == (n, m)
    assert result.tolist() == expected


@every
@quick
@given(xs=st.lists(elements.filter(bool), unique=True, max_size=25))
def test_lagrange_at_zero(field, xs):
    expected = [
        math.prod(y for y in xs if y != x)
        * pow(math.prod(y - x for y in xs if y != x), -1, P)
        % P
        for x in xs
    ]
    assert field.m61_lagrange_at_zero(vector(xs)).tolist() == expected


@every
@pytest.mark.parametrize("xs", [[1, 0, 3], [0], [5, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8]])
def test_lagrange_needs_different_points_other_than_zero(field, xs):
    with pytest.raises(ZeroDivisionError):
        field.m61_lagrange_at_zero(vector(xs))


@every
@pytest.mark.parametrize(("t", "n"), [(67, 100), (667, 1000)])
def test_shares_give_the_secrets_back(field, t, n):
    coeffs, xs = matrix(1, t, 3), np.arange(1, n + 1, dtype=np.uint64)
    shares = field.m61_poly_eval(coeffs, xs)
    chosen = np.sort(np.random.default_rng(2).permutation(n)[:t])
    weights = field.m61_lagrange_at_zero(xs[chosen])
    secrets = field.m61_matmul(weights[None, :], np.ascontiguousarray(shares[chosen]))
    assert secrets.tolist() == [coeffs[0].tolist()]


def dual_of(xs: np.ndarray) -> np.ndarray:
    return reference.m61_mul(reference.m61_lagrange_at_zero(xs), xs)


@every
@quick
@given(
    xs=st.lists(elements.filter(bool), unique=True, min_size=1, max_size=25),
    data=st.data(),
)
def test_errors_are_the_rows_of_the_wrong_values(field, xs, data):
    """Up to half of the surplus exactly; beyond it another word may be near, mostly none is."""
    points, n = vector(xs), len(xs)
    t = data.draw(st.integers(1, n))
    wrong = data.draw(st.sets(st.integers(0, n - 1), max_size=(n - t) // 2))
    word = field.m61_poly_eval(matrix(n, t, 1), points)[:, 0]
    for row in wrong:
        word[row] = (int(word[row]) + data.draw(elements.filter(bool))) % P
    found = field.m61_errors(points, dual_of(points), word, t)
    assert found is not None
    assert found.dtype == np.intp
    assert found.tolist() == sorted(wrong)


@every
def test_errors_of_more_than_half_the_surplus_are_not_found(field):
    xs = np.arange(1, 31, dtype=np.uint64)
    word = field.m61_poly_eval(matrix(1, 11, 1), xs)[:, 0]
    word[:10] = 7  # (30 - 11) / 2 is 9
    assert field.m61_errors(xs, dual_of(xs), word, 11) is None


@pytest.mark.skipif(not _fast.COMPILED, reason="compares the compiled field with its twin")
@examples(15)
@given(seed=seeds, n=st.integers(1, 60), k=st.integers(1, 200), m=st.integers(1, 12))
def test_large_shapes_against_the_reference(seed, n, k, m):
    a, b = matrix(seed, n, k), matrix(seed + 1, k, m)
    xs = np.unique(matrix(seed + 2, 1, k)[0] % (P - 2)) + 1
    for kernel, arguments in [
        ("m61_matmul", (a, b)),
        ("m61_poly_eval", (b, xs)),
        ("m61_lagrange_at_zero", (xs,)),
        ("m61_add", (a.ravel(), a.ravel()[::-1].copy())),
        ("m61_sub", (a.ravel(), a.ravel()[::-1].copy())),
        ("m61_mul", (a.ravel(), a.ravel()[::-1].copy())),
        ("m61_inv", (a.ravel() % (P - 2) + 1,)),
    ]:
        result = getattr(_fast, kernel)(*arguments)
        np.testing.assert_array_equal(result, getattr(reference, kernel)(*arguments))
    assert _fast.m61_dot(xs, xs) == reference.m61_dot(xs, xs)


ROW = np.ones(4, np.uint64)
SQUARE = np.ones((4, 4), np.uint64)


@every
@pytest.mark.parametrize("kernel", ["m61_add", "m61_sub", "m61_mul", "m61_dot"])
def test_binary_kernels_reject_wrong_shapes(field, kernel):
    others = ROW[:3], SQUARE, ROW.astype(np.int64), ROW.astype(float)
    for b in (*others, np.ones(8, np.uint64)[::2]):
        for pair in ((ROW, b), (b, ROW)):
            with pytest.raises(ValueError, match=r"."):
                getattr(field, kernel)(*pair)


@every
def test_other_kernels_reject_wrong_shapes(field):
    for kernel, *arguments in (
        (field.m61_inv, SQUARE),
        (field.m61_inv, ROW.astype(np.uint32)),
        (field.m61_lagrange_at_zero, SQUARE),
        (field.m61_matmul, SQUARE, SQUARE[:3]),
        (field.m61_matmul, SQUARE, ROW),
        (field.m61_matmul, np.asfortranarray(matrix(0, 4, 4)), SQUARE),
        (field.m61_poly_eval, ROW, ROW),
        (field.m61_poly_eval, SQUARE, SQUARE),
        (field.m61_poly_eval, SQUARE.astype(np.int64), ROW),
        *((field.m61_errors, *[ROW[:n]] * 3, t) for n, t in ((3, 0), (3, 4), (0, 0))),
        (field.m61_errors, ROW[:3], ROW, ROW, 1),
    ):
        with pytest.raises(ValueError, match=r"."):
            kernel(*arguments)


@pytest.mark.skipif(not _fast.COMPILED, reason="compares the compiled field with its twin")
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
