"""One-shot sums in a session: dead and lying helpers, and reports that fail a check."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from oneshot_parties import Parties, registry_for
from oneshot_parties import rejects as rejected
from secagg import (
    BudgetSpent,
    CohortLedger,
    FixedPoint,
    JournalError,
    Noise,
    ParameterError,
    Registry,
    TooFewSurvivors,
)
from secagg.oneshot import Helper, OneShotParams, OneShotPolicy
from secagg.privacy import Budget, Loss, PrivacyLedger
from secagg.session import (
    HelperAnswered,
    HelperFailed,
    LocalHelper,
    MemberDeclined,
    MessageRejected,
    RoundFailed,
    bind,
    take_part,
)
from secagg.session.reports import Reports
from secagg.session.wire import Answer, Declined, Task, encode, read_answer
from secagg.testing import make_identity
from session_party import Party, rejects, session_of, until, vector_of

N, LENGTH = 6, 5
MESSAGE = b"model"


@dataclass
class Setting:
    """Parameters of a batch, its helpers and their endorsements."""

    params: OneShotParams
    helpers: list[Helper]
    endorsements: list[bytes]
    registry: Registry | None

    @property
    def links(self) -> list[LocalHelper]:
        return [LocalHelper(helper) for helper in self.helpers]

    def sum(self, party: Party, links: list[Any] | None = None) -> Awaitable[Any]:
        asked = self.links if links is None else links
        endorsed = self.endorsements
        return party.session.one_shot(self.params, asked, MESSAGE, endorsements=endorsed)

    def options(self, u: int) -> dict[str, Any]:
        policy = OneShotPolicy(helpers=[key for _, key in self.params.helpers])
        more = {"identity": make_identity(u)} if self.params.active else {}
        return {"one_shot_policy": policy} | more

    def start(self, party: Party, lost: dict[int, Any] | None = None) -> None:
        for u in sorted(party.session._desk.members):
            train = lambda message, params, u=u: vector_of(u, LENGTH)  # noqa: E731
            party.join(u, train, (lost or {}).get(u), **self.options(u))


@pytest.fixture(params=["semi-honest", "active"])
def setting(request: pytest.FixtureRequest, ram_path: Path) -> Iterator[Setting]:
    with ExitStack() as stack:
        yield make_setting(stack, ram_path, request.param)


def make_setting(
    stack: ExitStack, path: Path, security: str, session: bytes = b"s", **changes: object
) -> Setting:
    (path / session.hex()).mkdir()
    made = Parties(
        path / session.hex(),
        3 if security == "semi-honest" else 4,
        n_clients=N,
        length=LENGTH,
        encoding=FixedPoint(clip=8.0),
        min_clients=4,
        security=security,
        session=bind(session, MESSAGE),
        **changes,
    )
    stack.callback(made.close)
    endorsements = [helper.endorse() for helper in made.helpers]
    return Setting(made.params, made.helpers, endorsements, registry_for(made.params))


def assert_plain_sum(result: Any, survivors: set[int]) -> None:
    assert set(result.survivors) == survivors
    assert (result.sum == sum(vector_of(u, LENGTH) for u in survivors)).all()


class Broken:
    """Link to a helper that fails in one call; `called` is told of each answer."""

    def __init__(
        self,
        link: LocalHelper,
        step: str,
        fault: str,
        called: Callable[[str], object] = lambda step: None,
    ) -> None:
        self.link, self.step, self.fault, self.called = link, step, fault, called
        self.number = link.number

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        found = await self.link.check(boxes)
        return await self._spoil("check", found, tuple(range(N)), "garbage")

    async def reserve(self, request: bytes) -> bytes:
        return await self._spoil("reserve", *self._lies(await self.link.reserve(request)))

    async def open(self, request: bytes) -> bytes:
        return await self._spoil("open", *self._lies(await self.link.open(request)))

    def _lies(self, answer: bytes) -> tuple[bytes, bytes, object]:
        return answer, answer[:-1] + bytes([answer[-1] ^ 1]), b"garbage"

    async def _spoil(self, step: str, answer: Any, lie: Any, garbage: Any) -> Any:
        self.called(step)
        if step == self.step:
            match self.fault:
                case "dead":
                    raise ConnectionError("no route\x1b to it")
                case "hangs":
                    await asyncio.get_running_loop().create_future()
                case "lies":
                    return lie
                case "garbage":
                    return garbage
        return answer


def run_batch(setting: Setting, links: list[Any], **options: Any) -> tuple[Any, Party]:
    async def run() -> tuple[Any, Party]:
        async with session_of_members(setting, **options) as party:
            setting.start(party)
            hanging = [link for link in links if getattr(link, "fault", "") == "hangs"]

            def expire(event: Any) -> None:
                if hanging and isinstance(event, HelperAnswered):
                    done = [e for e in party.of(HelperAnswered) if e.phase == event.phase]
                    if event.phase == hanging[0].step and len(done) == len(links) - 1:
                        party.hand.expire()

            party.on_event = expire
            result = await setting.sum(party, links)
            assert await party.end() == dict.fromkeys(range(N), 1)
            return result, party

    return asyncio.run(run())


def session_of_members(setting: Setting, **options: Any) -> Any:
    return session_of(N, registry=setting.registry, **options)


def test_one_helper_may_be_missing(setting):
    result, _ = run_batch(setting, setting.links[1:])
    assert_plain_sum(result, set(range(N)))


STEPS = {"semi-honest": ["check", "open"], "active": ["check", "reserve", "open"]}


@pytest.mark.parametrize("fault", ["dead", "hangs", "garbage", "lies"])
def test_a_failing_helper_does_not_stop_a_batch_that_the_others_open(setting, fault):
    security = setting.params.security
    for step in STEPS[security]:
        if (security, step, fault) == ("semi-honest", "open", "lies"):
            continue  # nobody can tell which of two holders lies
        with ExitStack() as stack:
            path = setting.helpers[0]._journal.path.parent.parent
            fresh = make_setting(stack, path, security, f"{fault} {step}".encode())
            links = [Broken(fresh.links[0], step, fault), *fresh.links[1:]]
            result, party = run_batch(fresh, links)
            assert_plain_sum(result, set(range(N)))
            (failed,) = party.of(HelperFailed)
            assert (failed.helper, failed.phase) == (1, step)


@pytest.mark.parametrize("setting", ["semi-honest"], indirect=True)
def test_holders_that_contradict_each_other_end_the_batch(setting):
    links = [Broken(setting.links[0], "open", "lies"), *setting.links[1:]]
    rejected("holders", lambda: run_batch(setting, links, attempts=1))


async def test_too_few_helpers_are_an_error_and_the_list_stays_fixed(setting):
    dead = [Broken(link, "open", "dead") for link in setting.links]
    async with session_of_members(setting, attempts=2) as party:
        setting.start(party)
        await rejects("helpers", setting.sum(party, dead))
        assert len(party.of(RoundFailed)) == 2


def test_helpers_that_were_restarted_get_the_boxes_again(setting):
    class Restarted(Broken):
        async def open(self, request: bytes) -> bytes:
            if self.fault:
                self.fault = ""
                old = self.link._helper
                self.link._helper = Helper(
                    old.params, old._journal, registry=setting.registry, policy=old._policy
                )
            return await self.link.open(request)

    links = [Restarted(link, "open", "restart") for link in setting.links]
    result, party = run_batch(setting, links)
    assert_plain_sum(result, set(range(N)))
    assert not party.of(HelperFailed)


async def test_members_that_stay_away_are_not_in_the_sum(setting):
    async with session_of_members(setting) as party:
        setting.start(party, {1: {(0, 0, "report"): "answer"}})
        result = await setting.sum(party)
        assert_plain_sum(result, {0, 2, 3, 4, 5})


async def test_too_few_reports_are_collected_again_without_a_second_report_of_anybody(setting):
    async with session_of_members(setting) as party:
        lost = {(0, 0, "report"): "answer"}
        setting.start(party, dict.fromkeys(range(1, N), lost))
        ending = asyncio.create_task(setting.sum(party))
        await until(lambda: party.of(RoundFailed))
        for u in range(1, N):
            party.running[u].cancel()
            party.join(u, lambda m, p, u=u: vector_of(u, LENGTH), **setting.options(u))
        assert_plain_sum(await ending, set(range(N)))
        assert len(party.links[0].answers) == 1


class Spoiled(Party):
    """Party in which client 1 sends the report of client 2, or garbage."""

    async def deliver(self, link: Any, task: Any, answer: bytes) -> None:
        if link._client == 1:
            await until(lambda: self.links[2].answers)
            await link.send(encode(self.links[2].answers[0]))
        if link._client == 3:
            await link.send(encode(Answer(task.id, b"garbage")))
        await link.send(answer)


def test_an_attempt_asks_for_no_more_reports_than_the_batch_has_room_for(setting, monkeypatch):
    class First:
        def sample(self, ids: list[int], size: int) -> list[int]:
            return ids[:size]

    monkeypatch.setattr("secagg.session.presence.SystemRandom", First)

    async def run() -> None:
        async with session_of(2 * N, registry=setting.registry) as party:
            setting.start(party, {u: {(0, 0, "report"): "task"} for u in (3, 4, 5)})
            assert_plain_sum(await setting.sum(party), {0, 1, 2, 6, 7, 8})

    asyncio.run(run())


async def test_reports_of_others_and_garbage_are_rejected(setting):
    party = Spoiled(range(N), registry=setting.registry)
    setting.start(party)
    result = await setting.sum(party)
    assert_plain_sum(result, {0, 2, 4, 5})
    checks = {event.client: event.check for event in party.of(MessageRejected)}
    assert checks == {1: "sender", 3: "length"}
    await party.end()


def test_a_client_whose_box_fails_at_a_helper_is_dropped(setting):
    links = [Picky(setting.links[0], "", ""), *setting.links[1:]]
    result, party = run_batch(setting, links)
    assert_plain_sum(result, {0, 1, 2, 3, 5})
    assert not party.of(HelperFailed)
    rejected = [(e.client, e.phase, e.check) for e in party.of(MessageRejected)]
    assert rejected == [(4, "check", "helpers")]


def test_every_helper_rejecting_every_report_is_too_few_survivors(setting):
    links = [Broken(link, "check", "lies") for link in setting.links]
    with pytest.raises(TooFewSurvivors):
        run_batch(setting, links, attempts=1)


def refuse_to_train(*_: object) -> None:
    pytest.fail("trained for helpers that are not trusted")


def test_a_member_reports_to_trusted_helpers_only(setting):
    other = OneShotPolicy(helpers=[make_identity(77).public])
    endorsed = setting.endorsements
    cases = [
        ({"one_shot_policy": None}, endorsed),
        ({"one_shot_policy": OneShotPolicy()}, endorsed),
        ({"one_shot_policy": other}, endorsed),
        ({}, []),
        ({}, endorsed[::-1]),
    ]
    for options, endorsements in cases:
        asked, sent = replace(setting, endorsements=endorsements), list[type]()
        with pytest.raises(ParameterError):
            take_tasks(asked, [(0, 0, MESSAGE)], refuse_to_train, sent=sent, **options)
        assert sent in ([], [Declined])


async def test_endorsements_of_another_kind_raise_before_the_sum(setting):
    async with session_of_members(setting) as party:
        setting.start(party)
        with pytest.raises(ParameterError):
            await replace(setting, endorsements=b"x" * 64).sum(party)
        result = await replace(setting, endorsements=iter(setting.endorsements)).sum(party)
        assert_plain_sum(result, set(range(N)))


@pytest.mark.parametrize("setting", ["active"], indirect=True)
def test_check53_a_member_with_an_identity_trains_for_active_sums_only(setting):
    """A lying server could relay semi-honest ones, whose message nobody compares."""
    weak = replace(setting.params, security="semi-honest")
    endorsed = [Helper(weak, helper._journal).endorse() for helper in setting.helpers]
    lie, called = Setting(weak, [], endorsed, None), list[bytes]()

    def train(message: bytes, params: OneShotParams) -> Any:
        called.append(message)
        return vector_of(0, LENGTH)

    identity = {"identity": make_identity(0)}
    both = identity | {"registry": setting.registry}
    for options, named in ((identity, "identity"), (both, "registry")):
        with pytest.raises(ParameterError, match=named):
            take_tasks(lie, [(0, 0, b"no gradient")], train, **options)
    # whichever of the two is missing; over HTTP the identity always signs requests
    for given, missing in ((None, "registry="), (setting.registry, "identity=")):
        with pytest.raises(ParameterError, match=missing):
            take_tasks(setting, [(0, 0, MESSAGE)], train, identity=None, registry=given)
    assert not called


async def test_a_helper_passed_twice_is_an_error(setting):
    async with session_of_members(setting) as party:
        with pytest.raises(ParameterError):
            await party.session.one_shot(setting.params, setting.links * 2)


class Picky(Broken):
    """Link to a helper that rejects client 4."""

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        await self.link.check(boxes)
        return (4,)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_batch_goes_on_with_the_same_list_when_the_program_runs_again(
    setting, when, ram_path
):
    """Also if a helper rejects a client before the list is fixed, or later."""
    folder, picky = ram_path / "session", Picky(setting.links[0], "", "")

    async def run(links: list[Any], join: bool) -> Any:
        async with session_of_members(setting, folder=folder, attempts=1) as party:
            setting.start(party) if join else None
            return await setting.sum(party, links)

    first, later = setting.links[0], picky
    if when == "before":
        first, later = later, first
    dead = [first, *(Broken(link, "open", "dead") for link in setting.links[1:])]
    rejected("helpers", lambda: asyncio.run(run(dead, True)))
    result = asyncio.run(run([later, *setting.links[1:]], False))
    assert_plain_sum(result, set(range(N)) - ({4} if when == "before" else set()))


ALTERED = {
    "report": "UPDATE reports SET report = x'ff' WHERE number = 1",
    "list": "UPDATE list SET ids = substr(ids, 9)",
    "no ids": "UPDATE list SET ids = NULL",
    "two lists": "INSERT INTO list SELECT * FROM list",
}


@pytest.mark.parametrize("change", ALTERED)
def test_altered_reports_are_found(ram_path, change):
    """A report less would make another list, and a wrong one a wrong sum."""
    path = ram_path / "reports"
    with closing(Reports(path)) as reports:
        reports.extend([b"0", b"1"])
        reports.extend([b"2"])
        reports.fix((3, 4, 5))
    with closing(Reports(path)) as reports:
        assert list(reports.stored()) == [b"0", b"1", b"2"]
        assert reports.fixed == (3, 4, 5)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(ALTERED[change])
    found: list[Any] = []
    with closing(Reports(path)) as reports, pytest.raises(JournalError):
        read(reports, found)
    assert found[:3] == [b"0", b"1", b"2"][: len(found)]  # an altered one could not be added


def read(reports: Reports, found: list[Any]) -> None:
    for report in reports.stored():
        found.append(report)  # noqa: PERF402 - those before the error count
    found.append(reports.fixed)


def test_the_list_is_on_the_disk_before_a_helper_gets_it(setting, ram_path):
    folder, seen = ram_path / "session", []

    def look(step: str) -> None:
        copy = ram_path / f"copy {len(seen)}"  # the file itself is locked
        copy.write_bytes((folder / "round-0.reports").read_bytes())
        with closing(sqlite3.connect(copy)) as database:
            seen.append((step, len(database.execute("SELECT ids FROM list").fetchall())))

    run_batch(setting, [Broken(link, "", "", look) for link in setting.links], folder=folder)
    assert set(seen) == {
        (step, int(step != "check")) for step in STEPS[setting.params.security]
    }


Messages = list[tuple[int, int, bytes]]


def take_tasks(
    setting: Setting, messages: Messages, train: Any, **options: Any
) -> tuple[int, list[type]]:
    """Give a member tasks by number, attempt and message; return its count and answers."""
    about, endorsed = setting.params.to_bytes(), b"".join(setting.endorsements)
    tasks = [
        Task(bytes([place]) * 16, number, attempt, "report", about, message, endorsed)
        for place, (number, attempt, message) in enumerate(messages)
    ]
    sent = options.pop("sent", [])

    class Script:
        async def next_task(self, after: bytes) -> bytes | None:
            return encode(tasks[len(sent)]) if len(sent) < len(tasks) else None

        async def send(self, answer: bytes) -> None:
            sent.append(type(read_answer(answer, len(answer), 0, "report")))

    return asyncio.run(take_part(Script(), 0, train, **setting.options(0) | options)), sent


def test_a_member_reports_once_in_a_session_of_the_helpers(setting):
    messages = [(0, 0, MESSAGE), (0, 1, MESSAGE), (1, 0, MESSAGE)]
    done, sent = take_tasks(setting, messages, lambda m, p: vector_of(0, LENGTH))
    assert (done, sent) == (1, [Answer, Declined, Declined])


def test_check51_a_member_trains_on_the_message_of_the_parameters_only(setting, caplog):
    """In no round or attempt, and not on an empty message either."""
    trained: list[bytes] = []

    def train(message: bytes, params: OneShotParams) -> Any:
        trained.append(message)
        return vector_of(0, LENGTH)

    lies = [(0, 0, b"other"), (0, 1, b""), (1, 0, MESSAGE + b"\0"), (2, 0, MESSAGE[:-1])]
    done, sent = take_tasks(setting, [*lies, (2, 1, MESSAGE)], train)
    assert (done, sent, trained) == (1, [*[Declined] * len(lies), Answer], [MESSAGE])
    checks = [getattr(record, "check", "") for record in caplog.records]
    assert checks == ["message"] * len(lies)


async def test_a_server_that_sends_others_another_message_gets_no_sum(setting):
    """A model without a gradient would make the sum the victim's vector."""
    victim = 1

    def train(message: bytes, params: OneShotParams, u: int) -> Any:
        return vector_of(u, LENGTH) if message == MESSAGE else np.zeros(LENGTH)

    async with session_of_members(setting, attempts=1) as party:
        for u in range(N):
            party.join(u, partial(train, u=u), **setting.options(u))
            if u != victim:
                party.links[u].alter = partial(msgspec.structs.replace, message=b"no gradient")
        with pytest.raises(TooFewSurvivors):
            await setting.sum(party)
        assert {event.client for event in party.of(MemberDeclined)} == {0, 2, 3, 4, 5}


