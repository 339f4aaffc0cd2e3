"""Loss of noised sums, against convolutions of the shares and published bounds."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from exact_privacy import exact_epsilon, law_of_sum
from secagg import MissingExtra, ParameterError
from secagg.privacy import Loss
from secagg.privacy.distance import Distance

dp_accounting = pytest.importorskip("dp_accounting")
from dp_accounting import rdp  # noqa: E402
from dp_accounting.pld import privacy_loss_distribution  # noqa: E402


def stated(deviation: int, shares: int, square: int, delta: float, elements: int = 1) -> float:
    variance = Fraction(deviation) ** 2
    return Loss.of_shares(variance, shares, elements, Fraction(square)).epsilon(delta)


@pytest.mark.parametrize("delta", [1e-5, 1e-6])
@pytest.mark.parametrize(
    ("deviation", "shares", "shifts"),
    [(4, 2, (1, 3, 9)), (4, 10, (2, 6, 21)), (4, 50, (4, 14, 47)), (20, 10, (9, 32, 105))],
)
def test_epsilon_of_a_coordinate_against_the_convolution(deviation, shares, shifts, delta):
    law = law_of_sum(deviation, shares)
    for shift in shifts:
        exact = exact_epsilon(law, shift, delta)
        assert exact < stated(deviation, shares, shift**2, delta) < 1.03 * exact


@pytest.mark.parametrize("delta", [1e-5, 1e-6])
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 8])
def test_epsilon_of_a_vector_between_published_bounds(epsilon, delta):
    """Above a continuous Gaussian of the same variance, and below Kairouz, Liu and Steinke."""
    deviation, shares, elements = 110, 850, 1 << 17
    variance = deviation**2 * shares
    square = round(variance / dp_accounting.get_sigma_gaussian(epsilon, delta) ** 2)
    least = dp_accounting.get_epsilon_gaussian(math.sqrt(variance / square), delta)
    orders = [1 + 2 ** (k / 8) for k in range(-50, 100)]
    most, _ = rdp.compute_epsilon(orders, [a * square / variance / 2 for a in orders], delta)
    found = stated(deviation, shares, square, delta, elements)
    assert least < found < 1.0001 * least
    assert found < most < 1.1 * found


def test_epsilon_of_a_vector_against_the_convolution():
    """All elements move by a step: the sum of the elements decides, a sum of all shares."""
    deviation, shares, elements = 4, 10, 16
    exact = exact_epsilon(law_of_sum(deviation, shares * elements), elements, 1e-6)
    assert exact < stated(deviation, shares, elements, 1e-6, elements) < 1.02 * exact


@pytest.mark.parametrize("variance", [32, 36, 100, 1000, 13_600])
def test_rounded_gaussian_is_as_near_as_the_proof_says(variance):
    """|log p(k) / q(k)| ≤ 7.2 / v² within 12 √v: Gauss-Legendre quadrature of each cell.

    12 √v is a whole number at 36 and 100, and the proof has its largest value there.
    """
    k = np.arange(math.floor(12 * math.sqrt(variance)) + 1.0)
    y = np.arange(1.0, 40 * math.sqrt(variance))
    p = -(k**2) / (2 * variance) - math.log1p(2 * np.exp(-(y**2) / (2 * variance)).sum())
    narrower = variance - 1 / 12
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t = nodes / 2
    cells = np.exp(-(k[:, None] * t + t**2 / 2) / narrower) @ (weights / 2)
    q = -(k**2) / (2 * narrower) - math.log(2 * math.pi * narrower) / 2 + np.log(cells)
    nearness = (p - q) * variance**2
    assert -0.0022 < nearness.min() < -0.002
    assert 6 < nearness.max() < 7.1


@pytest.mark.parametrize("v", [32.0, 1e3, 1e6, 1e12])
def test_terms_of_the_proof_add_up_to_the_bound(v):
    """The two sides of docs/differential-privacy.md, in units of 1 / v²."""
    w = v - 1 / 12
    for x in np.linspace(0, 12, 121):
        a = x * math.sqrt(v) / w
        shape = a**4 / 2880 - a**2 / (288 * v) + a**2 / (720 * w)
        above = shape + a**4 / (12_096 * w) + 1 / (288 * v * w)
        below = shape - a**6 / 181_440 - a**4 / (8640 * w) - 1 / (512 * w**2)
        assert above * v**2 < 7.1
        assert below * v**2 > -0.01


@pytest.mark.parametrize(("shares", "shift", "sums"), [(10, 5, 10), (50, 5, 100)])
def test_epsilon_of_many_sums_against_the_composed_loss(shares, shift, sums):
    """A lower estimate by the distribution of the privacy loss, of Doroshenko et al. 2022."""
    law = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        4 * math.sqrt(shares),
        sensitivity=shift,
        value_discretization_interval=1e-3,
        pessimistic_estimate=False,
    )
    exact = law.self_compose(sums).get_epsilon_for_delta(1e-6)
    found = (Loss.of_shares(Fraction(16), shares, 1, Fraction(shift**2)) * sums).epsilon(1e-6)
    assert exact < found < 1.02 * exact


def test_few_steps_fall_back_to_the_published_bound():
    """For 10^5 elements at 32 steps² the comparison with a Gaussian is worth nothing."""
    loss = Loss.of_shares(Fraction(16), 2, 100_000, Fraction(4))
    assert 1.3 < loss.epsilon(1e-5) < 1.6
    assert loss.law.slack > 20
    assert loss.law.total > 700


def test_losses_add_up_as_one_gaussian():
    loss = Loss.of_shares(Fraction(10_000), 100, 1000, Fraction(250_000))
    later = Loss.of_shares(Fraction(40_000), 100, 1000, Fraction(250_000))
    loss, later = replace(loss, exposure=1e-9), replace(later, exposure=1e-12)
    together = loss * 3 + later * 4
    assert together.epsilon(1e-6) == pytest.approx((loss * 4).epsilon(1e-6), rel=1e-4)
    for name in ("squares", "rho", "failure", "exposure"):
        parts = 3 * getattr(loss, name) + 4 * getattr(later, name)
        assert getattr(together, name) == pytest.approx(parts, rel=1e-12, abs=0)
    for name in ("law", "sampler"):
        for number in ("total", "squares"):
            one, other, both = (
                getattr(getattr(each, name), number) for each in (loss, later, together)
            )
            assert both == pytest.approx(3 * one + 4 * other, rel=1e-12, abs=0)
    assert Loss().epsilon(1e-6) == 0
    assert (loss + Loss()).epsilon(1e-6) == loss.epsilon(1e-6)


def test_delta_below_the_failures_is_no_privacy():
    loss = Loss.of_shares(Fraction(10_000), 100, 1000, Fraction(250_000))
    assert 1e-28 < loss.failure < 1e-27
    assert loss.epsilon(loss.failure) == math.inf


def test_slack_and_failures_count():
    """M ≤ e^a (M' + f) both ways gives ε + 2a, and δ = e^a (δ' + f (1 + e^(ε + a)))."""
    a = 0.125
    loss = Loss(Fraction(1), Fraction(100), law=Distance(a, 1.0), failure=1e-9)
    epsilon = loss.epsilon(1e-6) - 2 * a
    of_gaussian = 1e-6 * math.exp(-a) - 1e-9 * (1 + math.exp(epsilon + a))
    exact = dp_accounting.get_epsilon_gaussian(1, of_gaussian)
    assert exact <= epsilon < exact + 1e-5


@pytest.mark.parametrize("rho", [Fraction(100), Fraction(1, 9)])
def test_slack_of_sampled_shares_counts_in_both_bounds(rho):
    loss = Loss(Fraction(1), rho, law=Distance(0.125, 1.0), failure=1e-9)
    sampled = replace(loss, sampler=Distance(0.25, 1.0))
    assert sampled.epsilon(1e-6) > loss.epsilon(1e-6) + 0.5


def test_distances_of_many_elements_act_like_the_root_of_their_squares():
    """Worst signs against random signs: 10^6 elements with b = 10^−6."""
    distance = Distance.of(1_000_000, 1e-6)
    assert distance.total == pytest.approx(1, rel=1e-6)
    assert distance.slack == distance.steady_slack == pytest.approx(0.012, rel=1e-3)
    one = Distance.of(1, 1e-6)
    assert one.slack == one.total < one.steady_slack


@pytest.mark.parametrize(
    "changed",
    [
        {"variance": 15},
        {"variance": 16.5},
        {"variance": 2**56 + 1},
        {"shares": 1},
        {"elements": 0},
    ],
)
def test_sums_out_of_range(changed):
    valid = {"variance": 16, "shares": 2, "elements": 1, "sensitivity": Fraction(1)}
    Loss.of_shares(**valid)
    with pytest.raises(ParameterError):
        Loss.of_shares(**valid | changed)
    with pytest.raises(ParameterError):
        Loss.of_shares(**valid | {"sensitivity": Fraction(0)})


def test_losses_are_not_negative():
    with pytest.raises(ParameterError):
        Loss(Fraction(-1))
    with pytest.raises(ParameterError):
        Loss(law=Distance(math.nan, 0.0))


@pytest.mark.parametrize("delta", [0, 1, None, math.nan])
def test_delta_out_of_range(delta):
    with pytest.raises(ParameterError):
        Loss().epsilon(delta)


def test_without_dp_accounting(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra):
        Loss(Fraction(1), Fraction(1, 2)).epsilon(1e-5)
