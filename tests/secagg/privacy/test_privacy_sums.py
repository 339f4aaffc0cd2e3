"""Loss of sums by their parameters: four exchanges, on a graph, and with helpers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import msgspec
import numpy as np
import pytest

from exact_privacy import exact_epsilon, law_of_sum
from oneshot_parties import parties
from secagg import FixedPoint, Integers, JournalError, ParameterError, RoundParams
from secagg.encoding import Bounded
from secagg.oneshot import Noise
from secagg.privacy import Budget, Loss, against, epsilon, plan
from secagg.privacy.record import from_bytes, to_bytes
from secagg.privacy.sensitivity import square_of

dp_accounting = pytest.importorskip("dp_accounting")

BUDGET = Budget(2, 1e-6)
SUMS = {"n_clients": 40, "threshold": 30, "length": 10, "modulus_bits": 40}
SUMS |= {"encoding": FixedPoint(1.0), "noise": Noise(10**7, colluders=8), "min_survivors": 36}


def test_loss_of_a_plan_is_the_plans():
    """The same law, and no less noise: parameters round a share up as the plan does."""
    found = plan(60, 1000, norm=1, epsilon=2, delta=1e-6, rounds=7, count_clipped=True)
    for security in ("semi-honest", "active"):
        params = found.params(session=b"first", security=security)
        assert Loss.of(params) * 7 == found.loss
        assert BUDGET.allows(Loss.of(*[params] * 7))
        assert not BUDGET.allows(Loss.of(*[params] * 8))
    assert (params.elements, params.ring.bits) == (found.elements, found.modulus_bits)


def test_loss_without_noise_has_no_bound():
    exact = RoundParams(**SUMS | {"noise": None})
    with parties() as made:
        for params in (exact, made.params):
            assert Loss.of(params) == Loss.unbounded()
            assert Loss.of(params).epsilon(0.5) == math.inf
            assert not Budget(30, 0.5).allows(Loss.of(params))
    noised = RoundParams(**SUMS)
    assert Loss.of(noised).epsilon(1e-6) < 1
    assert Loss.of(noised, exact).epsilon(1e-6) == math.inf
    assert Loss.of() == Loss()
    with pytest.raises(ParameterError):
        Loss.of(noised.to_bytes())


@pytest.mark.parametrize(
    ("changes", "square"),
    [
        ({}, 10 * (1 << 16) ** 2),
        ({"max_weight": 3}, 10 * (3 << 16) ** 2 + 9),
        ({"count_clipped": True}, 10 * (1 << 16) ** 2 + 100),
        ({"encoding": Integers(5000), "max_weight": 2}, 10 * 10_000**2 + 4),
        # S² + ⌈D/4⌉ + ⌈5.266 (2S + √D) / 2⌉
        ({"encoding": Bounded(2.0, 10**6)}, 10**12 + 4 + 5_266_011),
    ],
)
def test_sensitivity_is_the_largest_input(changes, square):
    params = RoundParams(**SUMS | changes)
    assert square_of(params) == square
    variance = Fraction(10**7) ** 2
    assert float(Loss.of(params).squares) == pytest.approx(square / float(variance), rel=1e-6)


def test_shares_that_count_are_those_of_honest_survivors():
    """σ is the same, so is the loss; with a share too small the parameters do not exist."""
    base = Loss.of(RoundParams(**SUMS)).squares
    for changes in ({"min_survivors": 40}, {"noise": Noise(10**7, colluders=0)}):
        assert float(Loss.of(RoundParams(**SUMS | changes)).squares) == pytest.approx(
            float(base), rel=1e-6
        )
    weaker = replace(RoundParams(**SUMS), noise=Noise(5 * 10**6, colluders=8))
    assert float(Loss.of(weaker).squares) == pytest.approx(4 * float(base), rel=1e-6)


@pytest.mark.parametrize("delta", [1e-5, 1e-6])
def test_stated_epsilon_against_the_convolution_at_every_number_of_survivors(delta):
    """With more survivors there is more noise; with the fewest ε is at most a tenth above."""
    changes = {"n_clients": 9, "threshold": 5, "length": 1, "encoding": Integers(3)}
    params = RoundParams(
        **SUMS | changes | {"min_survivors": 6, "noise": Noise(9, colluders=2)}
    )
    stated = Loss.of(params).epsilon(delta)
    for survivors in range(6, 10):
        law = law_of_sum(params.share.scaled / 256, survivors - 2)
        exact = exact_epsilon(law, 3, delta)
        assert exact < stated
        if survivors == 6:
            assert stated < 1.1 * exact


@pytest.mark.parametrize("survivors", [900, 901, 950, 1000])
def test_stated_epsilon_of_a_vector_at_numbers_of_survivors(survivors):
    """Not below a continuous Gaussian; with the fewest, a tenth above at most."""
    found = plan(1000, 1000, norm=1, epsilon=2, delta=1e-6, min_survivors=900, colluders=50)
    params = found.params(neighbours=None, session=b"s")
    stated = Loss.of(params).epsilon(1e-6)
    deviation = params.share.scaled / 256 * math.sqrt((survivors - 50) / found.square)
    exact = dp_accounting.get_epsilon_gaussian(deviation, 1e-6)
    assert exact < stated <= 2
    if survivors == 900:
        assert stated < 1.001 * exact


def test_graph_adds_exposure_to_delta():
    found = plan(400, 50, norm=1, epsilon=2, delta=1e-6, rounds=9, colluders=80)
    params = found.params(session=b"s")
    assert params.neighbours is not None
    loss = Loss.of(params)
    assert 0 < loss.exposure * 9 <= 1e-6 / 1024
    complete = Loss.of(found.params(neighbours=None))
    assert replace(loss, exposure=0.0) == complete
    # a plain term: δ less the exposure
    exposed = replace(complete, exposure=4e-7)
    assert exposed.epsilon(1e-6) == complete.epsilon(6e-7) > complete.epsilon(1e-6)
    assert exposed.epsilon(4e-7) == math.inf
    assert not BUDGET.allows(exposed)
    # few neighbours expose too often, and a plan says so
    with pytest.raises(ParameterError):
        found.params(neighbours=20)
    few = replace(params, neighbours=20, threshold=12)
    assert Loss.of(few).exposure > 1e-6


@pytest.mark.parametrize(
    ("security", "most"),
    [("semi-honest", 29), ("active", 19)],  # c < t = 30, and 40 + c < 2t
)
def test_colluders_that_reach_the_threshold_leave_no_privacy(security, most):
    changes = {"security": security, "session": b"s"}
    for colluders in (most, most + 1):
        noise = Noise(10**7, colluders=colluders)
        params = RoundParams(**SUMS | changes | {"noise": noise})
        assert Loss.of(params).exposure == (colluders > most)
        assert ("nobody" in against(params)) == (colluders > most)
        assert (Loss.of(params).epsilon(1e-6) == math.inf) == (colluders > most)


def test_more_sums_take_a_safer_graph():
    many = plan(400, 5, norm=1, epsilon=2, delta=1e-6, rounds=10_000, colluders=80).params()
    once = plan(400, 5, norm=1, epsilon=2, delta=1e-6, colluders=80).params()
    assert many.neighbours > once.neighbours


@pytest.mark.parametrize("counts", [(7, 7, 5), (10, 6, 2), (97, 89, 31), (101, 70, 33)])
def test_parameters_of_a_plan_have_its_numbers(counts):
    """No count is rounded up on the way, as 5/6 of 6 would be by a float."""
    n, m, c = counts
    found = plan(n, 4, norm=1, epsilon=1, delta=1e-6, min_survivors=m, colluders=c)
    params = found.params(session=b"s", neighbours=None)
    assert (params.n_clients, params.min_survivors, params.noise.colluders) == counts
    assert params.share.scaled == found.share * 256
    if m < n:
        with pytest.raises(ParameterError):
            found.params(session=b"s", neighbours=None, threshold=m + 1)


@pytest.mark.parametrize("sigma", [6, 40, 1000.5])
def test_sum_with_helpers_by_both_bounds(sigma):
    """A single noise counts. The published bound of the same sensitivity is never exceeded."""
    changes = {"noise": Noise(sigma), "encoding": Integers(9), "length": 3, "max_weight": 2}
    with parties(**changes) as made:
        loss, noise = Loss.of(made.params), made.params.noise
    square = 3 * 18**2 + 4
    assert float(loss.rho) == pytest.approx(square / (2 * float(noise.sigma) ** 2), rel=1e-6)
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.ZCDpEvent(square / (2 * float(noise.sigma) ** 2)))
    published = accountant.get_epsilon(1e-6)
    assert loss.epsilon(1e-6) <= published * (1 + 1e-6)
    stated = epsilon(made.params, 1e-6, sensitivity=math.sqrt(square))
    assert stated == pytest.approx(loss.epsilon(1e-6), rel=1e-9)
    if sigma > 100:
        assert loss.epsilon(1e-6) < 0.95 * published
        assert Budget(2, 1e-6).allows(loss)


def test_epsilon_of_hardly_any_noise_is_finite():
    with parties(noise=Noise(6), encoding=Integers(20), length=10) as made:
        assert 72 < epsilon(made.params, 1e-9) < math.inf


@pytest.mark.parametrize("sigma", [2, 6, 50])
def test_sum_with_helpers_against_the_exact_law(sigma):
    y = np.arange(-40 * sigma, 40 * sigma + 1)
    law = np.exp(-(y**2) / (2 * sigma**2))
    law /= law.sum()
    with parties(noise=Noise(sigma), encoding=Integers(1), length=1) as made:
        loss = Loss.of(made.params)
    # from 32 steps² on the comparison with a Gaussian is proven
    assert (loss.law.slack < 1e3) == (sigma > 5)
    assert from_bytes(to_bytes(loss)) == loss
    stated = loss.epsilon(1e-6)
    here, moved = np.append(law, 0), np.insert(law, 0, 0)
    above = np.maximum(0, here - math.exp(stated) * moved).sum()
    assert above <= 1e-6


def test_words_for_each_way():
    assert "nobody" in against(RoundParams(**SUMS | {"noise": None}))
    active = replace(RoundParams(**SUMS), security="active", session=b"s")
    assert "anything, with up to 8 clients" in against(active)
    assert "no guarantee" in against(replace(RoundParams(**SUMS), neighbours=32, threshold=20))
    with parties(noise=Noise(9)) as made:
        assert "helpers" in against(made.params)


def test_loss_as_bytes():
    loss = Loss.of(RoundParams(**SUMS)) + replace(Loss(), exposure=1e-9)
    assert from_bytes(to_bytes(loss)) == loss
    assert from_bytes(b"") == Loss()
    number = msgspec.json.decode(to_bytes(loss))
    for data in (
        to_bytes(loss)[:-1],
        b"{}",
        b" " + to_bytes(loss),
        msgspec.json.encode(number | {"failure": -1.0}),
        msgspec.json.encode(number | {"more": 1}),
    ):
        with pytest.raises(JournalError):
            from_bytes(data)
