"""The finder of (k, t): what it finds is safe, nothing smaller is, and whoever asks is told."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import secagg
from secagg import ParameterError, finder, tails
from secagg.graph import Recommendation, privacy_bits, recommend

FRACTIONS = st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.33, 0.45])
SECURITY = st.sampled_from(["semi-honest", "semi-malicious"])


def is_good(
    n: int, k: int, t: int, bad: int, gone: int, security: str, sigma: int, eta: int
) -> bool:
    """E1, E2 and E3 written out once more, from the definition."""
    if n - bad - gone < 2:
        return False
    least_bad = {"semi-honest": t, "semi-malicious": 2 * t - (k + 1)}[security]
    e1 = n * tails.at_least(n - 1, bad, k, least_bad)
    e2 = tails.in_pieces(n, bad + gone, k)
    e3 = n * tails.at_least(n - 1, gone, k, k - t + 1)
    return e1 + e2 <= Fraction(1, 2**sigma) and e3 <= Fraction(1, 2**eta)


@given(st.integers(3, 90), FRACTIONS, FRACTIONS, SECURITY, st.integers(5, 45))
@settings(deadline=None)
def test_it_is_the_smallest_that_is_good(
    n: int, corrupt: float, dropout: float, security: str, sigma: int
) -> None:
    """Against a search over every (k, t)."""
    eta = sigma // 2
    bad, gone = (math.ceil(round(x * n, 9)) for x in (corrupt, dropout))
    good = [
        (k, t)
        for k in range(2, n - 1, 2)
        for t in range(2, k + 1)
        if is_good(n, k, t, bad, gone, security, sigma, eta)
    ]
    try:
        found = recommend(n, corrupt, dropout, security, sigma, eta)
    except ParameterError:
        assert not good
        lowest = n // 2 + 1
        while lowest <= (bad if security == "semi-honest" else (n + bad) / 2):
            lowest += 1
        assert n - bad - gone < 2 or lowest > n - gone
        return
    if found.neighbours is None:
        assert not good
        assert n // 2 < found.threshold <= found.highest_threshold == n - gone
        assert privacy_bits(n, None, found.threshold, corrupt, dropout, security) == math.inf
    else:
        assert tuple(found) == min(good)
        assert [t for k, t in good if k == found.neighbours] == list(
            range(found.threshold, found.highest_threshold + 1)
        )
        assert found.privacy_bits >= sigma - 1e-9
        assert found.completion_bits >= eta - 1e-9


def test_it_unpacks_and_carries_what_it_achieves() -> None:
    found = secagg.graph.recommend(1000, 0.05, 0.05)
    k, t = found
    assert isinstance(found, Recommendation)
    assert (k, t) == (found.neighbours, found.threshold) == (34, 18)
    assert found.highest_threshold == 19
    assert found.privacy_bits == privacy_bits(1000, 34, 18, 0.05, 0.05)
    assert found.privacy_bits == pytest.approx(42.317, abs=0.001)
    assert found.completion_bits == pytest.approx(37.407, abs=0.001)


def test_what_is_safe_for_many_is_as_safe_for_the_fewer_that_turn_up() -> None:
    """A client judges n_clients; the graph is drawn on those that advertised keys.

    Rounding up can make one client in 199 a larger fraction: that costs less than half a bit.
    """
    for corrupt, dropout in [(0.05, 0.05), (0.2, 0.1)]:
        k, t = recommend(1000, corrupt, dropout)
        for n in range(k + 2, 1000, 7):
            assert privacy_bits(n, k, t, corrupt, dropout) > 39.5


def test_a_client_behind_a_lying_server_needs_its_own_answer_counted() -> None:
    """The client itself gives a share of its b: with x corrupt, 2t ≤ k + 1 + x exposes it.

    Every way for the k − x honest neighbours to be asked for one kind each, and the client for
    its own share of b.
    """
    n, corrupt = 40, 0.1
    bad = 4
    for k in range(4, 20, 2):
        for t in range(2, k + 1):
            exposing = [
                x
                for x in range(bad + 1)
                if any(a + x + 1 >= t and k - x - a + x >= t for a in range(k - x + 1))
            ]
            least = min(exposing, default=k + 1)
            expected = n * tails.at_least(n - 1, bad, k, least)
            bound = expected + tails.in_pieces(n, bad, k)
            found = privacy_bits(n, k, t, corrupt, 0, "semi-malicious")
            assert found == tails.bits(min(Fraction(1), bound))


def test_one_honest_survivor_has_no_privacy() -> None:
    assert privacy_bits(10, 4, 3, 0.4, 0.5) == 0
    assert privacy_bits(10, 4, 3, 0.7, 0.7) == 0
    assert privacy_bits(10, None, 6, 0.5, 0.4) == 0
    assert privacy_bits(10, None, 6, 0.5, 0.3) == math.inf
    assert privacy_bits(10, None, 6, 0.6, 0.2) == 0
    assert privacy_bits(10, 12, 6, 0.5, 0.3) == math.inf  # everyone is a neighbour


def test_counts_are_rounded_up_from_the_decimal_that_was_written() -> None:
    assert finder._counts(100, 0.07, 0.0701, "semi-honest") == (7, 8)
    assert finder._counts(1000, 0.001, 1e-9, "semi-honest") == (1, 1)
    assert finder._counts(10, 0, 0.0, "semi-honest") == (0, 0)
    assert recommend(np.int64(1000), np.float64(0.05), 0.05) == recommend(1000, 0.05, 0.05)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((2, 0.0, 0.0), "n is 2"),
        ((1 << 21, 0.0, 0.0), "n is 2097152"),
        ((100.0, 0.0, 0.0), "n must be an int"),
        ((100, -0.1, 0.0), "corrupt is -0.1"),
        ((100, 0.0, 1.0), "dropout is 1.0"),
        ((100, float("nan"), 0.0), "corrupt is nan"),
        ((100, True, 0.0), "corrupt is True"),
        ((100, [0.1], 0.0), r"corrupt is \[0.1\]"),
        ((100, 0.1, 0.1, "active"), "security 'active'"),
        ((100, 0.1, 0.1, "semi-honest", 0), "sigma is 0"),
        ((100, 0.1, 0.1, "semi-honest", 40, 129), "eta is 129"),
        ((100, 0.6, 0.3, "semi-malicious"), "60 of 100 clients corrupt and 30 dropping"),
        ((100, 0.6, 0.3, "semi-malicious"), "a threshold of 81, and 70 are sure"),
        ((10, 0.1, 0.8), "one client's vector"),
        ((100, 0.5, 0.5), "expect less of both, or gather more"),
        ((4, 0.0, 0.5), "not even the complete graph"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(
    arguments: tuple[object, ...], named: str
) -> None:
    with pytest.raises(ParameterError, match=named):
        recommend(*arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((1, None, 1, 0.0, 0.0), "n is 1"),
        ((10, 1, 1, 0.0, 0.0), "neighbours is 1"),
        ((10, 4, 0, 0.0, 0.0), "threshold is 0"),
        ((10, 4, 3, 0.0, 2), "dropout is 2"),
    ],
)
def test_bits_of_nothing_are_refused_by_name(arguments: tuple[object, ...], named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        privacy_bits(*arguments)
