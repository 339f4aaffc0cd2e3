"""Bounds of a client's input: parameters with others are rejected, by policies, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oneshot_parties import LENIENT, parties
from secagg import Bounds, ClientPolicy, FixedPoint, Integers, ParameterError, RoundParams
from secagg.oneshot import Noise, OneShotPolicy

PARAMS = RoundParams(
    n_clients=5, threshold=4, length=3, encoding=FixedPoint(2.0, 8), max_weight=7, session=b"s"
)
METRICS = {"loss": 4.0, "accuracy": 1.0}
OTHERS = {
    "clip": {"encoding": FixedPoint(1.0, 8)},
    "fractional bits": {"encoding": FixedPoint(2.0, 9)},
    "kind": {"encoding": Integers(512)},
    "weight": {"max_weight": 6},
    "no weight": {"max_weight": None},
}


@pytest.mark.parametrize("change", OTHERS)
def test_check52_parameters_with_other_bounds_are_rejected(change):
    bounds = Bounds.of(PARAMS)
    bounds.check(PARAMS)
    other = replace(PARAMS, **OTHERS[change])
    with pytest.raises(ParameterError):
        bounds.check(other)
    ClientPolicy(bounds=bounds).check(PARAMS)
    with pytest.raises(ParameterError):
        ClientPolicy(bounds=bounds).check(other)


def test_check52_noise_of_helpers_is_a_bound() -> None:
    with parties(noise=Noise(9)) as made:
        policy = replace(LENIENT, bounds=Bounds.of(made.params))
        policy.check(made.params)
        for noise in (None, Noise(8)):
            with pytest.raises(ParameterError):
                policy.check(replace(made.params, noise=noise))


def test_rounding_and_sizes_are_no_bounds():
    bounds = Bounds.of(PARAMS)
    nearest = FixedPoint(2.0, 8, rounding="nearest")
    bounds.check(replace(PARAMS, encoding=nearest, length=9, n_clients=4, modulus_bits=50))


def test_metrics_have_their_own_bounds_and_a_sum_may_have_a_part_of_them():
    bounds = Bounds.of(PARAMS, METRICS)
    bounds.check(PARAMS, {"loss": 4.0})
    for wrong in ({"loss": 4.5}, {"recall": 1.0}, {**METRICS, "recall": 1.0}):
        with pytest.raises(ParameterError):
            bounds.check(PARAMS, wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoding": FixedPoint},
        {"encoding": None},
        {"max_weight": 0},
        {"max_weight": 2**53 + 1},
        {"metrics": {"loss": 0.0}},
        {"metrics": {"loss": float("inf")}},
        {"metrics": {"loss": float("nan")}},
        {"metrics": {f"{i}": 1.0 for i in range(1025)}},
    ],
)
def test_bounds_out_of_range_raise(wrong):
    with pytest.raises(ParameterError):
        Bounds(**{"encoding": FixedPoint(1.0), **wrong})


@pytest.mark.parametrize("policy", [ClientPolicy, OneShotPolicy])
def test_policies_take_bounds_only(policy):
    with pytest.raises(ParameterError):
        policy(bounds=FixedPoint(1.0))
    one = policy(bounds=Bounds.of(PARAMS, METRICS))
    assert hash(one) == hash(policy(bounds=Bounds.of(PARAMS, METRICS)))
