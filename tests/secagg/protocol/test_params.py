from __future__ import annotations

import math

import numpy as np
import pytest

from harness import make_params
from secagg import (
    Client,
    ClientPolicy,
    FixedPoint,
    Integers,
    ParameterError,
    RoundParams,
    graph,
    simulate_round,
)


@pytest.mark.parametrize(
    ("n", "neighbours", "least", "most"), [(10, None, 6, 10), (9, None, 5, 9), (100, 20, 2, 20)]
)
def test_check05_threshold_is_a_majority_or_within_neighbours(n, neighbours, least, most):
    """The threshold is a majority, or on a graph at most the neighbours."""
    for threshold in (least, most):
        assert make_params(n, threshold, neighbours=neighbours).threshold == threshold
    for threshold in (least - 1, most + 1):
        with pytest.raises(ParameterError):
            make_params(n, threshold, neighbours=neighbours)


def test_check06_two_clients_are_rejected_unless_allowed() -> None:
    """Two clients are rejected without allow_two_clients."""
    with pytest.raises(ParameterError):
        make_params(2, 2)
    params = make_params(2, 2, allow_two_clients=True)
    with pytest.raises(ParameterError):
        Client(0, params)
    with pytest.raises(ParameterError):
        ClientPolicy(min_clients=2)
    both = ClientPolicy(min_clients=2, allow_two_clients=True)
    assert Client(0, params, policy=both).phase == "advertise_keys"


def test_check06_sum_never_has_fewer_than_three_inputs() -> None:
    assert make_params(3, 2).min_survivors == 3
    assert make_params(2, 2, allow_two_clients=True).min_survivors == 2
    assert make_params(9, 7).min_survivors == 7


@pytest.mark.parametrize(
    "rule",
    [
        {"min_threshold": 6},
        {"max_length": 3},
        {"min_cohort": 10},
        {"colluders": 5},
    ],
    ids=str,
)
def test_check04_parameters_below_the_policy_are_rejected(rule: dict[str, int]) -> None:
    accept(make_params(9, 5), ClientPolicy(min_threshold=5, min_clients=9, max_length=4))
    with pytest.raises(ParameterError):
        accept(make_params(9, 5), ClientPolicy(**rule))


def test_check14_headroom_counts_all_clients_not_the_neighbours() -> None:
    """R must exceed the sum of n vectors, however few of them share masks."""
    fits = make_params(100, encoding=Integers(max=2), modulus_bits=8, neighbours=4)
    assert fits.ring.modulus == 256
    with pytest.raises(ParameterError):
        make_params(100, encoding=Integers(max=3), modulus_bits=8, neighbours=4)


@pytest.mark.parametrize(
    ("changes", "smallest"),
    [
        ({"encoding": Integers(max=7)}, 5 * 7 + 1),
        ({"encoding": Integers(max=7), "max_weight": 10}, 5 * 70 + 1),
        ({"encoding": FixedPoint(clip=2.0, fractional_bits=3)}, 2 * 5 * 16 + 1),
        ({"encoding": FixedPoint(clip=1.3, fractional_bits=0)}, 2 * 5 * 2 + 1),
        ({"encoding": FixedPoint(clip=2.0, fractional_bits=3), "max_weight": 3}, 2 * 240 + 1),
    ],
)
def test_check14_smallest_modulus_is_exact(changes: dict[str, object], smallest: int) -> None:
    assert make_params(5, modulus=smallest, **changes).ring.modulus == smallest
    with pytest.raises(ParameterError):
        make_params(5, modulus=smallest - 1, **changes)


def test_check14_smallest_modulus_has_room_for_every_clipped_element() -> None:
    few = {"encoding": Integers(max=1), "length": 9, "count_clipped": True}
    assert make_params(5, modulus=46, **few).elements == 10
    with pytest.raises(ParameterError):
        make_params(5, modulus=45, **few)
    assert make_params(5, modulus=64, max_weight=2, **few).elements == 11


def test_check14_largest_possible_sum_comes_out_right() -> None:
    for sign in (1.0, -1.0):
        params = make_params(
            5, encoding=FixedPoint(2.0, 3, rounding="nearest"), modulus=161, max_weight=None
        )
        result = simulate_round([np.full(4, 2.0 * sign)] * 5, params)
        assert result.sum.tolist() == [10.0 * sign] * 4


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 1},
        {"threshold": 10**400},
        {"length": 1 << 30},
        {"n": 2, "allow_two_clients": True, "neighbours": 2},
        {"encoding": FixedPoint},
        {"encoding": None},
        {"encoding": FixedPoint(2.0**60, 0), "max_weight": 9},
        {"encoding": Integers(max=1 << 62), "modulus_bits": 64},
        {"modulus_bits": 65},
        {"modulus": 97, "modulus_bits": 8},
        {"session": "name"},
        {"security": "malicious"},
        {"security": "semi-malicious"},
    ],
    ids=str,
)
def test_bad_parameter_is_rejected(changes: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        make_params(**{"n": 5, **changes})


@pytest.mark.parametrize("n", [3, 4])
def test_check14_sum_that_does_not_fit_int64_is_rejected(n: int) -> None:
    """R = 2^64 has room for 2^63 and more, but not the int64 in which the sum is returned."""
    with pytest.raises(ParameterError):
        make_params(n, encoding=Integers(max=(1 << 63) // n + 1), modulus_bits=64)
    assert make_params(n, encoding=Integers(max=((1 << 63) - 1) // n), modulus_bits=64)


# ---- the graph a client accepts


def no_entropy(size: int) -> bytes:
    raise AssertionError("something secret was computed first")


def accept(params: RoundParams, policy: ClientPolicy | None = None) -> Client:
    return Client(0, params, policy=policy, entropy=no_entropy)


# ---- the cohort a client accepts


@pytest.mark.parametrize("n", [208, 4097])
@pytest.mark.parametrize(("corrupt", "dropout"), [(0.05, 0.05), (0.33, 0.33)])
def test_check43_rosters_are_accepted_down_to_the_smallest_cohort(n, corrupt, dropout) -> None:
    policy = ClientPolicy(corrupt=corrupt, dropout=dropout)
    k, t = graph.recommend(n, corrupt, dropout)
    params = make_params(n, t, neighbours=k, encoding=Integers(max=1))
    policy.check(params)
    least = policy.smallest_cohort(params)
    assert least == graph.smallest_cohort(n, k, t, math.ceil(corrupt * n), dropout)
    assert [policy.objection(params, size) for size in (n, least)] == [None] * 2
    assert policy.objection(params, least - 1) is not None
