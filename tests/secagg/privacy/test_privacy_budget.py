"""Budgets and their edges."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction

import pytest

from secagg import BudgetSpent, MissingExtra, ParameterError
from secagg.privacy import Budget, Loss, PrivacyLedger
from secagg.privacy.distance import Distance
from secagg.privacy.loss import GRAIN

dp_accounting = pytest.importorskip("dp_accounting")


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-5), (2, 1e-6), (8, 1e-6)])
def test_budget_is_an_epsilon_with_what_is_set_aside(epsilon, delta):
    """The largest loss that a budget allows has nearly its ε, and never more."""
    budget = Budget(epsilon, delta)
    law = Distance(1.0, (epsilon / (1 << 13) / 12.1) ** 2)
    failure = delta / (1 << 12) / (1 + math.exp(epsilon)) * 0.999
    exposure = delta / (1 << 10) * 0.999
    full = Loss(budget.squares, Fraction(10**6), law, failure=failure, exposure=exposure)
    assert budget.allows(full)
    assert 0.999 * epsilon < full.epsilon(delta) <= epsilon
    assert not budget.allows(replace(full, squares=full.squares + Fraction(1, GRAIN)))
    assert not budget.allows(replace(full, law=Distance(1.0, law.squares * 1.1)))
    assert not budget.allows(replace(full, sampler=replace(law, squares=law.squares / 50)))
    assert not budget.allows(replace(full, failure=failure * 1.01))
    assert not budget.allows(replace(full, exposure=exposure * 1.01))


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-14, 1e-21), (1e-12, 1e-18), (1e-8, 1e-9)])
def test_tiny_budget_is_not_below_the_resolution_of_floats(epsilon, delta):
    """For small μ the δ of a Gaussian mechanism is μ (φ(t) − t Φ(−t)), t = ε / μ."""
    mu = math.sqrt(Budget(epsilon, delta).squares)
    t = epsilon / mu
    density, tail = math.exp(-(t**2) / 2) / math.sqrt(2 * math.pi), math.erfc(t / math.sqrt(2))
    assert mu > 0
    assert mu * (density - t * tail / 2) <= delta


def test_both_distances_count_as_one():
    """Shares and sampler may each have half of what is set aside, but for a term of V."""
    budget = Budget(8, 1e-5)
    half = Distance(1.0, (math.sqrt(144 + 8 / (1 << 13)) - 12) ** 2 * (1 - 1e-7))
    both = Loss(law=half, sampler=half)
    assert budget.allows(replace(both, law=Distance(1.0, half.squares * (1 - 1e-5))))
    assert not budget.allows(both)


def test_budget_ends_after_its_sums():
    loss = Loss.of_shares(Fraction(10_000), 100, 1000, Fraction(10_000))
    budget = Budget(2, 1e-6)
    sums = next(k for k in range(1, 99) if not budget.allows(loss * k))
    # a sum has μ² = 1 / 100, and the budget 1 / σ²
    assert sums == math.floor(100 / dp_accounting.get_sigma_gaussian(2, 1e-6) ** 2) + 1


def test_no_choice_between_two_bounds():
    """A server that sees earlier sums could choose a bound for each; see the page's filter."""
    few_steps = Loss.of_shares(Fraction(16), 2, 100_000, Fraction(4))
    budget = Budget(2, 1e-5)
    assert few_steps.epsilon(1e-5) < 2
    assert not budget.allows(few_steps)


def test_huge_epsilon_leaves_nothing():
    loss = Loss.of_shares(Fraction(16), 2, 1, Fraction(1, 1000))
    assert not Budget(60, 1e-6).allows(loss)
    with pytest.raises(BudgetSpent, match="smaller budget"):
        Budget(60, 1e-6).check(Loss(), 0, loss)
    assert Budget(1e6, 1e-6).squares == 0


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", None])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(ParameterError):
        Budget(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0, 1, None, math.nan])
def test_delta_out_of_range(delta):
    with pytest.raises(ParameterError):
        Budget(1, delta)


def test_only_losses_are_compared():
    with pytest.raises(ParameterError):
        Budget(1, 1e-5).allows(0.5)


def test_without_dp_accounting(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra):
        Budget(1, 1e-5).allows(Loss())


def test_ledger_without_dp_accounting_makes_no_file(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra, match=r"secagg\[privacy\]"):
        PrivacyLedger(tmp_path / "ledger", Budget(1, 1e-5))
    assert not any(tmp_path.iterdir())
