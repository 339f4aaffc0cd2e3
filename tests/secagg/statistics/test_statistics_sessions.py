"""Studies over real sessions: the same integers as sums without protection, and departures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paillier_keys import keypair
from secagg import Registry, TooFewSurvivors
from secagg.oneshot import Helper, OneShotParams, OneShotPolicy
from secagg.paillier import Packing
from secagg.privacy import Budget, PrivacyLedger
from secagg.session import LocalHelper, LocalLink, Session, take_part
from secagg.session.wire import Declined, encode, read_task
from secagg.simulate import temporary_journals
from secagg.statistics import (
    Ledger,
    Logistic,
    Moments,
    Number,
    Plan,
    Privacy,
    Quantiles,
    Result,
    Site,
    Study,
    collect,
    one_shot,
    rounds,
    simulate,
)
from secagg.statistics.noise import SIGMA
from secagg.testing import make_identity

N = 4
PLAN = Plan(
    "session",
    {"x": Number(0, 100, "0.1"), "y": Number(0, 1)},
    (Moments("x"), Logistic("y", ("x",)), Quantiles("x")),
)


def table(site: int) -> dict[str, Any]:
    rng = np.random.default_rng(site)
    x = rng.normal(50, 10, 100).clip(0, 100)
    return {"x": x, "y": (rng.random(100) < 1 / (1 + np.exp((50 - x) / 10))).astype(int)}


TABLES = [table(site) for site in range(N)]


async def studied(way: str, steps: list[int], plan: Plan = PLAN) -> Study:
    """Study of four sites in a session by one way."""
    session = Session(range(N), name="study", deadlines=30)
    with temporary_journals(3) as journals:

        @contextlib.asynccontextmanager
        async def reach(params: OneShotParams) -> AsyncIterator[Any]:
            helpers = [Helper(params, journal) for journal in journals]
            yield [LocalHelper(one) for one in helpers], [one.endorse() for one in helpers]

        keys = [journal.public for journal in journals]
        policy = OneShotPolicy(helpers=frozenset(key for _, key in keys))
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for site in range(N):
                train = Site(TABLES[site], plan, ledger=Ledger())
                link = LocalLink(session, site)
                more = {"one_shot_policy": policy} if way == "one-shot" else {}
                group.create_task(take_part(link, site, train, **more))
            ask = rounds(session, N)
            if way == "one-shot":
                ask = one_shot(session, N, b"run", keys, reach, security="semi-honest")
            study = await collect(plan, ask, progress=lambda step, _: steps.append(step))
            await session.close()
    return study


async def encrypted(steps: list[int]) -> Study:
    """Study of four sites whose vectors are added under encryption."""
    private, sites = keypair(), [Site(one, PLAN) for one in TABLES]

    async def ask(study: Study, _: Any) -> Any:
        step = study.step
        packing = Packing(encoding=step.encoding, length=step.length, summands=N)
        vectors = [site(study.message()) for site in sites]
        sums = [private.public_key.encrypt_vector(vector, packing) for vector in vectors]
        found = private.decrypt_vector(sum(sums[1:], sums[0])).integers
        return SimpleNamespace(integers=found, survivors=range(N))

    return await collect(PLAN, ask, progress=lambda step, _: steps.append(step))


@pytest.mark.parametrize("way", ["rounds", "one-shot", "paillier"])
def test_all_ways_have_the_integers_of_plain_sums(way: str) -> None:
    steps = list[int]()
    study = asyncio.run(encrypted(steps) if way == "paillier" else studied(way, steps))
    assert steps == list(range(1, len(study.past) + 1))
    plain = Study(PLAN)
    while not plain.ended:
        sites = [Site(one, PLAN) for one in TABLES]
        vectors = [plain.vector(site.records) for site in sites]
        plain = plain.then(np.sum(vectors, axis=0))
    assert [sums.tolist() for sums in study.past] == [sums.tolist() for sums in plain.past]
    assert Result.of(study).tables == simulate(PLAN, TABLES, way="plain").tables


PRIVACY = Privacy(2, "0.00001", max_records=100, noises=2, colluders=1)
NOISED = Plan(
    "noised",
    {"x": Number(0, 100, "0.1")},
    [Quantiles("x", [0.5], bins=10, steps=2)],
    privacy=PRIVACY,
)


def test_sites_add_the_noise_of_each_step() -> None:
    """A sum of 4 sites has 4 / (3 − 1) noises."""
    study = asyncio.run(studied("rounds", [], NOISED))
    for number, sums in enumerate(study.past):
        before = Study(NOISED, study.past[:number])
        vectors = [before.vector(Site(one, NOISED).records) for one in TABLES]
        z = (sums - np.sum(vectors, axis=0)) / (SIGMA * np.sqrt(2))
        # 0 with chance e^−14 in an element
        assert 0 < np.min(abs(z)) < np.max(abs(z)) < 7
        assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)


class Declining(LocalLink):
    """Link of a member that declines to open the first attempt, after its masked input."""

    async def next_task(self, after: bytes) -> bytes | None:
        found = await super().next_task(after)
        if found is not None:
            self.task = read_task(found)
        return found

    async def send(self, answer: bytes) -> None:
        task = self.task
        if (task.number, task.attempt, task.step) == (0, 0, "unmasking"):
            answer = encode(Declined(task.id))
        await super().send(answer)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_site_judges_and_spends_each_attempt(security: Any) -> None:
    """Each attempt has noise of its own; a server that may lie gets a single attempt."""
    active = security == "active"
    registry = Registry({u: make_identity(u).public for u in range(N)}) if active else None
    spending = [PrivacyLedger(None, Budget(9, 1e-3), unit="record") for _ in range(N)]

    async def member(session: Session, u: int) -> None:
        site = Site(TABLES[u], NOISED, spending=spending[u])
        identity = make_identity(u) if active else None
        link = Declining(session, u)
        await take_part(link, u, site, identity=identity, registry=registry)

    async def run() -> None:
        session = Session(range(N), deadlines=30, attempts=2, registry=registry)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for u in range(N):
                group.create_task(member(session, u))
            with pytest.raises(TooFewSurvivors) if active else contextlib.nullcontext():
                await rounds(session, N, security=security)(Study(NOISED), None)
            await session.close()

    asyncio.run(run())
    assert [one.sums for one in spending] == [1 if active else 2] * N


@pytest.mark.parametrize("plan", [PLAN, NOISED], ids=["exact", "noised"])
def test_a_site_that_leaves_ends_the_study(plan: Plan) -> None:
    async def ask(study: Study, sites: Any) -> Any:
        here = TABLES if study.number == 1 else TABLES[:3]
        sums = np.sum([study.vector(Site(one, plan).records) for one in here], axis=0)
        return SimpleNamespace(integers=sums, survivors=range(len(here)))

    with pytest.raises(TooFewSurvivors):
        asyncio.run(collect(plan, ask))
