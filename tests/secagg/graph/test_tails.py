"""The counting behind (k, t), against brute force on rings small enough to list."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg.graph import Graph, tails

RINGS = [(7, 2), (8, 4), (9, 4), (10, 2), (10, 6)]


def ring(n: int, k: int) -> Graph:
    """A Harary graph on the order 0 … n − 1: k/2 neighbours before and k/2 after."""
    reach = range(-k // 2, k // 2 + 1)
    return Graph({u: tuple(sorted((u + i) % n for i in reach)) for u in range(n)})


def subsets(n: int, size: int) -> Iterator[set[int]]:
    return map(set, combinations(range(n), size))


@given(st.integers(1, 400), st.data())
def test_large_tails_are_the_sum_of_their_terms(population: int, data: st.DataObject) -> None:
    marked, drawn = (data.draw(st.integers(0, population)) for _ in range(2))
    count = data.draw(st.integers(0, drawn))
    ways = sum(
        math.comb(marked, x) * math.comb(population - marked, drawn - x)
        for x in range(count, drawn + 1)
    )
    expected = Fraction(ways, math.comb(population, drawn))
    assert tails.at_least(population, marked, drawn, count) == expected


@pytest.mark.parametrize(("n", "k"), RINGS)
def test_e1_and_e3_are_exact_for_one_client_and_bound_all(n: int, k: int) -> None:
    holders = ring(n, k).holders
    for marked in range(n):
        sets = list(subsets(n, marked))
        for limit in range(1, k + 1):
            # corrupt neighbours of an honest client 0
            honest = [s for s in sets if 0 not in s]
            hits = sum(len(s.intersection(holders[0])) >= limit for s in honest)
            one = tails.at_least(n - 1, marked, k, limit)
            assert one == Fraction(hits, len(honest))
            anyone = sum(
                any(len(s.intersection(holders[u])) >= limit for u in range(n) if u not in s)
                for s in sets
            )
            bound = tails.too_many_corrupt(n, marked, k, limit)
            assert Fraction(anyone, len(sets)) <= bound == min(1, n * one)
            # clients left with fewer than `limit` of their k neighbours
            few = sum(
                any(len(set(holders[u]) - s - {u}) < limit for u in range(n)) for s in sets
            )
            assert Fraction(few, len(sets)) <= tails.few_left(n, marked, k, limit)


@pytest.mark.parametrize(("n", "k"), RINGS)
def test_e2_is_exact_until_three_gaps_fit_and_a_bound_beyond(n: int, k: int) -> None:
    """Every set of missing clients, with the protocol's own test of connectedness."""
    graph, worst = ring(n, k), Fraction(0)
    for missing in range(n - 1):
        sets = list(subsets(n, missing))
        cut = sum(not graph.is_connected(set(range(n)) - s) for s in sets)
        exact = Fraction(cut, len(sets))
        worst = max(worst, exact)
        bound = tails.in_pieces(n, missing, k)
        assert worst <= bound
        rising = missing <= (k * n - 2) // (k + 2) + 1
        if missing < 3 * k // 2 and rising:  # so far the bound is an equality
            assert exact == bound
        if missing < k:
            assert exact == 0


def test_bits_of_tiny_probabilities_do_not_underflow() -> None:
    for probability, bits in ((Fraction(1, 1 << 5000), 5000), (Fraction(1), 0)):
        assert tails.bits(probability) == bits
    assert tails.bits(Fraction(0)) == math.inf


# ---- without sums


CASES = st.tuples(st.integers(3, 300), st.data())


def draw_tail(n: int, data: st.DataObject) -> tuple[int, int, int]:
    """Marked, neighbours and a count of marked neighbours, most of them above the mean."""
    marked, k = (data.draw(st.integers(1, n - 1)) for _ in range(2))
    return marked, k, data.draw(st.integers(marked * k // (n - 1), min(marked, k) + 1))


@given(CASES, st.integers(0, 60))
def test_is_rare_agrees_with_the_sum(case: tuple[int, st.DataObject], power: int) -> None:
    n, (marked, k, count) = case[0], draw_tail(*case)
    bound = Fraction(1, 1 << power)
    exact = min(Fraction(1), n * tails.at_least(n - 1, marked, k, count))
    assert tails.is_rare(n, marked, k, count, bound) == (exact <= bound)
    # and at the boundary itself
    assert tails.is_rare(n, marked, k, count, exact)
    less = exact * Fraction(10**9 - 1, 10**9)
    assert not exact or not tails.is_rare(n, marked, k, count, less)


@given(CASES)
def test_bounds_beyond_the_counted_are_upper_bounds(case: tuple[int, st.DataObject]) -> None:
    n, (marked, k, count) = case[0], draw_tail(*case)
    exact = tails.at_least(n - 1, marked, k, count)
    cut = tails.in_pieces(n, marked, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tails, "MOST_COUNTED", 0)
        tail, pieces = tails.at_least(n - 1, marked, k, count), tails.in_pieces(n, marked, k)
        assert exact <= tail <= 1
        assert cut <= pieces <= cut * Fraction(10001, 10000) or pieces == Fraction(1, 2**1024)
        assert not tails.is_rare(n, marked, k, count, exact / 2) or not exact
        if tails.is_rare(n, marked, k, count, Fraction(1, 2**20)):
            assert n * exact <= Fraction(1, 2**20)


def test_bounds_are_close_for_two_to_the_20_clients() -> None:
    """σ = 40 bits among 2^20 clients: 3000 neighbours, exactly and by the bound."""
    n, corrupt, k = 1 << 20, 52_429, 3000
    bound = tails.bits(tails.too_many_corrupt(n, corrupt, k, 266))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tails, "MOST_COUNTED", 3000)
        exact = tails.bits(tails.too_many_corrupt(n, corrupt, k, 266))
    assert 35 < exact < 60
    assert exact - 0.1 < bound <= exact