def test_check51_parameters_of_a_sum_must_name_the_message(setting):
    unbound = replace(setting.params, session=b"s")

    async def run(params: OneShotParams, message: bytes) -> None:
        async with session_of_members(setting, attempts=1) as party:
            party.silent |= set(range(N))
            with pytest.raises(ParameterError):
                await party.session.one_shot(params, [], message)
            assert not party.events

    for params, message in [
        (unbound, b""),
        (unbound, MESSAGE),
        (setting.params, b""),
        (setting.params, b"other"),
    ]:
        asyncio.run(run(params, message))


@pytest.mark.parametrize("setting", ["active"], indirect=True)
def test_too_few_honest_answers_are_an_error_rather_than_a_wrong_sum(setting):
    liar = Broken(setting.links[0], "open", "lies")
    dead = [Broken(link, "open", "dead") for link in setting.links[2:]]
    links = [liar, setting.links[1], *dead]
    error = rejected("helpers", lambda: run_batch(setting, links, attempts=1))
    assert str(error).count("no route\\x1b to it") == len(dead)


def test_a_helper_that_answers_for_another_one_is_left_out(setting):
    class Forger(Broken):
        async def open(self, request: bytes) -> bytes:
            answer = await self.link.open(request)
            return answer[:34] + (2).to_bytes(2, "little") + answer[36:]

    links = [Forger(setting.links[0], "", ""), *setting.links[1:]]
    result, party = run_batch(setting, links)
    assert_plain_sum(result, set(range(N)))
    assert [(e.helper, e.check) for e in party.of(HelperFailed)] == [(1, "helper")]


