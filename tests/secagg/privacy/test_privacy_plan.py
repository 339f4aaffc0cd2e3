"""Plans: within the budget and the room of the modulus, and no finer than they can be."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction

import pytest

from secagg import MissingExtra, ParameterError
from secagg.privacy import Budget, Loss, plan
from secagg.protocol.noise import Share

dp_accounting = pytest.importorskip("dp_accounting")

TARGET = {"norm": 1, "epsilon": 2, "delta": 1e-6, "min_survivors": 900, "colluders": 50}


def test_target_of_the_page():
    """A mean of 100,000 elements of 1,000 clients, at 16 bits."""
    found = plan(1000, 100_000, **TARGET)
    assert (found.modulus_bits, found.elements, found.message) == (16, 1 << 17, 262_144)
    factors = found.factors
    assert factors["total"] < 1.1
    assert factors["dropouts"] == math.sqrt(1000 / 850)
    assert factors["total"] == pytest.approx(1.0960, abs=1e-4)
    assert 109 < found.share < 112
    few = plan(1000, 100_000, **TARGET | {"min_survivors": 700}).factors
    assert few["total"] == pytest.approx(1.2549, abs=1e-4)


@pytest.mark.parametrize(
    ("bits", "total"), [(14, 1.2758), (15, 1.1269), (17, 1.0882), (18, 1.0860)]
)
def test_bits_against_error(bits, total):
    factors = plan(1000, 100_000, **TARGET, bits=bits).factors
    assert factors["total"] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("rounds", [1, 100])
@pytest.mark.parametrize("count_clipped", [False, True])
@pytest.mark.parametrize(("n", "d"), [(10, 1), (50, 1000), (1000, 1 << 20), (10_000, 100)])
def test_plan_is_within_its_budget_and_uses_it(n, d, count_clipped, rounds):
    found = plan(
        n, d, norm=2.5, epsilon=1, delta=1e-7, rounds=rounds, count_clipped=count_clipped
    )
    assert found.budget.allows(found.loss)
    assert 0.998 < found.loss.epsilon(1e-7) <= 1
    assert found.elements >= d + count_clipped
    assert found.square >= found.steps**2 + found.elements / 4
    # doubled distance, twice the parameter: as rounds four times as many
    four = Loss.of_shares(found.share**2, found.honest, found.elements, Fraction(found.square))
    loss = four * 4 * rounds
    assert found.epsilon_replaced == pytest.approx(loss.epsilon(1e-7), rel=1e-4)
    # a graph of the plan may expose a client so often
    square = Fraction(4 * found.square)
    far = Loss.of_shares(found.share**2, found.honest, found.elements, square) * rounds
    exposed = replace(far, exposure=1e-7 * 2**-10).epsilon(1e-7)
    assert found.epsilon_replaced >= exposed * (1 - 1e-9)
    # σ, which the parameters will have, gives these shares
    share = Share.of(int(found.sigma * 256), found.min_survivors, found.colluders)
    assert share.scaled == found.share * 256
    # the room of the modulus: 2 ln(2D · 2^10) variances
    room = (2**found.modulus_bits - 1) ** 2 / 4
    spread = n * n * found.square / found.elements + n * (float(found.share) ** 2 + 0.25)
    assert room >= 2 * math.log(2 * found.elements * 1024) * spread
    coarser = replace(found, steps=found.steps + max(1, found.steps // 500))
    more = n * n * coarser.square / found.elements + n * (float(coarser.share) ** 2 + 0.25)
    assert room < 2 * math.log(2 * found.elements * 1024) * more * 1.001


def test_many_clients_many_elements_and_many_rounds():
    """Errors of the sampler are independent, so they act like the root of their number."""
    found = plan(10**5, 10**6, norm=1, epsilon=2, delta=1e-8, rounds=1000)
    assert found.factors["rounding"] <= 1.02


def test_fewest_bits():
    found = plan(100, 5000, norm=1, epsilon=2, delta=1e-6)
    assert found.factors["rounding"] <= 1.02
    fewer = plan(100, 5000, norm=1, epsilon=2, delta=1e-6, bits=found.modulus_bits - 1)
    assert fewer.factors["rounding"] > 1.02


def test_error_of_the_mean():
    """The noise of all clients, over their number, beside a trusted server's noise."""
    found = plan(1000, 100_000, **TARGET | {"norm": 3})
    trusted = 3 * dp_accounting.get_sigma_gaussian(2, 1e-6) / 1000
    assert found.error() == pytest.approx(1.0960 * trusted, rel=2e-4)
    assert found.error(900) == pytest.approx(found.error() * math.sqrt(1000 / 900))
    with pytest.raises(ParameterError):
        found.error(899)
    hundred = plan(1000, 100_000, **TARGET | {"norm": 3}, rounds=100)
    assert hundred.error() == pytest.approx(10 * found.error(), rel=0.01)


@pytest.mark.parametrize(
    "changed",
    [
        {"n_clients": 2}, {"length": 0}, {"norm": 0}, {"norm": math.inf}, {"norm": "1"},
        {"epsilon": 0}, {"delta": 1}, {"rounds": 0}, {"min_survivors": 101}, {"bits": 63},
        {"colluders": 89}, {"min_survivors": 1}, {"count_clipped": 1}, {"bits": 3},
        {"epsilon": 1e4}, {"epsilon": 60}, {"rounds": 1 << 30, "epsilon": 1e-6},
    ],
)  # fmt: skip
def test_plans_out_of_range(changed):
    valid = {"n_clients": 100, "length": 50, "norm": 1, "epsilon": 1, "delta": 1e-6}
    plan(**valid)
    with pytest.raises(ParameterError):
        plan(**valid | changed)


MANY = plan(200, 9, norm=1, epsilon=3, delta=1e-9, rounds=10**4, colluders=20)


def test_graph_of_many_sums_has_more_bits_than_the_graph_of_one():
    found, one = MANY.graph(), replace(MANY, rounds=1).graph()
    assert tuple(found) != tuple(one)
    assert found.privacy_bits >= math.log2(10**4 * 1024 / 1e-9)
    assert MANY.budget.allows(Loss.of(MANY.params()) * 10**4)
    with pytest.raises(ParameterError):  # the graph of a single sum
        MANY.params(neighbours=one.neighbours, threshold=one.threshold)
    chosen = MANY.params()
    assert (chosen.neighbours, chosen.threshold) == tuple(found)
    assert chosen == MANY.params(neighbours=found.neighbours, threshold=found.threshold)
    more, known = MANY.graph(sigma=90), MANY.graph(threshold=found.threshold + 3)
    assert more.privacy_bits >= 90
    assert known.threshold == found.threshold + 3
    assert MANY.params(threshold=known.threshold).neighbours == known.neighbours
    assert MANY.graph("semi-malicious").threshold > found.threshold
    active = MANY.params(session=b"s", security="active")
    assert tuple(MANY.graph("active")) == (None, active.threshold)


@pytest.mark.parametrize("wrong", [{"sigma": 129}, {"threshold": 181}, {"threshold": 2}])
def test_no_graph_for_a_plan(wrong):
    with pytest.raises(ParameterError):
        MANY.graph(**wrong)


def test_without_dp_accounting(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra):
        plan(100, 50, norm=1, epsilon=1, delta=1e-6)
    assert Budget(1, 1e-6).delta == 1e-6
