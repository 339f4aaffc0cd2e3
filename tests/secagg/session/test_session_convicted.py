"""Events of verdicts, with the kind of a fault, and the policy that decides on complaints."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from secagg import (
    BudgetSpent,
    ClientPolicy,
    FixedPoint,
    ParameterError,
    RoundParams,
    RoundResult,
    blame,
)
from secagg.privacy import Budget, plan
from secagg.session import ClientConvicted, RoundBegun, RoundFailed, Session
from session_party import member_options, registry_of, session_of, vector_of
from spoilt_boxes import spoil_boxes

LIAR = 2
PARAMS = RoundParams(
    n_clients=5,
    threshold=4,
    length=6,
    encoding=FixedPoint(clip=8.0),
    session=b"app",
    security="active",
)
REGISTRY = registry_of(PARAMS)
NOBODY = ClientPolicy(colluders=0)


@pytest.fixture(params=["x25519", "hybrid"])
def params(request: pytest.FixtureRequest) -> RoundParams:
    return replace(PARAMS, suite=request.param)


def assert_sum(result: RoundResult, survivors: set[int]) -> None:
    assert set(result.survivors) == survivors
    assert (result.sum == sum(vector_of(u, 6) for u in survivors)).all()


async def test_verdict_of_a_failed_attempt_is_told_once(params, monkeypatch):
    """Two of five complain, and the default policy expects one colluder."""
    spoil_boxes(monkeypatch, LIAR, {0, 1})
    async with session_of(5, registry=REGISTRY) as party:
        party.come(params)
        result = await party.session.round(params)
        assert_sum(result, {0, 1, 3, 4})
        (failed,), (convicted,) = party.of(RoundFailed), party.of(ClientConvicted)
        assert {one.suite for one in party.of(RoundBegun)} == {params.suite}
    assert (convicted.client, convicted.kind) == (LIAR, "complaints")
    assert convicted.place == failed.place
    (verdict,) = result.verdicts
    assert blame.check(verdict.data, REGISTRY) == LIAR


async def test_policy_of_a_session_decides_on_complaints(params, monkeypatch):
    """One complaint convicts where no client colludes, and two do not where two may."""
    spoil_boxes(monkeypatch, LIAR, {0})
    async with session_of(5, registry=REGISTRY, policy=NOBODY) as party:
        party.come(params)
        result = await party.session.round(params)
        assert_sum(result, {0, 1, 2, 3, 4})
        kinds = party.kinds()
        assert kinds.index("ClientConvicted") == kinds.index("RoundFinished") + 1
    (verdict,) = result.verdicts
    assert blame.check(verdict.data, REGISTRY, NOBODY) == LIAR
    spoil_boxes(monkeypatch, LIAR, {0, 1})
    async with session_of(5, registry=REGISTRY, policy=ClientPolicy(colluders=2)) as party:
        party.come(params)
        assert (await party.session.round(params)).verdicts == ()
        assert party.of(ClientConvicted) == []


def test_stored_result_tells_of_its_verdicts_again(params, ram_path, monkeypatch):
    """The policy counts after a restart, too: the server reads the journal again."""
    spoil_boxes(monkeypatch, LIAR, {0})

    async def run() -> tuple[RoundResult, list[Any]]:
        options = {"registry": REGISTRY, "policy": NOBODY, "folder": ram_path}
        async with session_of(5, **options) as party:
            party.come(params)
            return await party.session.round(params), party.of(ClientConvicted)

    (first, told), (again, told_again) = asyncio.run(run()), asyncio.run(run())
    assert first.verdicts == again.verdicts != ()
    assert told == told_again != []


async def test_budget_without_room_for_the_next_attempt_keeps_the_verdicts(monkeypatch):
    planned = plan(5, 4, norm=1, epsilon=4, delta=1e-5, rounds=2, min_survivors=4, bits=20)
    params = replace(
        planned.params(threshold=4), modulus_bits=24, security="active", session=b"app"
    )
    spoil_boxes(monkeypatch, LIAR, {0})
    budget = Budget(planned.budget.epsilon / 1.4, planned.budget.delta)
    options = {"registry": REGISTRY, "policy": NOBODY, "budget": budget}
    async with session_of(5, **options) as party:
        for u in range(5):
            lost = {(0, 0, "unmasking"): "answer"} if u < 2 else None
            party.join(u, lambda *_: np.full(4, 0.25), lost, **member_options(u, params))
        with pytest.raises(BudgetSpent) as caught:
            await party.session.round(params)
        (verdict,) = caught.value.verdicts
        assert verdict.client == LIAR
        assert party.session.convicted == {LIAR}


def test_policy_of_a_session_is_a_policy():
    with pytest.raises(ParameterError):
        Session(range(5), policy=0.2)  # type: ignore[arg-type]