def test_the_ledger_rejects_a_list_too_close_to_an_earlier_one(setting, ram_path):
    ledger, asked, folder = CohortLedger(min_difference=3), [], ram_path / "session"

    assert ledger.record(range(N - 1)) == 0
    links = [Broken(link, "", "", asked.append) for link in setting.links]
    with pytest.raises(TooFewSurvivors):
        run_batch(setting, links, ledger=ledger, folder=folder)
    assert set(asked) == {"check"}


def test_the_ledger_with_the_list_is_stored(setting, ram_path):
    ledger, folder = CohortLedger(min_difference=3), ram_path / "session"
    result, _ = run_batch(setting, setting.links, ledger=ledger, folder=folder)
    assert_plain_sum(result, set(range(N)))
    assert ledger.record(range(1, N)) == 1
    with closing(sqlite3.connect(folder / "session")) as database:
        assert database.execute("SELECT ledger FROM head").fetchone() == (ledger.to_bytes(),)


def test_a_batch_is_spent_once_by_both_sides(ram_path):
    """Helpers open one list in two attempts; after that neither side has room for a batch."""
    with ExitStack() as stack:
        noise = Noise(1 << 22)
        first, second = (
            make_setting(stack, ram_path, "active", name, noise=noise) for name in (b"1", b"2")
        )
        loss = Loss.of(first.params)
        budget = Budget(1.3 * loss.epsilon(1e-6), 1e-6)
        ledgers = [PrivacyLedger(None, budget) for _ in range(N)]

        async def run() -> None:
            async with session_of_members(first, budget=budget, attempts=2) as party:
                for u in range(N):
                    # zeros of an invalid vector are a report, too, and spent once
                    vector = vector_of(u, LENGTH) if u else None
                    options = first.options(u) | {"spending": ledgers[u]}
                    party.join(u, lambda m, p, v=vector: v, **options)
                dead = [Broken(link, "open", "dead") for link in first.links]
                await rejects("helpers", first.sum(party, dead))
                assert len(party.of(RoundFailed)) == 2
                assert party.session.spent == loss
                assert [ledger.sums for ledger in ledgers] == [1] * N
                with pytest.raises(BudgetSpent):
                    await asyncio.wait_for(second.sum(party), 9)

        asyncio.run(run())
        with pytest.raises(BudgetSpent):
            take_tasks(second, [(0, 0, MESSAGE)], refuse_to_train, spending=ledgers[0])
        assert ledgers[0].sums == 1
