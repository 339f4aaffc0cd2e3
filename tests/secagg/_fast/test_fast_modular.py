"""Batches of large numbers: the twin and every compiled tier against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from modular_case import Case, batch, every, limbs_of, numbers

quick = examples(40)


@st.composite
def moduli(draw, largest: int = 100) -> int:
    """Odd numbers of so many limbs: random, all ones, just above or below a power of two."""
    limbs = draw(st.one_of(st.integers(1, 9), st.integers(1, largest)))
    bits = draw(st.integers(64 * limbs - 63, 64 * limbs))
    top = 1 << bits
    odd = draw(
        st.sampled_from([top - 1, top // 2 + 1, top - 189, 3 * top // 4, None])
    ) or random.Random(draw(st.integers(0, 2**32))).randrange(top // 2, top)
    return max(odd, top // 2) | 1


@st.composite
def squares(draw, sizes=(8, 16, 24, 32, 48)):
    """Squares of odd numbers that mostly fill their limbs, as Paillier's n and p do.

    The kernels serve some sizes as squares and others, such as 8 and 24 limbs, as any modulus.
    """
    limbs = draw(st.sampled_from([*sizes, 2, 9]))
    top = 1 << 64 * limbs - draw(st.sampled_from([0, 0, 1, 40]))
    root = draw(st.sampled_from([top - 1, top // 2 + 1, top - 189, None]))
    if root is None:
        root = random.Random(draw(st.integers(0, 2**32))).randrange(top // 2, top)
    return (root | 1) ** 2


seeds = st.integers(0, 2**32)
counts = st.integers(0, 20)


@every
@quick
@given(n=st.one_of(moduli(), squares()), seed=seeds, count=counts)
def test_multiply(modular, n, seed, count):
    case = Case(modular, n, seed)
    a, b = case.draw(count), case.draw(count)
    assert case.multiply(a, b) == [x * y % n for x, y in zip(a, b, strict=True)]
    assert case.multiply(a, b[:1]) == [x * b[0] % n for x in a]


@every
@quick
@given(
    n=st.one_of(moduli(largest=40), squares((8, 16, 24, 32))),
    seed=seeds,
    count=counts,
    exponent=st.one_of(
        st.integers(0, 40), st.integers(0, 2**64), st.integers(0, 2**200), st.just(2**192 - 1)
    ),
    leading=st.integers(0, 9),
)
def test_powers_equal_those_of_python(modular, n, seed, count, exponent, leading):
    case = Case(modular, n, seed)
    base = case.draw(count)
    limbs = -(-exponent.bit_length() // 64) + leading
    assert case.power(base, exponent, limbs) == [pow(x, exponent, n) for x in base]


@every
@quick
@given(
    n=st.one_of(moduli(largest=40), squares((8, 16, 24, 32))),
    seed=seeds,
    count=counts,
    window=st.integers(1, 6),
    windows=st.integers(0, 20),
    leading=st.integers(0, 1),
)
def test_power_of_a_fixed_base(modular, n, seed, count, window, windows, leading):
    case = Case(modular, n, seed)
    base = case.draw(1)[0]
    table = case.table(base, windows, window)
    most = 1 << (window * windows)
    draw = random.Random(seed)
    exponents = [draw.choice([0, most - 1, draw.randrange(most)]) for _ in range(count)]
    limbs = -(-window * windows // 64) + leading
    expected = [pow(base, e, n) for e in exponents]
    assert case.power_fixed(table, exponents, limbs, window) == expected


@every
def test_every_size(modular):
    """Also the largest numbers of that size, where carries are longest."""
    for limbs in range(1, 101):
        for n in ((1 << 64 * limbs) - 1, (1 << 64 * (limbs - 1)) | 1):
            a = [n - 1, n // 2, 1 % n, 0, n - 1]
            assert Case(modular, n).multiply(a, a) == [x * x % n for x in a]


@every
def test_largest_modulus(modular):
    n = (1 << 16384) - 1
    case = Case(modular, n)
    a = [n - 1, n - 2, n // 2, n // 3, *case.draw(6)]
    assert case.multiply(a, a) == [x * x % n for x in a]
    assert case.power(a[:2], 2**64 - 1, 1) == [pow(x, 2**64 - 1, n) for x in a[:2]]


@every
@pytest.mark.parametrize("limbs", [8, 16, 24, 32, 48, 64])
def test_square_moduli_at_the_edges_of_both_parts(modular, limbs):
    """Numbers x0 + x1 n with parts at 0, 1 and n - 1, so that sums and borrows are longest."""
    for root in ((1 << 64 * limbs) - 1, (1 << 64 * limbs - 1) | 1):
        case, n = Case(modular, root**2), root**2
        parts = (0, 1, 2, root // 2, root - 2, root - 1)
        a = [low + high * root for low in parts for high in parts]
        assert case.multiply(a, a[::-1]) == [x * y % n for x, y in zip(a, a[::-1], strict=True)]
        assert case.power(a, 3, 1) == [pow(x, 3, n) for x in a]


@every
def test_root_of_another_size_is_rejected(modular):
    case = Case(modular, (2**1024 - 1) ** 2)
    n, square, root = case.constants
    out = case.empty(1)
    for wrong in (root[:-1], np.append(root, root), np.zeros(16, np.uint64)):
        with pytest.raises(ValueError):  # noqa: PT011 - kernels raise no other
            modular.modular_multiply(out, out, out, n, square, np.ascontiguousarray(wrong))


@every
@pytest.mark.parametrize(
    ("n", "windows", "window", "exponents"),
    [
        (2**127 - 1, 4, 3, [i * 1009 % 4096 for i in range(2053)]),  # several slices
        (2**61 - 1, 1, 16, [0, 1, 65535, 40503]),  # the widest window
    ],
)
def test_powers_of_many_exponents_and_the_widest_window(modular, n, windows, window, exponents):
    case = Case(modular, n)
    table = case.table(3, windows, window)
    expected = [pow(3, e, n) for e in exponents]
    assert case.power_fixed(table, exponents, 1, window) == expected


@every
@quick
@given(n=st.one_of(moduli(largest=20), squares((8, 16))), seed=seeds)
def test_numbers_above_the_modulus_are_reduced(modular, n, seed):
    case = Case(modular, n, seed)
    most = (1 << 64 * case.limbs) - 1
    base = [most, most - 1, n, min(n + 1, most), random.Random(seed).randint(0, most)]
    assert case.multiply(base, base[::-1]) == [
        x * y % n for x, y in zip(base, base[::-1], strict=True)
    ]
    assert case.multiply(base, [most]) == [x * most % n for x in base]
    assert case.power(base, 37, 1) == [pow(x, 37, n) for x in base]
    assert case.power_fixed(case.table(most, 3, 2), [63, 0], 1, 2) == [pow(most, 63, n), 1 % n]


@every
def test_modulus_one_has_only_zero(modular):
    case = Case(modular, 1)
    assert case.multiply([0] * 3, [0] * 3) == [0] * 3
    assert case.power([0] * 3, 0, 1) == [0] * 3
    for windows in (0, 2):
        assert case.power_fixed(case.table(0, windows, 2), [0] * 3, 1, 2) == [0] * 3


@every
def test_results_may_replace_their_operands(modular):
    case = Case(modular, 2**521 - 1, 5)
    a, b = case.draw(11), case.draw(11)
    product = [x * y % case.n for x, y in zip(a, b, strict=True)]
    for place in (0, 1):
        rows = [batch(a, case.limbs), batch(b, case.limbs)]
        modular.modular_multiply(*rows, rows[place], *case.constants)
        assert numbers(rows[place]) == product
    rows = batch(a, case.limbs)
    modular.modular_power(rows, limbs_of(77, 1), rows, *case.constants)
    assert numbers(rows) == [pow(x, 77, case.n) for x in a]


@every
@pytest.mark.parametrize("name", ["a", "b", "out", "modulus", "square"])
def test_shapes_of_a_product_are_checked(modular, name):
    case = Case(modular, 2**127 - 1)
    good = {name: case.empty(3) for name in ("a", "b", "out")}
    good |= dict(zip(("modulus", "square", "root"), case.constants, strict=True))
    modular.modular_multiply(**good)
    bad = [good[name][..., :1].copy(), good[name][..., ::-1], good[name].astype(np.int64)]
    if good[name].ndim == 2:
        bad += [good[name][:2].copy(), good[name][:0].copy(), good[name][0].copy()]
    else:
        bad += [good[name][None, :].copy()]
    for array in bad:
        with pytest.raises(ValueError):  # noqa: PT011
            modular.modular_multiply(**{**good, name: array})


@every
def test_shapes_of_powers_are_checked(modular):
    case = Case(modular, 2**127 - 1)
    base, out, exponent = case.empty(3), case.empty(3), limbs_of(5, 1)
    table = case.table(3, 4, 3)
    wide = np.zeros((4, 8, modular.modular_width(2) + 1), np.uint64)
    power, fill, fixed = (
        getattr(modular, f"modular_{name}") for name in ("power", "table", "power_fixed")
    )
    for call, *arguments in (
        (power, base, exponent, out[:2]),
        (power, base, exponent[None, :], out),
        (power, base, exponent.astype(float), out),
        (fill, base, table, 3),
        (fill, base[0, :1].copy(), table, 3),
        *((fill, base[0], table, window) for window in (0, 2, 17)),
        *((fill, base[0], wrong, 3) for wrong in (table[0], wide)),
        (fixed, table, base[:2], out, 3),
        (fixed, table, exponent, out, 3),
        (fixed, table, base, out, 2),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            call(*arguments, *case.constants)


@every
@pytest.mark.parametrize("beyond", [12, 13, 63, 64, 127])
def test_exponent_beyond_the_table_is_rejected(modular, beyond):
    case = Case(modular, 2**127 - 1)
    table = case.table(3, 4, 3)
    assert case.power_fixed(table, [2**12 - 1], 2, 3) == [pow(3, 2**12 - 1, 2**127 - 1)]
    for place in range(3):
        exponents = [1, 2, 3]
        exponents[place] |= 1 << beyond
        with pytest.raises(ValueError, match="bits"):
            case.power_fixed(table, exponents, 2, 3)


@every
def test_even_modulus_is_rejected(modular):
    case = Case(modular, 2**127 - 1)
    for n in (2**127 - 2, 2**63 - 1):
        with pytest.raises(ValueError, match="limb"):
            modular.modular_multiply(*[case.empty(1)] * 3, limbs_of(n, 2), *case.constants[1:])


@every
def test_modulus_beyond_the_headroom_is_rejected(modular):
    one = np.ones((1, 257), np.uint64)
    for call in (
        lambda: modular.modular_radix(257),
        lambda: modular.modular_width(0),
        lambda: modular.modular_multiply(one, one, one.copy(), one[0], one[0], one[0, :0]),
        lambda: modular.modular_multiply(*[one[:, :0].copy()] * 3, *[one[0, :0]] * 3),
    ):
        with pytest.raises(ValueError, match=r"\[1, 256\]"):
            call()
