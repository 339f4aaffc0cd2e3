"""Noise of a study: coverage and size in results, ε by another accountant, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import Noise, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams
from secagg.oneshot.noise import blocks
from secagg.privacy import Budget, Loss, PrivacyLedger
from secagg.privacy.loss import of_concentrated
from secagg.session.wire import AttemptName, write_name
from secagg.simulate import simulate_round, temporary_journals
from secagg.statistics import (
    Category,
    Counts,
    Histogram,
    Ledger,
    Moments,
    Number,
    Plan,
    Privacy,
    Quantiles,
    Result,
    Site,
    Study,
    simulate,
)
from secagg.statistics.budget import rho_of
from secagg.statistics.layout import own
from secagg.statistics.noise import SIGMA
from secagg.statistics.records import Records
from secagg.statistics.sessions import round_params

PRIVACY = Privacy(2.0, 1e-6, max_records=4000, weights={"moments of x": 3})
NOISE = PRIVACY.noise
BY_SITES = replace(PRIVACY, noises="1.5", colluders=3)
PLAN = Plan(
    "noised",
    {"x": Number(0, 100), "g": Category(["a", "b"])},
    [
        Moments("x"),
        Counts(["g"]),
        Histogram("x", range(20, 100, 20), by="g"),
        Quantiles("x", [0.25, 0.5], bins=10, steps=2),
    ],
    privacy=PRIVACY,
)
SIZES = pytest.mark.parametrize(
    "runs", [400, pytest.param(10_000, marks=pytest.mark.slow)], ids=str
)


def noises(size: int, runs: int) -> Any:
    """Noise of sums over three helpers: three noises each."""
    drawn = blocks(NOISE, b"noise of studies", 3 * size * runs)
    # a block is the same memory as the block before
    return np.concatenate([block.copy() for block in drawn]).reshape(runs, 3, size).sum(1)


@SIZES
def test_intervals_of_means_and_counts_cover_95_percent(runs: int) -> None:
    plan = replace(PLAN, statistics=[Moments("x"), Counts(["g"])])
    study, random, hits = Study(plan), np.random.default_rng(7), np.zeros(2)
    for noise in noises(study.step.length, runs):
        x = random.normal(50, 15, 600).clip(0, 100)
        vector = study.vector(Records.read({"x": x, "g": [*"ab"] * 300}, plan.columns))
        result = Result.of(study.then(vector + noise))
        ((_, mean, _, se),) = result["moments of x"].rows
        _, count, spread = result["counts of g"].rows[0]
        hits += abs(mean - 50) <= 1.959964 * se, abs(count - 300) <= 1.959964 * spread
    assert abs(hits / runs - 0.95).max() < 0.006 * math.sqrt(10_000 / runs)


@SIZES
def test_noise_of_each_field_has_the_stated_deviation(runs: int) -> None:
    step = Study(PLAN).step
    sums = [step.unpack(noise) for noise in noises(step.length, runs)]
    for name, sd in PRIVACY.errors({one.name: one for one in step.fields}).items():
        z = np.array([one[name] for one in sums]).astype(float).ravel() / sd
        powers = [np.mean(z**k) for k in (1, 2, 3, 4)]
        for power, mean, variance in zip(powers, (0, 1, 0, 3), (1, 2, 15, 96), strict=True):
            assert abs(power - mean) < 5 * math.sqrt(variance / z.size)


@pytest.mark.parametrize("unit", ["record", "site"])
@pytest.mark.parametrize("epsilon", [0.5, 8])
def test_another_accountant_finds_no_larger_epsilon(unit: Any, epsilon: float) -> None:
    accounting = pytest.importorskip("dp_accounting")
    privacy = replace(PRIVACY, epsilon=epsilon, unit=unit, max_records=100)
    plan = replace(PLAN, privacy=privacy)
    events, spent = [], 0.0
    for place, part in enumerate(plan.parts):
        norms = part.norms(plan.frame)
        for name, one in own(place, {one.name: one for one in plan.step([]).fields}).items():
            records = 100 if unit == "site" else 1
            # a rounded element differs by half a step from the scaled sum
            far = float(one.factor) * norms[name][0] * records + math.sqrt(one.size)
            steps = getattr(part, "steps", 1)
            events += [accounting.GaussianDpEvent(SIGMA / far)] * steps
            spent += steps * far**2 / (2 * SIGMA**2)
    assert spent == pytest.approx(privacy.rho, rel=1e-9)
    accountant = accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    found = accountant.compose(accounting.ComposedDpEvent(events)).get_epsilon(1e-6)
    assert 0.999 * epsilon < found <= epsilon


@given(st.floats(-10, 10), st.floats(-40, -1))
@examples(300)
def test_study_spends_no_more_than_it_states(log_epsilon: float, log_delta: float) -> None:
    accounting = pytest.importorskip("dp_accounting")
    epsilon, delta = 2.0**log_epsilon, 2.0**log_delta
    rho = rho_of(epsilon, delta)
    if rho:
        found = accounting.get_epsilon_gaussian(1 / math.sqrt(2 * rho), delta)
        assert found <= epsilon
        assert found > 0.999 * epsilon or not (2**-5 < epsilon < 8 and 1e-12 < delta < 1e-3)
        # zCDP has the larger ρ where a budget's bounds would fail too often, or say too little
        if Budget(epsilon, delta).squares < 2 * rho:
            assert of_concentrated(Fraction(rho))(delta) <= epsilon


records = st.tuples(st.one_of(st.none(), st.integers(-9, 120)), st.sampled_from("ab?"))


@given(st.lists(records, max_size=20), records, st.sampled_from(["record", "site"]))
@examples(300)
def test_neighbours_differ_by_each_norm_at_most(table: Any, more: Any, unit: Any) -> None:
    plan = replace(PLAN, privacy=replace(PRIVACY, unit=unit, max_records=21))
    rows = [[*table, more], table if unit == "record" else []]
    some, others = (
        Records.read({"x": [x for x, _ in one], "g": [g for _, g in one]}, plan.columns)
        for one in rows
    )
    study, spent, most = Study(plan), 0.0, 1 if unit == "record" else 21
    while not study.ended:
        for part, past in zip(plan.parts, study.sums, strict=True):
            if part.fields(plan.frame, past):
                one, other = (part.sums(plan.frame, each, past) for each in (some, others))
                for name, (norm, largest) in part.norms(plan.frame).items():
                    if name in one:
                        apart = np.subtract(one[name], other[name]).astype(float)
                        assert np.linalg.norm(apart) <= norm * most * (1 + 1e-12)
                        assert abs(apart).max() <= largest * most
        apart = (study.vector(some) - study.vector(others)).astype(float)
        spent += float(apart @ apart) / (2 * SIGMA**2)
        study = study.then(study.vector(some) * 3)
    assert spent <= plan.privacy.rho


@pytest.mark.parametrize(("epsilon", "delta"), [(100, "1e-6"), ("0.001", "1e-6"), (1, "1e-20")])
def test_noise_of_the_sites_needs_a_budget_that_covers_the_samplers(
    epsilon: Any, delta: str
) -> None:
    assert replace(PRIVACY, epsilon=epsilon, delta=delta).rho > 0
    with pytest.raises(ParameterError):
        replace(BY_SITES, epsilon=epsilon, delta=delta)


def test_site_refuses_sums_without_the_noise_and_second_sums() -> None:
    study, table = Study(PLAN), {"x": range(60), "g": [*"ab"] * 30}
    with temporary_journals(4) as journals:
        keys = [journal.public for journal in journals]
    params = OneShotParams.suggest(
        4, study.step.length, study.step.encoding, noise=NOISE, session=b"1", helpers=keys[:3]
    )
    for wrong in (None, replace(params, noise=None), replace(params, helpers=keys)):
        with pytest.raises(RemoteProtocolError) as caught:
            Site(table, PLAN)(study.message(), wrong)
        assert caught.value.check == "noise"
    site = Site(table, PLAN)
    assert (site(study.message(), params) == site(study.message(), params)).all()
    with pytest.raises(RemoteProtocolError) as caught:
        site(study.message(), replace(params, session=b"2"))
    assert caught.value.check == "repeated"


def test_sites_noise_has_the_stated_deviation_in_four_exchanges() -> None:
    """12 sites all stay, so a sum has 1.5 noises, as many as the plan declares."""
    plan = replace(PLAN, privacy=BY_SITES)
    study, table = Study(plan), {"x": [50] * 60, "g": [*"ab"] * 30}
    sites = [Site(table, plan) for _ in range(12)]
    vectors = [study.vector(site.records) for site in sites]
    params = round_params(study, 12, b"study", security="semi-honest")
    noise = [simulate_round(vectors, params).integers - 12 * vectors[0] for _ in range(4)]
    z = np.concatenate(noise) / (SIGMA * math.sqrt(1.5))
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
        assert abs(np.mean(z**power) - mean) < 4 * math.sqrt(variance / z.size)
    (_, count, error) = simulate(plan, [table] * 12)["counts of g"].rows[0]
    assert abs(count - 360) < 6 * error
    assert error == BY_SITES.errors({"n": one_field(study, "2.n")})["n"]


def one_field(study: Study, name: str) -> Any:
    return next(one for one in study.step.fields if one.name == name)


@pytest.mark.parametrize("unit", ["record", "site"])
def test_ledger_of_privacy_ends_the_studies_of_a_table(unit: Any) -> None:
    pytest.importorskip("dp_accounting")
    table = {"x": range(60), "g": [*"ab"] * 30}
    privacy = replace(BY_SITES, unit=unit, max_records=100)
    spending = PrivacyLedger(None, Budget(2.0, 1e-6), unit=privacy.ledger_unit)
    for name in "ab":  # a plan for ε = 2 has room in a budget of ε = 2, but not twice
        plan = replace(PLAN, name=name, privacy=privacy)
        site, study, squares = Site(table, plan, spending=spending), Study(plan), 0.0
        try:
            while not study.ended:
                params = round_params(study, 12, b"study", security="active")
                before = spending.spent.squares
                vector = site(study.message(), params)
                squares += float(spending.spent.squares - before)
                study = study.then(12 * vector)
        except RemoteProtocolError as error:
            assert (name, error.check) == ("b", "budget")
            break
        # μ² = Δ² / σ² = 2ρ, of all fields and steps
        assert squares == pytest.approx(2 * privacy.rho, rel=1e-6)
    else:
        raise AssertionError
    exact = replace(PLAN, privacy=None)
    site = Site(table, exact, spending=spending)
    with pytest.raises(RemoteProtocolError) as caught:
        site(Study(exact).message())
    assert caught.value.check == "budget"


def test_step_that_is_refused_for_the_budget_is_not_answered() -> None:
    """The ledger of plans knows neither the plan nor the sum, so both are free afterwards."""
    pytest.importorskip("dp_accounting")
    plan, ledger = replace(PLAN, privacy=BY_SITES), Ledger()
    study, table = Study(plan), {"x": range(60), "g": [*"ab"] * 30}
    first, second = (
        round_params(study, 12, name, security="active") for name in (b"first", b"second")
    )
    spent = PrivacyLedger(None, Budget(2.0, 1e-6), unit="record")
    while spent.allows(cost := study.step.loss(first)):
        spent.spend(cost)
    with pytest.raises(RemoteProtocolError) as caught:
        Site(table, plan, ledger=ledger, spending=spent)(study.message(), first)
    assert caught.value.check == "budget"
    ledger.check(Plan("other", {"x": Number(0, 50)}, [Moments("x")]))
    left = PrivacyLedger(None, Budget(2.0, 1e-6), unit="record")
    Site(table, plan, ledger=ledger, spending=left)(study.message(), second)
    assert left.sums == 1


def test_server_that_may_lie_gets_a_single_attempt() -> None:
    plan = replace(PLAN, privacy=BY_SITES)
    study, table = Study(plan), {"x": range(60), "g": [*"ab"] * 30}
    for security, again in (("semi-honest", True), ("active", False)):
        params = round_params(study, 12, b"study", security=security)
        names = [
            write_name(b"study", AttemptName(bytes(8), 1, k, bytes(8), bytes(32)))
            for k in (1, 2)
        ]
        site = Site(table, plan)
        site(study.message(), replace(params, session=names[0]))
        try:
            site(study.message(), replace(params, session=names[1]))
        except RemoteProtocolError as error:
            assert (error.check, again) == ("repeated", False)
        else:
            assert again


def test_restarted_site_answers_no_attempt_again(tmp_path: Path) -> None:
    """A server that may lie can use the name of an attempt again: noise would be averaged."""
    plan = replace(PLAN, privacy=BY_SITES)
    study, table = Study(plan), {"x": range(60), "g": [*"ab"] * 30}
    params = round_params(study, 12, b"study", security="active")
    name = AttemptName(bytes(8), 1, 0, bytes(8), bytes(32))
    params = replace(params, session=write_name(b"study", name))
    Site(table, plan, ledger=Ledger(tmp_path / "ledger"))(study.message(), params)
    with pytest.raises(RemoteProtocolError) as caught:
        Site(table, plan, ledger=Ledger(tmp_path / "ledger"))(study.message(), params)
    assert caught.value.check == "repeated"


def test_site_refuses_four_exchanges_without_the_noise() -> None:
    """12 sites and 1.5 noises: 12 / (m − 3) ≤ 1.5, so m is 11 or more."""
    plan = replace(PLAN, privacy=BY_SITES)
    study, table = Study(plan), {"x": range(60), "g": [*"ab"] * 30}
    params = round_params(study, 12, b"study", security="active")
    assert (params.min_survivors, params.noise) == (11, Noise(SIGMA, 3))
    assert plan.privacy is not None
    assert Plan.from_bytes(plan.to_bytes()).privacy == BY_SITES
    for wrong in (
        replace(params, noise=None),
        replace(params, noise=Noise(SIGMA, 2)),
        replace(params, noise=Noise(SIGMA - 1, 3)),
        replace(params, min_survivors=10),
        replace(params, security="semi-honest", neighbours=10, threshold=9),
    ):
        with pytest.raises(RemoteProtocolError) as caught:
            Site(table, plan)(study.message(), wrong)
        assert caught.value.check == "noise"
    Site(table, plan)(study.message(), params)
    with pytest.raises(ParameterError):  # helpers' noise, and the sites'
        round_params(Study(PLAN), 12, b"study", security="active")
    with pytest.raises(ParameterError):
        replace(PRIVACY, noises="1.5")
    less = Study(replace(plan, privacy=replace(BY_SITES, noises=1)))
    with pytest.raises(ParameterError):  # no sum of 12 sites has so little noise
        round_params(less, 12, b"study", security="active")


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize(
    ("n", "colluders", "noises"),
    [
        (12, 3, "1.5"),
        (5, 3, "2.5"),
        (12, 8, 4),
        (12, 9, 4),
        (10, 6, 3),
        (10, 7, 4),
        (30, 15, 2.5),
    ],
)
def test_the_colluders_of_a_plan_do_not_reach_the_threshold(
    security: Any, n: int, colluders: int, noises: Any
) -> None:
    """Neither in the first step nor later, when only the sites of the first step are left."""
    plan = replace(PLAN, privacy=replace(BY_SITES, noises=noises, colluders=colluders))
    study = Study(plan)
    params = round_params(study, n, b"study", security=security)
    m = params.min_survivors
    later = round_params(study, n, b"study", security=security, sites=m)
    for one in (params, later):
        assert one.min_survivors == m
        # t colluders open a secret; in an active round n + c < 2t, or two lists are opened
        reach = colluders if security == "semi-honest" else (one.n_clients + colluders) // 2
        assert reach < one.threshold <= m
        assert Loss.of(one).exposure == 0


@pytest.mark.parametrize(
    ("security", "n", "colluders", "reached"),
    [("semi-honest", 12, 9, 9), ("active", 12, 8, 10), ("active", 5, 3, 4)],
)
def test_site_refuses_a_threshold_that_the_colluders_reach(
    security: Any, n: int, colluders: int, reached: int
) -> None:
    plan = replace(PLAN, privacy=replace(BY_SITES, noises=4, colluders=colluders))
    study, site = Study(plan), Site({"x": range(60), "g": [*"ab"] * 30}, plan)
    params = round_params(study, n, b"study", security=security)
    reaching = replace(params, threshold=reached, min_survivors=int(params.min_survivors))
    with pytest.raises(RemoteProtocolError, match=f"threshold {reached} of {n}") as caught:
        site(study.message(), reaching)
    assert caught.value.check == "noise"
    site(study.message(), params)


def test_more_colluders_than_a_threshold_bears_raise() -> None:
    plan = replace(PLAN, privacy=replace(BY_SITES, noises=9, colluders=4))
    with pytest.raises(ParameterError):
        round_params(Study(plan), 5, b"study", security="semi-honest")


def test_a_ledger_of_privacy_adds_up_a_single_unit() -> None:
    table = {"x": range(60), "g": [*"ab"] * 30}
    for unit, other in (("record", "client"), ("site", "record")):
        plan = replace(PLAN, privacy=replace(BY_SITES, unit=unit, max_records=100))
        with pytest.raises(ParameterError):
            Site(table, plan, spending=PrivacyLedger(None, Budget(2.0, 1e-6), unit=other))


@pytest.mark.parametrize(
    ("privacy", "who"),
    [(PRIVACY, "the server follows"), (BY_SITES, "these sites and the server follow")],
    ids=["helpers", "sites"],
)
def test_the_text_of_a_plan_says_which_servers_the_noise_withstands(
    privacy: Any, who: str
) -> None:
    said = f"sums are active or {who} the protocol."
    assert said in " ".join(str(replace(PLAN, privacy=privacy)).split())


def test_unknown_names_in_weights_raise() -> None:
    with pytest.raises(ParameterError):
        replace(PLAN, privacy=replace(PRIVACY, weights={"moments of y": 1}))
