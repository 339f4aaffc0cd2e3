"""Batches of large numbers: the twin and every compiled tier against Python's integers."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

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
counts = st.integers(1, 20)


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
@pytest.mark.parametrize("limbs", range(1, 101))
def test_every_size(modular, limbs):
    """Also the largest numbers of that size, where carries are longest."""
    for n in ((1 << 64 * limbs) - 1, (1 << 64 * (limbs - 1)) | 1):
        case = Case(modular, n)
        a = [n - 1, n // 2, 1 % n, 0, n - 1]
        assert case.multiply(a, a) == [x * x % n for x in a]


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
def test_more_powers_than_share_a_slice_of_the_table(modular):
    case = Case(modular, 2**127 - 1)
    table = case.table(3, 4, 3)
    exponents = [i * 1009 % 4096 for i in range(2053)]
    expected = [pow(3, e, 2**127 - 1) for e in exponents]
    assert case.power_fixed(table, exponents, 1, 3) == expected


@every
def test_powers_with_the_widest_window_are_exact(modular):
    case = Case(modular, 2**61 - 1)
    table = case.table(7, 1, 16)
    exponents = [0, 1, 65535, 40503]
    expected = [pow(7, e, 2**61 - 1) for e in exponents]
    assert case.power_fixed(table, exponents, 1, 16) == expected


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
def test_empty_batch_gives_an_empty_result(modular):
    case = Case(modular, 2**127 - 1)
    assert case.multiply([], []) == []
    assert case.power([], 5, 1) == []
    assert case.power_fixed(case.table(3, 4, 3), [], 1, 3) == []


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


N_KNOWN = 0xD5E19F1A0C473B8D91A65E207F3C4B19E8D26A753C1F9B046D8E2A571C93B4EF
"""An odd number of 256 bits; the powers below are from Python's own ``pow``."""
KNOWN = [  # base, exponent, base^exponent mod N_KNOWN
    (
        0x6E340B9CFFB37A989CA544E6BB780A2C78901D3FB33738768511A30617AFA01D,
        0x2,
        0xB9677E8DA5A909AA069BF5F193FA59177F1C7F0B69A34A542CF0994504898E61,
    ),
    (
        0x4BF5122F344554C53BDE2EBB8CD2B7E3D1600AD631C385A5D7CCE23C7785459A,
        0x10001,
        0xAC114CF0AF79025C67F5655CB2932A8C6E38665777A6DAD336CA20F0A44133BA,
    ),
    (
        0x5E015AEF4B8A8FFC5B4FF8546FBB8E73D23F33BC21E8944DDE8C04147C42497,
        0x8000000000000001,
        0x7B950BBEF60E4C6F5A35DAEC8EDE821AAD2E9CCB43F6B1608A391B5479134FAE,
    ),
    (
        0x84FED08B978AF4D7D196A7446A86B58009E636B611DB16211B65A9AADFF29C5,
        0x3F79BB7B435B05321651DAEFD374CDC681DC06FAA65E374E38337B88CA046DEA,
        0xB8D5B37477B4FA52E7415913F2361879B593836D86635614589E6A17BDED7825,
    ),
]


@every
@pytest.mark.parametrize(("base", "exponent", "power"), KNOWN)
def test_known_powers(modular, base, exponent, power):
    case = Case(modular, N_KNOWN)
    limbs = -(-exponent.bit_length() // 64)
    assert case.power([base] * 9, exponent, limbs) == [power] * 9
    table = case.table(base, 64, 4)
    assert case.power_fixed(table, [exponent] * 9, limbs, 4) == [power] * 9
    assert case.multiply([KNOWN[0][0]], [KNOWN[0][0]]) == [KNOWN[0][2]]


@every
def test_threads_share_nothing(modular):
    case = Case(modular, 2**521 - 1, 9)
    base = case.draw(40)
    rows, out = batch(base, case.limbs), case.empty(40)
    exponent = limbs_of(2**70 + 5, 2)

    def run(first: int) -> None:
        part = slice(first, first + 5)
        modular.modular_power(rows[part], exponent, out[part], *case.constants)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(0, 40, 5)))
    assert numbers(out) == [pow(x, 2**70 + 5, case.n) for x in base]
