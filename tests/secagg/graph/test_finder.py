"""The finder of (k, t): its answer is safe, nothing smaller is, and errors have a remedy."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from types import FrameType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import secagg
from harness import make_params
from secagg import ParameterError
from secagg.graph import finder, privacy_bits, recommend, smallest_cohort, tails
from secagg.graph.cohorts import exposure
from secagg.graph.graph import count

FRACTIONS = st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.33, 0.45])
SECURITY = st.sampled_from(["semi-honest", "semi-malicious"])


def is_good(
    n: int, k: int, t: int, bad: int, gone: int, security: str, sigma: int, eta: int
) -> bool:
    """E1, E2 and E3, computed from the definition."""
    if n - bad - gone < 2:
        return False
    least_bad = {"semi-honest": t, "semi-malicious": 2 * t - (k + 1)}[security]
    e1 = n * tails.at_least(n - 1, bad, k, least_bad)
    e2 = tails.in_pieces(n, bad + gone, k)
    e3 = n * tails.at_least(n - 1, gone, k, k - t + 1)
    return e1 + e2 <= Fraction(1, 2**sigma) and e3 <= Fraction(1, 2**eta)


@given(st.integers(3, 90), FRACTIONS, FRACTIONS, SECURITY, st.integers(5, 45))
@settings(deadline=None)
def test_recommended_graph_is_the_smallest_good_one(
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


def test_recommendation_is_that_of_the_documents_and_can_be_copied() -> None:
    found = recommend(np.int64(1000), np.float64(0.05), 0.05)
    k, t = found
    assert (k, t) == (found.neighbours, found.threshold) == (34, 18)
    assert found.highest_threshold == 19
    assert found.privacy_bits == privacy_bits(1000, 34, 18, 0.05, 0.05)
    assert found.privacy_bits == pytest.approx(42.317, abs=0.001)
    assert found.completion_bits == pytest.approx(37.407, abs=0.001)
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):  # noqa: S301
        assert vars(twin) == vars(found)
        assert twin == found
    with pytest.raises(AttributeError):
        found.threshold = 3
    assert recommend(5, 0.2, 0.4) == (None, 3)  # just as many as are sure to answer


# ---- a server's proposal does not keep a client busy

LIMIT = 30_000


def steps(call: Callable[[], object]) -> int:
    """Count the lines of tails, finder and policy that a call runs through."""
    count, before = 0, sys.gettrace()
    files = {module.__file__ for module in (tails, finder, secagg.protocol.policy)}

    def line(frame: FrameType, event: str, _: object) -> object:
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        count += event == "line"
        return line

    sys.settrace(line)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.fixture
def small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line may take minutes: binomials and products of more than are counted fail."""

    def limited(real: Callable[[int, int], int]) -> Callable[[int, int], int]:
        def checked(n: int, k: int) -> int:
            assert min(k, n - k) <= tails.MOST_COUNTED
            return real(n, k)

        return checked

    monkeypatch.setattr(tails, "comb", limited(math.comb))
    monkeypatch.setattr(tails, "perm", limited(math.perm))
    for cached in (finder.decide, finder._not_private, finder._search):
        cached.cache_clear()


@pytest.mark.usefixtures("small_numbers")
@pytest.mark.parametrize(
    ("n", "k", "t"),
    [
        (1 << 20, 131_072, 2),
        (1 << 20, 131_072, 6_553),  # the mean number of corrupt neighbours is 6553.6
        (1 << 20, 131_072, 6_554),
        (1 << 20, 131_072, 7_300),
        (1 << 20, 1_048_574, 60_000),
        (1 << 20, 65_536, 3_900),  # as many drop out or collude as there are neighbours
        (1 << 20, 2_048, 103),
        (1 << 20, 2_048, 180),
        (1 << 20, 2_048, 2_048),
        (4_000, 3_998, 200),
    ],
)
def test_policy_decides_in_few_steps(n: int, k: int, t: int) -> None:
    params = make_params(n, t, neighbours=k, encoding=secagg.Integers(max=1))
    errors = list[ParameterError]()

    def check() -> None:
        try:
            secagg.ClientPolicy(corrupt=0.05, dropout=0.05).check(params)
        except ParameterError as raised:
            errors.append(raised)

    assert steps(check) < LIMIT
    # what the exact count says of each
    assert bool(errors) == (t < 7_300 and (k, t) not in {(2048, 2048), (65_536, 3_900)})


