"""Rounds in a session: the sums, drop-outs at every phase, deadlines, retries and cohorts."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from secagg import (
    ClientPolicy,
    CohortLedger,
    Dispute,
    FixedPoint,
    LocalProtocolError,
    ParameterError,
    Registry,
    RemoteProtocolError,
    RoundParams,
    RoundResult,
    Server,
    TooFewSurvivors,
)
from secagg.protocol import NEXT, Phase
from secagg.protocol.client_ids import client_id
from secagg.session import (
    Completed,
    Deadlines,
    Gathering,
    MemberDeclined,
    MessageAccepted,
    MessageRejected,
    PhaseClosed,
    PhaseOpened,
    Place,
    RoundBegun,
    RoundFailed,
    RoundFinished,
    Session,
    TaskTaken,
)
from secagg.session.events import Hooks
from secagg.session.rounds import Attempt
from secagg.session.wire import Answer, Declined, encode, message_digest, read_name, write_name
from secagg.testing import make_identity
from session_party import (
    Party,
    member_options,
    registry_of,
    rejects,
    session_of,
    train_of,
    until,
    vector_of,
)

N, LENGTH = 5, 6
SEMI = RoundParams(
    n_clients=N, threshold=3, length=LENGTH, encoding=FixedPoint(clip=8.0), session=b"app"
)
ACTIVE = replace(SEMI, threshold=4, security="active")


async def rejoin(party: Party, clients: Any, params: RoundParams, **more: Any) -> None:
    """Restart members after the first attempt has failed."""
    await until(lambda: party.of(RoundFailed))
    for u in clients:
        party.running[u].cancel()
        party.come(params, [u], **more)


def assert_plain_sum(result: RoundResult, survivors: set[int]) -> None:
    assert set(result.survivors) == survivors
    assert (result.sum == sum(vector_of(u, LENGTH) for u in survivors)).all()


@pytest.mark.parametrize("params", [SEMI, ACTIVE], ids=["semi-honest", "active"])
async def test_rounds_give_the_plain_sum_and_members_end_with_the_session(params):
    party = Party(range(N), registry=registry_of(params))
    seen: list[bytes] = []
    party.come(params, seen=seen)
    for number in range(3):
        result = await party.session.round(params, b"model %d" % (number // 2))
        assert_plain_sum(result, set(range(N)))
    assert await party.end() == dict.fromkeys(range(N), 3)
    for task in (task for link in party.links.values() for task in link.tasks):
        assert bool(task.params) == (task.step == "advertise_keys")
        assert bool(task.message) == (task.step == "masked_input")
    assert sorted(seen) == sorted([b"model 0", b"model 0", b"model 1"] * N)
    finished = party.of(RoundFinished)
    assert [event.place.number for event in finished] == [0, 1, 2]
    assert {event.clients for event in party.of(RoundBegun) + finished} == {tuple(range(N))}
    closed = [event for event in party.of(PhaseClosed) if event.place.number == 1]
    assert [event.phase for event in closed] == list(NEXT[params.security])
    taken = sum(event.size for event in party.of(TaskTaken))
    assert sum(event.bytes_down for event in party.of(PhaseClosed)) == taken
    assert all(event.missing == () and event.bytes_up for event in closed)


@pytest.mark.parametrize("lost", ["task", "answer"])
@pytest.mark.parametrize("params", [SEMI, ACTIVE], ids=["semi-honest", "active"])
def test_a_member_may_drop_out_in_any_phase(params, lost):
    async def run(step: str) -> None:
        async with session_of(N, registry=registry_of(params)) as party:
            party.come(params, lost={2: {(0, 0, step): lost}})
            result = await party.session.round(params)
            late = step in ("consistency_check", "unmasking")
            assert_plain_sum(result, set(range(N)) - (set() if late else {2}))
            missing = {event.phase: event.missing for event in party.of(PhaseClosed)}
            assert missing[step] == (2,)
            # it is not awaited any more, so nothing waits for a deadline
            assert_plain_sum(await party.session.round(params), {0, 1, 3, 4})

    for step in NEXT[params.security]:
        asyncio.run(run(step.value))


async def test_a_member_that_rejoins_without_state_takes_part_in_the_next_round():
    async with session_of(N) as party:
        party.come(SEMI, lost={2: {(0, 0, "share_keys"): "answer"}})
        closing = asyncio.create_task(party.session.round(SEMI))
        await until(lambda: 2 in party.silent)
        party.running[2].cancel()
        party.come(SEMI, [2])
        assert_plain_sum(await closing, {0, 1, 3, 4})
        assert [event.client for event in party.of(MemberDeclined)] == [2]
        (declined,) = party.links[2].answers
        await party.session.accept(2, encode(declined))  # again, after its task has closed
        assert not party.of(MessageRejected)
        assert_plain_sum(await party.session.round(SEMI), set(range(N)))


async def test_the_same_answer_again_is_accepted_and_changes_nothing():
    """Each answer is posted four times, twice at the same moment, and once much later."""
    party, later = Party(range(N)), []

    async def deliver(link: Any, task: Any, answer: bytes) -> None:
        await asyncio.gather(link.send(answer), link.send(answer))
        await link.send(answer)
        again = lambda: later.append(asyncio.ensure_future(link.send(answer)))  # noqa: E731
        asyncio.get_running_loop().call_later(0, again)

    party.deliver = deliver
    party.come(SEMI)
    assert_plain_sum(await party.session.round(SEMI), set(range(N)))
    await asyncio.gather(*later)
    closed = party.of(PhaseClosed)
    assert [event.answered for event in closed] == [N] * 4
    accepted = party.of(MessageAccepted)
    assert len(accepted) == 4 * N
    assert sum(e.bytes_up for e in closed) == sum(e.size for e in accepted)
    assert not party.of(MessageRejected)
    await party.end()


class Spoiled(Party):
    """Party in which client 1 sends garbage in a step, in the first attempt."""

    step, garbage = "masked_input", b"\x03\x93garbage"

    async def deliver(self, link: Any, task: Any, answer: bytes) -> None:
        if link._client == 1 and (task.number, task.attempt, task.step) == (0, 0, self.step):
            answer = self.garbage or encode(Answer(task.id, b"\x03garbage"))
        await link.send(answer)


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"\x01garbage"], ids=range(3))
@pytest.mark.parametrize("step", NEXT["semi-honest"])
async def test_garbage_is_rejected_and_its_sender_not_awaited(step, garbage):
    party = Spoiled(range(N))
    party.step, party.garbage = step.value, garbage
    awaited: list[bool] = []

    def look(event: object) -> None:
        if isinstance(event, MessageRejected):
            awaited.append(1 in party.session._desk._exchange.awaited)

    party.on_event = look
    party.come(SEMI)
    result = await party.session.round(SEMI)
    late = step == "unmasking"
    assert_plain_sum(result, set(range(N)) - (set() if late else {1}))
    (rejected,) = party.of(MessageRejected)
    assert (rejected.client, rejected.phase) == (1, step)
    assert rejected.check in ("version", "encoding")
    assert awaited == [False]
    assert_plain_sum(await party.session.round(SEMI), set(range(N)))
    await party.end()


async def test_a_late_answer_is_refused_and_changes_nothing():
    async with session_of(N) as party:
        party.come(SEMI, lost={2: {(0, 0, "masked_input"): "answer"}})
        result = await party.session.round(SEMI)
        assert_plain_sum(result, {0, 1, 3, 4})
        late = encode(party.links[2].answers[-1])
        for _ in range(2):
            assert (await rejects("late", party.session.accept(2, late))).sender == 2
        # a late answer is no offence
        party.come(SEMI, [2])
        assert_plain_sum(await party.session.round(SEMI), set(range(N)))


async def test_answers_of_strangers_and_of_members_outside_the_cohort_are_rejected():
    async with session_of(N) as party:
        party.come(SEMI)
        check, accept = "unknown client", party.session.accept
        await rejects(check, party.session.next_task(17))
        await rejects(check, accept(17, encode(Declined(bytes(16)))))
        closing = asyncio.create_task(party.session.round(SEMI, cohort=[0, 1, 3, 4]))
        await until(lambda: party.links[0].tasks)
        await rejects(check, accept(2, encode(Declined(party.links[0].tasks[0].id))))
        assert_plain_sum(await closing, {0, 1, 3, 4})


async def test_too_few_survivors_retry_with_a_fresh_session_and_the_same_vectors():
    async with session_of(N) as party:
        seen: list[bytes] = []
        lost = {u: {(0, 0, "masked_input"): "answer"} for u in (0, 1)}
        lost[0][0, 0, "share_keys"] = "answer"
        party.come(SEMI, lost=lost, seen=seen)
        params = replace(SEMI, threshold=4)
        result = asyncio.create_task(party.session.round(params, b"model"))
        await rejoin(party, (0, 1), SEMI, seen=seen)
        assert_plain_sum(await result, set(range(N)))
        tasks = [task for link in party.links.values() for task in link.tasks]
        assert len({task.params[-64:] for task in tasks if task.params}) == 2
        # clients 2, 3 and 4 trained once for both attempts, client 1 anew as it came back
        assert len(seen) == 3 + 1 + 2


@pytest.mark.parametrize("params", [SEMI, ACTIVE], ids=["semi-honest", "active"])
def test_a_sum_of_fewer_than_min_clients_is_never_unmasked(params):
    async def run(step: str) -> None:
        async with session_of(N, registry=registry_of(params), attempts=1) as party:
            party.come(params, lost={2: {(0, 0, step): "answer"}})
            with pytest.raises(TooFewSurvivors) as caught:
                await party.session.round(params, min_clients=N)
            assert (caught.value.phase, caught.value.survivors) == (step, N - 1)
            tasks = {task.step for link in party.links.values() for task in link.tasks}
            assert tasks == set(steps[: steps.index(step) + 1])

    steps = [phase.value for phase in NEXT[params.security]]
    for step in steps[: steps.index("masked_input") + 1]:
        asyncio.run(run(step))


async def test_a_member_may_drop_out_after_min_clients_have_sent_their_inputs():
    async with session_of(N) as party:
        party.come(SEMI, lost={2: {(0, 0, "unmasking"): "answer"}})
        assert_plain_sum(await party.session.round(SEMI, min_clients=N), set(range(N)))


async def test_a_round_does_not_begin_with_fewer_than_min_clients():
    async with session_of(N, attempts=1) as party:
        party.silent.add(4)
        party.come(SEMI, range(4))
        with pytest.raises(TooFewSurvivors) as caught:
            await party.session.round(SEMI, min_clients=N)
        assert (caught.value.phase, caught.value.needed) == ("gather", N)
        for wrong in (1, N + 1, 3.5):
            with pytest.raises(ParameterError):
                await party.session.round(SEMI, min_clients=wrong)


@pytest.mark.parametrize(
    ("demand", "picky", "survivors"),
    [
        ({"min_clients": N}, {0}, {0, 1, 2, 3}),  # t others unmask without client 0
        ({"min_clients": N}, {0, 1}, None),
        ({"min_threshold": N}, {0}, {1, 2, 3}),
    ],
)
async def test_min_clients_of_members_counts_unless_t_others_accept_fewer(
    demand, picky, survivors
):
    policy = ClientPolicy(corrupt=0.0, dropout=0.0, **demand)
    async with session_of(N, attempts=1) as party:
        party.come(SEMI, set(range(N)) - picky, {4: {(0, 0, "masked_input"): "task"}})
        for u in picky:
            party.join(u, train_of(u), policy=policy)
        with nullcontext() if survivors else pytest.raises(TooFewSurvivors):
            assert_plain_sum(await party.session.round(SEMI), survivors)


@pytest.mark.parametrize("change", ["message", "parameters"])
async def test_an_attempt_with_another_message_or_parameters_is_trained_for(
    change, monkeypatch
):
    """No honest server changes them; the vector would not be that of its parameters."""

    class Changed(Attempt):
        def __init__(self, **parts: Any) -> None:
            if parts["place"].attempt and change == "message":
                parts["message"] += b" again"
                name = read_name(parts["params"].session)
                name = name._replace(message=message_digest(parts["message"]))
                parts["params"] = replace(parts["params"], session=write_name(b"app", name))
            elif parts["place"].attempt:
                parts["params"] = replace(parts["params"], length=LENGTH - 1)
            super().__init__(**parts)

    monkeypatch.setattr("secagg.session.runs.Attempt", Changed)
    params, seen = replace(SEMI, threshold=4), list[tuple[bytes, int]]()

    def train(message: bytes, params: RoundParams) -> np.ndarray:
        seen.append((message, params.length))
        return vector_of(4, params.length)

    async with session_of(N) as party:
        party.come(params, range(4), {u: {(0, 0, "masked_input"): "answer"} for u in (0, 1)})
        party.join(4, train, **member_options(4, params))
        result = asyncio.create_task(party.session.round(params, b"model"))
        await rejoin(party, (0, 1), params)
        length = len((await result).sum)
        expected = (b"model again", LENGTH) if change == "message" else (b"model", length)
        assert seen == [(b"model", LENGTH), expected]
        assert length == LENGTH - (change == "parameters")


@pytest.mark.parametrize("check", ["shares", "sum", "weight", "clipped"])
async def test_after_a_failed_unmasking_the_dealer_is_left_out_and_an_opened_sum_is_final(
    check, monkeypatch
):
    disputes, failures = (Dispute(1, 2),), iter([True])

    class Fails(Server):
        def close_round(self) -> None:
            phase = self.phase
            if phase is Phase.UNMASKING and next(failures, False):
                raise RemoteProtocolError(
                    "", sender=None, phase=phase, check=check, disputes=disputes
                )
            super().close_round()

    monkeypatch.setattr("secagg.session.rounds.Server", Fails)
    async with session_of(N) as party:
        party.come(SEMI)
        if check == "shares":
            assert_plain_sum(await party.session.round(SEMI), {0, 2, 3, 4})
        else:
            with pytest.raises(RemoteProtocolError):
                await party.session.round(SEMI)
        failed = [(event.left_out, event.final) for event in party.of(RoundFailed)]
        assert failed == [((1,), check != "shares")]


def test_a_round_waits_for_a_cohort_that_members_accept():
    """On the suggested graph of 200, fewer than 194 could have too many colluders."""
    params = RoundParams.suggest(200, LENGTH, FixedPoint(clip=8.0))

    async def run(cohort: int | None) -> None:
        async with session_of(200, attempts=1) as party:
            party.silent |= set(range(193, 200))
            for u in range(193):
                party.join(u, train_of(u))
            with pytest.raises(TooFewSurvivors) as caught:
                await party.session.round(params, cohort=cohort)
            assert caught.value.needed == (194 if cohort is None else params.threshold)
            assert len(party.of(MemberDeclined)) == (0 if cohort is None else 193)

    asyncio.run(run(None))
    asyncio.run(run(193))  # its caller knows better, or learns better


async def test_the_last_error_has_the_members_that_declined():
    """Their processes have ended, so the next attempt knows only that nobody is present."""
    async with session_of(N, attempts=2) as party:
        party.on_event = lambda event: (
            party.silent.add(event.client) if isinstance(event, MemberDeclined) else None
        )
        policy = ClientPolicy(colluders=N)
        members = [party.join(u, train_of(u), policy=policy) for u in range(N)]
        with pytest.raises(TooFewSurvivors) as caught:
            await party.session.round(SEMI)
        error = caught.value
        assert (error.phase, error.survivors, error.needed) == ("gather", 0, 3)
        assert error.__cause__ is None
        assert "advertise_keys" in str(error)
        failed = [(event.declined, event.final) for event in party.of(RoundFailed)]
        assert failed == [(N, False), (N, True)]
        errors = await asyncio.gather(*members, return_exceptions=True)
        assert {type(error) for error in errors} == {ParameterError}
        with pytest.raises(TooFewSurvivors) as caught:
            await party.session.round(SEMI)
        assert "declined" not in str(caught.value)


async def test_a_client_whose_message_failed_a_check_is_left_out_of_the_next_attempt():
    params = replace(SEMI, threshold=4)
    party = Spoiled(range(N))
    party.come(params, lost={0: {(0, 0, "masked_input"): "answer"}})
    ending = asyncio.create_task(party.session.round(params))
    await rejoin(party, [0], params)
    assert_plain_sum(await ending, {0, 2, 3, 4})
    assert party.of(RoundFailed)[0].left_out == (1,)
    assert [event.cohort for event in party.of(RoundBegun)] == [5, 4]
    await party.end()


@pytest.mark.parametrize(
    ("again", "completed"), [({}, 1), ({(0, 1, "masked_input"): "answer"}, 0)]
)
async def test_a_round_of_two_attempts_is_completed_in_its_last(again, completed):
    """Clients 0 and 1 fail in the first attempt, and perhaps in the second."""
    params = replace(SEMI, threshold=4)
    party = Party(range(N), attempts=2)
    party.come(params, lost={u: {(0, 0, "unmasking"): "answer"} for u in (0, 1)})
    ending = asyncio.create_task(party.session.round(params))
    await rejoin(party, (0, 1), params, lost=dict.fromkeys((0, 1), again))
    with nullcontext() if completed else pytest.raises(TooFewSurvivors):
        await ending
    members = dict(party.running)
    await party.end()
    for u in (2, 3, 4):
        done = members[u].result()
        assert isinstance(done, Completed)
        assert (done, done.rounds, done.reports) == (completed, (0,) * completed, ())


def test_completed_sums_are_copied_and_pickled():
    done = Completed((0, 2), (5,))
    for same in (copy.copy(done), copy.deepcopy(done), pickle.loads(pickle.dumps(done))):  # noqa: S301
        assert (same, same.rounds, same.reports) == (3, (0, 2), (5,))


async def test_cohorts_are_all_some_or_these():
    params = replace(SEMI, n_clients=4)
    party = Party(range(8))
    party.come(params)
    chosen = [await party.session.round(params) for _ in range(4)]
    assert all(len(result.survivors) == 4 for result in chosen)
    assert len({result.survivors for result in chosen}) > 1  # 1 in 343,000 fails
    assert len((await party.session.round(params, cohort=3)).survivors) == 3
    assert_plain_sum(await party.session.round(params, cohort=[7, 1, 4]), {1, 4, 7})
    for wrong in (2, 5, [1, 2], [1, 2, 99], range(5)):
        with pytest.raises(ParameterError):
            await party.session.round(params, cohort=wrong)
    await party.end()


async def test_attempts_wait_for_all_members_but_rounds_for_no_member_that_died():
    async with session_of(N) as party:
        ending = asyncio.create_task(party.session.round(SEMI))
        await until(lambda: party.hand.expire())  # nobody came
        await until(lambda: party.of(RoundFailed))
        party.come(SEMI, range(3))  # as many as are needed
        await until(lambda: party.of(RoundBegun) or party.of(Gathering)[-1].present == 3)
        await until(lambda: party.of(RoundBegun) or party.hand.expire())
        assert_plain_sum(await ending, {0, 1, 2})
        assert_plain_sum(await party.session.round(SEMI), {0, 1, 2})  # not awaited
        party.session.expect_all()
        gatherings = len(party.of(Gathering))
        again = asyncio.create_task(party.session.round(SEMI))
        await until(lambda: again.done() or len(party.of(Gathering)) > gatherings)
        party.come(SEMI, [3, 4])
        assert_plain_sum(await again, set(range(N)))
        assert {event.wanted for event in party.of(Gathering)} == {N}


async def test_a_member_counts_as_present_for_a_while_after_its_last_call():
    async with session_of(3) as party:
        for u in range(3):
            assert await party.session.next_task(u, b"", 0) is None
        desk = party.session._desk.presence
        asked = Place("session", 0, 0), range(3), 3, 3, 1.0
        assert await desk.choose(*asked) == (0, 1, 2)
        party.hand.time = 60.0
        ending = asyncio.create_task(desk.choose(*asked))
        await until(lambda: party.hand.expire())
        with pytest.raises(TooFewSurvivors):
            await ending


async def test_attendance_tells_who_is_present_and_since_when():
    async with session_of(3) as party:
        session = party.session
        assert await session.next_task(0, b"", 0) is None
        party.hand.time = 5.0
        assert await session.next_task(1, b"", 0) is None
        waiting = asyncio.create_task(session.next_task(0))
        await asyncio.sleep(0)
        party.hand.time = 16.0
        assert list(session.attendance().values()) == [(True, 16), (False, 11), (False, None)]
        session._desk.presence.forget([0])  # too slow, but still there
        assert session.attendance()[0] == (True, 16)
        waiting.cancel()
        await asyncio.wait([waiting])
        session._desk.presence.forget([0])
        party.hand.time = 18.0
        assert session.attendance()[0] == (False, 2)
        assert await session.next_task(0, b"", 0) is None
        party.hand.time = 19.0
        assert session.attendance()[0] == (True, 1)


async def test_a_session_keeps_the_names_of_its_members():
    key = {
        name: make_identity(u).public for u, name in enumerate(["bern", "z\u202erich", "12"])
    }
    names = {client_id("bern"): "bern", client_id("z\u202erich"): "z\u202erich"}
    registry = Registry(key | {7: make_identity(7).public})
    assert registry.names == names  # "12" would be taken for the client 12
    for members in (registry, [*key, 7], registry.keys()):
        async with Session(members, registry=registry) as session:
            assert session.names == names
            assert session.called(client_id("z\u202erich")) == r"z\u202erich"
            assert session.called(7) == "7"
            assert session.called(client_id("12")) == str(client_id("12"))
    async with Session(key) as session:
        assert session.names == names


def test_lines_of_the_log_name_clients(caplog):
    hooks, place = Hooks((), {7: "bern", 8: "a b=c", 9: "\x1b\n"}), Place("s", 0, 0)
    closed = {"seconds": 1.0, "answered": 1, "bytes_down": 1, "bytes_up": 1}
    with caplog.at_level("DEBUG", "secagg.session"):
        hooks(PhaseClosed(place=place, phase="share_keys", missing=(7, 8, 9), **closed))
        hooks(PhaseClosed(place=place, phase="open", missing=(7,), **closed))  # of helpers
        hooks(PhaseClosed(place=place, phase="share_keys", missing=(6, 7), **closed))
        hooks(MemberDeclined(place=place, phase="share_keys", client=7))
    shown = [
        re.findall("(?:missing|client)=(.*?) (?:bytes|session)", m) for m in caplog.messages
    ]
    assert shown == [[r'bern,"a b=c",\x1b\n'], ["1"], ["2"], ["bern"]]
    names = [vars(record)["names"] for record in caplog.records]
    assert names == [{7: "bern", 8: "a b=c", 9: r"\x1b\n"}, {}, {7: "bern"}, {7: "bern"}]


async def test_the_ledger_rejects_a_cohort_too_close_to_an_earlier_one():
    ledger = CohortLedger(min_difference=3)
    async with session_of(N, ledger=ledger, attempts=1) as party:
        party.come(SEMI)
        await party.session.round(SEMI)
        with pytest.raises(TooFewSurvivors):
            await party.session.round(SEMI, cohort=[0, 1, 2, 3])
        assert_plain_sum(await party.session.round(SEMI), set(range(N)))


async def test_rounds_are_one_at_a_time_and_none_after_the_end():
    async with session_of(N) as party:
        party.come(SEMI)
        first = asyncio.create_task(party.session.round(SEMI))
        await asyncio.sleep(0)
        with pytest.raises(LocalProtocolError):
            await party.session.round(SEMI)
        await first
        await party.session.close()
        assert party.session.closed
        assert await party.session.next_task(0) is None
        with pytest.raises(LocalProtocolError):
            await party.session.round(SEMI)


async def test_closing_ends_a_round_under_way():
    async with session_of(N) as party:
        party.come(SEMI, lost={2: {(0, 0, "share_keys"): "answer"}})
        party._check = lambda: None  # no deadline expires
        ending = asyncio.create_task(party.session.round(SEMI))
        await until(lambda: 2 in party.silent)
        await party.session.close()
        with pytest.raises(LocalProtocolError):
            await ending


async def test_hooks_that_raise_do_not_stop_a_round():
    def broken(event: object) -> None:
        raise ZeroDivisionError

    async with session_of(N, on_event=[broken]) as party:
        party.come(SEMI)
        assert_plain_sum(await party.session.round(SEMI), set(range(N)))


def test_arguments_are_validated():
    for wrong in (0, float("nan"), True):
        with pytest.raises(ParameterError):
            Deadlines.of(wrong)
    for wrong in ({"attempts": 0}, {"name": "\ud800"}, {"members": [-1]}, {"ledger": 3}):
        with pytest.raises(ParameterError):
            Session(**({"members": range(3)} | wrong))


async def test_a_missing_registry_is_an_error_before_anything_is_sent():
    async with session_of(N) as party:
        with pytest.raises(ParameterError):
            await party.session.round(ACTIVE)
        assert not party.events


async def test_a_late_client_is_in_the_next_attempt():
    async def stale(link: Any, task: Any, answer: bytes) -> None:
        if link._client == 1 and (task.attempt, task.step) == (0, "masked_input"):
            answer = encode(Answer(bytes(16), b"\x03of an earlier step"))
        await link.send(answer)

    params = replace(SEMI, threshold=5)
    party = Party(range(N))
    party.deliver = stale
    party.come(params)
    assert_plain_sum(await party.session.round(params), set(range(N)))
    assert [event.check for event in party.of(MessageRejected)] == ["late"]
    assert [event.left_out for event in party.of(RoundFailed)] == [()]
    await party.end()


async def test_answers_that_came_before_the_deadline_count_also_if_the_thread_is_busy():
    sent: list[str] = []

    async def counted(link: Any, task: Any, answer: bytes) -> None:
        sent.append(task.step)
        await link.send(answer)

    party, free = Party(range(N), attempts=1), threading.Event()
    party.deliver = counted
    party.come(SEMI)
    ending = asyncio.create_task(party.session.round(SEMI))
    await until(lambda: any(e.phase == "masked_input" for e in party.of(PhaseOpened)))
    busy = asyncio.create_task(party.session._thread.run(free.wait))
    await until(lambda: sent.count("masked_input") == N)
    party.hand.expire()
    for _ in range(9):
        await asyncio.sleep(0)
    free.set()
    await busy
    assert_plain_sum(await ending, set(range(N)))
    await party.end()
