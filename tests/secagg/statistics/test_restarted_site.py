"""A study goes on with a site that was restarted in the middle of a later step."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from secagg import JournalError, TooFewSurvivors
from secagg.session import LocalLink, Session, take_part
from secagg.session.wire import read_task
from secagg.statistics import (
    Category,
    Ledger,
    Logistic,
    Moments,
    Number,
    Plan,
    Result,
    Site,
    Study,
    collect,
    rounds,
    simulate,
)

PLAN = Plan(
    "restart",
    {"age": Number(0, 100), "event": Category((0, 1))},
    (Logistic("event", ("age",)),),
)
SITES = range(1, 6)


class Dying(LocalLink):
    """Link of a process that dies with a task of a phase, in a round."""

    def __init__(self, session: Session, client: int, phase: str) -> None:
        super().__init__(session, client)
        self._phase = phase

    async def next_task(self, after: bytes) -> bytes | None:
        found = await super().next_task(after)
        if found is not None:
            task = read_task(found)
            if (task.number, task.step) == (1, self._phase):
                raise ConnectionError
        return found


@pytest.mark.parametrize("phase", ["share_keys", "masked_input", "unmasking"])
def test_step_waits_for_a_restarted_site(phase, tmp_path):
    random = np.random.default_rng(3)
    age = random.integers(0, 100, (6, 40))
    tables = [{"age": a, "event": (a > random.integers(0, 100, 40)) * 1} for a in age]

    async def site(session: Session, u: int) -> int:
        ledger = tmp_path / f"{u}"
        try:
            if u == 3:
                mine = Site(tables[u], PLAN, ledger=Ledger(ledger))
                return await take_part(Dying(session, u, phase), u, mine)
        except ConnectionError:
            pass
        again = Site(tables[u], PLAN, ledger=Ledger(ledger))
        return await take_part(LocalLink(session, u), u, again)

    async def run() -> Result:
        async with Session(SITES, deadlines=20.0) as session:
            members = [asyncio.ensure_future(site(session, u)) for u in SITES]
            study = await collect(PLAN, rounds(session, len(SITES)))
        assert all(await asyncio.gather(*members))
        return Result.of(study)

    expected = simulate(PLAN, [tables[u] for u in SITES], way="plain")
    assert asyncio.run(run()).to_json() == expected.to_json()


def test_restarted_sites_answer_no_step_again_without_a_site(tmp_path: Path) -> None:
    study = Study(Plan("once", {"age": Number(0, 100)}, [Moments("age")]))
    table = {"age": np.arange(40)}

    async def run() -> None:
        async with Session(SITES, deadlines=20.0, attempts=1) as session:
            ask = rounds(session, len(SITES))
            for asked in (None, SITES[1:], SITES):
                members = []
                for u in SITES:
                    ledger = Ledger(tmp_path / f"{u}")
                    site = Site(table, study.plan, ledger=ledger)
                    link, kept = LocalLink(session, u), ledger.cohorts(study.plan)
                    members.append(asyncio.ensure_future(take_part(link, u, site, ledger=kept)))
                if asked == SITES[1:]:
                    with pytest.raises(TooFewSurvivors):
                        await ask(study, asked)
                else:
                    assert (await ask(study, asked)).survivors == tuple(SITES)
                for member in members:
                    member.cancel()
                await asyncio.wait(members)

    asyncio.run(run())
    path = tmp_path / "1"
    path.write_text(path.read_text("utf-8").replace('"c2VjYWdn', '"d2VjYWdn'), "utf-8")
    with pytest.raises(JournalError):
        Ledger(path)
