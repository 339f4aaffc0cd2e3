"""Noise and budgets in sessions: the server's budget, the members' ledgers, and a liar's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from secagg import (
    Bounds,
    BudgetSpent,
    JournalError,
    Noise,
    ParameterError,
    Phase,
    RoundParams,
    Server,
    TooFewSurvivors,
)
from secagg.journal import Journal
from secagg.privacy import Budget, Loss, PrivacyLedger, plan
from secagg.session import RoundBegun, RoundFailed, RoundFinished, Session, take_part
from secagg.session.store import Store
from secagg.session.wire import Answer, Declined, Task
from secagg.testing import toy_policy
from session_party import Script, first_task, member_options, named, session_of

N, LENGTH = 5, 4
PLAN = plan(
    N, LENGTH, norm=1, epsilon=4, delta=1e-5, rounds=2, min_survivors=4, colluders=1, bits=20
)
PARAMS = replace(PLAN.params(threshold=3), modulus_bits=24)
ONE = np.array([0.5, 0.0, 0.0, 0.0])


def refuse_to_train(message: bytes, params: RoundParams) -> Any:
    raise AssertionError("trained for a sum without room")


def join_all(
    party: Any,
    ledgers: dict[int, PrivacyLedger],
    lost: Any = None,
    seen: list[int] | None = None,
) -> None:
    def train(u: int) -> np.ndarray:
        if seen is not None:
            seen.append(u)
        return ONE

    for u in range(N):
        party.join(
            u,
            lambda m, p, u=u: train(u),
            (lost or {}).get(u),
            spending=ledgers.setdefault(u, PrivacyLedger(None, PLAN.budget)),
            **member_options(u, PARAMS),
        )


async def test_sum_has_noise_and_the_budget_ends_the_session():
    """Both sides end after as many sums as the plan has, before anybody is asked again."""
    ledgers: dict[int, PrivacyLedger] = {}
    async with session_of(N, budget=PLAN.budget) as party:
        join_all(party, ledgers)
        errors = []
        for _ in range(2):
            result = await party.session.round(PARAMS)
            errors.append(np.abs(result.sum - N * ONE).max())
        # without noise the error is of rounding: a step a client
        assert min(errors) > 10 * N * PARAMS.encoding.step
        assert max(errors) < 10 * N * float(PLAN.sigma) * PARAMS.encoding.step
        assert [ledger.sums for ledger in ledgers.values()] == [2] * N
        with pytest.raises(BudgetSpent):
            await asyncio.wait_for(party.session.round(PARAMS), 9)
        assert len(party.of(RoundBegun)) == 2
        first, second = (event.epsilon for event in party.of(RoundFinished))
        assert 0 < first < second <= PLAN.budget.epsilon
        assert party.session.spent.epsilon(PLAN.budget.delta) == second


@pytest.mark.parametrize("step", ["masked_input", "unmasking"])
async def test_failed_attempt_is_spent(step):
    """A member counts what leaves, and the server an attempt of known survivors."""
    lost = {u: {(0, 0, step): "answer"} for u in (1, 2)}
    ledgers: dict[int, PrivacyLedger] = {}
    async with session_of(N, budget=PLAN.budget, attempts=1) as party:
        join_all(party, ledgers, lost)
        with pytest.raises(TooFewSurvivors):
            await party.session.round(replace(PARAMS, threshold=4))
        (failed,) = party.of(RoundFailed)
        counted = Loss() if step == "masked_input" else Loss.of(PARAMS)
        assert failed.epsilon == counted.epsilon(PLAN.budget.delta)
    assert [ledger.sums for ledger in ledgers.values()] == [1] * N


async def test_next_attempt_is_spent_and_trains_no_more():
    """Two members lose the first attempt before their masked input, so they spend once."""
    ledgers: dict[int, PrivacyLedger] = {}
    trained = []

    def spoiled(task: Task) -> Task:
        if (task.attempt, task.step) != (0, "masked_input"):
            return task
        return msgspec.structs.replace(task, data=task.data[:-1])

    async with session_of(N, attempts=2) as party:
        join_all(party, ledgers, seen=trained)
        for u in (1, 2):
            party.links[u].alter = spoiled
        assert (await party.session.round(PARAMS)).survivors == tuple(range(N))
        assert party.session.spent == Loss.of(PARAMS)
    assert [ledgers[u].sums for u in range(N)] == [2, 1, 1, 2, 2]
    assert sorted(trained) == list(range(N))


async def test_member_without_room_says_what_it_completed():
    ledgers = {0: PrivacyLedger(None, Budget(PLAN.budget.epsilon / 1.4, PLAN.budget.delta))}
    async with session_of(N) as party:
        join_all(party, ledgers)
        await party.session.round(PARAMS)
        with pytest.raises(BudgetSpent) as error:
            await asyncio.gather(party.session.round(PARAMS), party.running[0])
        assert error.value.completed == ((0,), ())


async def test_budget_of_a_folder_survives_a_restart_and_counts_an_attempt_once(tmp_path):
    async with session_of(N, budget=PLAN.budget, folder=tmp_path) as party:
        join_all(party, {})
        await party.session.round(PARAMS)
        spent = party.session.spent
        assert not party.session._store.keep_spent(0, 0, spent)  # as after a kill
    session = Session(range(N), budget=PLAN.budget, folder=tmp_path)
    assert session.spent == spent == Loss.of(PARAMS)
    assert (await session.round(PARAMS)).survivors == tuple(range(N))  # from the folder
    assert session.spent == spent
    await session.close()
    smaller = Budget(PLAN.budget.epsilon / 2, PLAN.budget.delta)
    session = Session(range(N), budget=smaller, folder=tmp_path)
    session.skip_to(1)
    with pytest.raises(BudgetSpent):
        await session.round(PARAMS)
    await session.close()


async def test_sum_whose_loss_was_not_stored_still_awaits_its_inputs(ram_path, monkeypatch):
    """Else a resumed attempt would open the sum without the loss in its folder."""

    def full(*_: object) -> bool:
        raise JournalError("the disk is full")

    monkeypatch.setattr(Store, "keep_spent", full)
    async with session_of(N, budget=PLAN.budget, folder=ram_path) as party:
        join_all(party, {})
        with pytest.raises(JournalError):
            await party.session.round(PARAMS)
        params = RoundParams.from_bytes(party.links[0].tasks[0].params)
    with Journal.open(ram_path / "round-0-0.journal", params) as journal:
        assert Server.resume(journal).phase is Phase.MASKED_INPUT


LIES = {
    "repeats": PARAMS,
    "smaller sigma": replace(PARAMS, noise=Noise(PLAN.sigma / 2, 1)),
    "no noise": replace(PARAMS, noise=None),
    "fewer survivors": replace(PARAMS, min_survivors=3),
    "fewer colluders": replace(PARAMS, noise=Noise(PLAN.sigma, 0)),
}


def proposed(params: list[RoundParams], **options: Any) -> list[Answer | Declined]:
    """Return the answers of a member, which must not train, to first tasks of rounds."""
    script = Script([first_task(named(one, i), i) for i, one in enumerate(params)])
    options.setdefault("policy", toy_policy(PARAMS))
    with pytest.raises(ParameterError):
        asyncio.run(take_part(script, 0, refuse_to_train, **options))
    return script.answers


@pytest.mark.parametrize("lie", LIES)
def test_check52_lying_server_gets_no_less_noise_from_a_member(lie):
    """A member with a ledger or bounds declines before the training, and spends nothing."""
    ledger = PrivacyLedger(None, Budget(PLAN.budget.epsilon / 1.4, PLAN.budget.delta))
    if lie in ("repeats", "smaller sigma", "no noise"):
        ledger.spend(PARAMS)
        (answer,) = proposed([LIES[lie]], spending=ledger)
        assert isinstance(answer, Declined)
        assert ledger.sums == 1
    if lie != "repeats":
        kinds = [type(one) for one in proposed([PARAMS, LIES[lie]])]
        assert kinds == [Answer, Declined]
        policy = replace(toy_policy(PARAMS), bounds=Bounds.of(PARAMS))
        (answer,) = proposed([LIES[lie]], policy=policy)
        assert isinstance(answer, Declined)


def test_ledger_of_a_file_survives_a_restart(tmp_path: Path):
    path = tmp_path / "ledger"
    budget = Budget(PLAN.budget.epsilon / 1.4, PLAN.budget.delta)
    PrivacyLedger(path, budget).spend(PARAMS)
    (answer,) = proposed([PARAMS], spending=PrivacyLedger(path, budget))
    assert isinstance(answer, Declined)