@pytest.mark.parametrize(
    ("n", "k", "t", "e1_and_e2"), [(46, 20, 10, 8), (51, 22, 11, 10), (53, 22, 11, 10)]
)
def test_e1_and_e2_share_the_probability(n: int, k: int, t: int, e1_and_e2: int) -> None:
    """Each alone keeps this many bits, both together do not."""
    bad, gone = math.ceil(n / 5), math.ceil(n * Fraction("0.45"))
    bound = Fraction(1, 1 << e1_and_e2)
    e1, e2 = tails.too_many_corrupt(n, bad, k, t), tails.in_pieces(n, bad + gone, k)
    assert max(e1, e2) <= bound < e1 + e2
    assert not finder.is_private(n, k, t, 0.2, 0.45, e1_and_e2)
    assert finder.is_private(n, k, t, 0.2, 0.45, e1_and_e2 - 1)


@pytest.mark.usefixtures("small_numbers")
def test_search_for_a_remedy_is_bounded() -> None:
    """If nearly everyone colludes or drops out, it would take many thousand neighbours."""
    params = make_params(1 << 20, 2, neighbours=4, encoding=secagg.Integers(max=1))
    policy = secagg.ClientPolicy(corrupt=0.48, dropout=0.48)

    def check() -> None:
        with pytest.raises(ParameterError):
            policy.check(params)

    assert steps(check) < 20 * LIMIT


# ---- what is returned


def test_lying_server_counts_the_clients_own_answer() -> None:
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


@pytest.mark.parametrize(
    "arguments",
    [
        (2, 0.0, 0.0),
        (1 << 21, 0.0, 0.0),
        (100.0, 0.0, 0.0),
        (100, -0.1, 0.0),
        (100, 0.0, 1.0),
        (100, True, 0.0),
        (100, 0.1, 0.1, "active"),
        (100, 0.1, 0.1, "semi-honest", 0),
        (100, 0.1, 0.1, "semi-honest", 40, 129),
        (100, 0.6, 0.3, "semi-malicious"),
        (10, 0.1, 0.8),
        (100, 0.5, 0.5),
        (4, 0.0, 0.5),
    ],
)
def test_impossible_demands_raise(arguments: tuple[object, ...]) -> None:
    with pytest.raises(ParameterError):
        recommend(*arguments)


@pytest.mark.parametrize(
    "arguments", [(1, None, 1, 0, 0), (10, 1, 1, 0, 0), (10, 4, 0, 0, 0), (10, 4, 3, 0, 2)]
)
def test_privacy_bits_of_bad_arguments_raise(arguments: tuple[object, ...]) -> None:
    with pytest.raises(ParameterError):
        privacy_bits(*arguments)


@given(st.integers(4, 200), FRACTIONS, FRACTIONS, SECURITY, st.integers(1, 40))
@settings(deadline=None)
def test_check43_smallest_cohort_is_that_of_a_scan(
    n: int, corrupt: float, dropout: float, security: str, sigma: int
) -> None:
    try:
        k, t = recommend(n, corrupt, dropout, security, sigma, 10)
    except ParameterError:
        return
    colluders = count(corrupt, n)

    def holds(m: int) -> bool:
        question = (m, k, t, 0.0, dropout, sigma, security)
        return finder.is_private(*question, colluders=colluders)

    least = n
    while least > max(3, t) and holds(least - 1):
        least -= 1
    assert smallest_cohort(n, k, t, colluders, dropout, security, sigma) == least


@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize(("n", "colluders"), [(20, 0), (20, 3), (21, 8), (40, 8)])
def test_exposure_bounds_every_cohort_that_may_come(n: int, k: int, colluders: int) -> None:
    for t, least in product(range(2, k + 1), range(colluders + 2, n + 1)):
        bound = exposure(n, k, t, colluders, least)
        for size in range(least, n + 1):
            gone = size - least
            exact = finder._not_private(
                size, min(k, size - 1), t, colluders, gone, "semi-honest"
            )
            assert exact <= Fraction(bound) * (1 + Fraction(1, 10**12))
    assert bound == float(exact)


def test_check43_cohorts_of_the_documents() -> None:
    assert smallest_cohort(1000, 34, 18, 50, 0.05) == 908
    assert smallest_cohort(10**6, 44, 23, 50_000, 0.05) == 996_924
    assert smallest_cohort(10**6, 50, 2, 0, 0.33) == 3
    assert privacy_bits(907, 34, 18, 0, 0.05, colluders=50) < 40
    assert privacy_bits(1000, 34, 18, 0, 0.05, colluders=50) == privacy_bits(
        1000, 34, 18, 0.05, 0.05
    )


def test_parameters_that_do_not_hold_at_all_raise() -> None:
    for colluders in (60, -1):
        with pytest.raises(ParameterError):
            smallest_cohort(1000, 34, 18, colluders, 0.05)
