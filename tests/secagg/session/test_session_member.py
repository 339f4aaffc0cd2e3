"""Members of a session: unsafe rounds are refused before data leaves, nothing is sent twice."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from frames import leaks
from harness import pieces, read
from secagg import (
    Bounds,
    ClientPolicy,
    FixedPoint,
    Integers,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    RoundParams,
)
from secagg.protocol.messages import Roster
from secagg.protocol.params_bytes import pack, unpack
from secagg.session import (
    MemberDeclined,
    MessageAccepted,
    Session,
    take_part,
)
from secagg.session.member import _Member
from secagg.session.wire import (
    Answer,
    Declined,
    Task,
)
from secagg.testing import toy_policy
from session_party import (
    Script,
    first_task,
    member_options,
    named,
    registry_of,
    rejects,
    session_of,
    vector_of,
)

N, LENGTH = 5, 4
PARAMS = RoundParams(n_clients=N, threshold=3, length=LENGTH, encoding=FixedPoint(clip=8.0))
MARK = 1.4142135623730951


def run_script(tasks: list[Task], **options: Any) -> list[Answer | Declined]:
    script = Script(tasks)
    options.setdefault("policy", toy_policy(PARAMS))
    asyncio.run(take_part(script, 0, lambda m, p: np.zeros(p.length), **options))
    return script.answers


@pytest.mark.parametrize(
    "task",
    [
        first_task(named(PARAMS, 1), 0),
        first_task(named(PARAMS, 0, 1), 0),
        first_task(PARAMS),
        Task(bytes(16), 0, 0, "advertise_keys", named(PARAMS).to_bytes(), b"", b""),
        Task(bytes(16), 0, 0, "unmasking", b"", b"", b"now!"),
    ],
    ids=["other round", "other attempt", "no name", "other id", "no state"],
)
def test_a_task_that_does_not_belong_is_declined(task):
    (answer,) = run_script([task])
    assert isinstance(answer, Declined)


ATTEMPTS = {
    "repeated": ([(0, 0), (0, 0)], "AD"),
    "same attempt": ([(0, 0), (0, 0, "b")], "AD"),
    "next attempt": ([(0, 0), (0, 1, "b")], "AA"),
    "next round, same random bytes": ([(0, 0), (1, 0)], "AA"),
    "session between": ([(0, 0), (0, 0, "a", b"earlier!"), (0, 0)], "AAD"),
    "earlier round": ([(3, 0), (2, 0)], "AD"),
    "earlier attempts, session between": (
        [
            (3, 0),
            (0, 0, "a", b"another!"),
            (3, 0, "b"),
            (2, 1),
            (0, 0, "b", b"another!"),
            (3, 1),
        ],
        "AADDDA",
    ),
}
"""Number, attempt, random bytes and run of tasks, and which are answered or declined."""


@pytest.mark.parametrize("case", ATTEMPTS)
def test_a_member_is_in_each_attempt_once(case):
    def task(number: int, attempt: int, fresh: str = "a", run: bytes = b"the run!") -> Task:
        params = named(PARAMS, number, attempt, fresh=fresh.encode() * 8, run=run)
        return first_task(params, number, attempt)

    asked, kinds = ATTEMPTS[case]
    answers = run_script([task(*place) for place in asked])
    assert "".join(type(answer).__name__[0] for answer in answers) == kinds


TWO = RoundParams(
    n_clients=2, threshold=2, length=1, encoding=PARAMS.encoding, allow_two_clients=True
)
UNSAFE = [TWO, replace(PARAMS, n_clients=40, threshold=21), replace(PARAMS, length=5)]
NO_PARAMS = pack(unpack(named(PARAMS).to_bytes())._replace(n_clients=2, threshold=2))
"""Parameters that no application can make."""


@pytest.mark.parametrize("data", [*(named(params).to_bytes() for params in UNSAFE), NO_PARAMS])
def test_unsafe_parameters_are_refused_before_data_leaves(data):
    policy = ClientPolicy(colluders=30, max_length=4)
    script = Script([Task(bytes(16), 0, 0, "advertise_keys", data, b"", b"")])
    with pytest.raises(RemoteProtocolError if data == NO_PARAMS else ParameterError):
        asyncio.run(take_part(script, 0, refuse_to_train, policy=policy))
    assert [type(answer) for answer in script.answers] == [Declined]


def refuse_to_train(message: bytes, params: RoundParams) -> Any:
    raise AssertionError("trained for an unsafe round")


def failing(message: bytes, params: RoundParams) -> Any:
    raise ZeroDivisionError("patient 4711")


INPUTS: dict[str, Any] = {
    "error": failing,
    "nothing": lambda m, p: None,
    "long": lambda m, p: (np.full(LENGTH + 1, MARK), 3),
    "nan": lambda m, p: (np.array([MARK, np.nan] * 2), 3),
    "no weight": lambda m, p: np.full(LENGTH, MARK),
    "negative weight": lambda m, p: (np.full(LENGTH, MARK), -1),
    "three values": lambda m, p: (np.full(LENGTH, MARK), 2, 2),
}
"""Trainings of which none gives a valid input for a weighted sum."""


@pytest.mark.parametrize("given", INPUTS)
def test_check52_zeros_of_weight_0_take_the_place_of_an_invalid_input(given, caplog):
    params = replace(PARAMS, max_weight=9, modulus_bits=40)

    async def run() -> None:
        async with session_of(N) as party:
            options = {"policy": toy_policy(params)}
            for u in range(1, N):
                party.join(u, lambda m, p, u=u: (vector_of(u, LENGTH), u), **options)
            party.join(0, INPUTS[given], **options)
            result = await party.session.round(params)
            assert result.survivors == (0, 1, 2, 3, 4)
            assert result.weight == 1 + 2 + 3 + 4
            expected = sum(vector_of(u, LENGTH) * u for u in range(1, N))
            assert (result.sum == expected).all()
            assert not party.of(MemberDeclined)
            sizes = {u: [len(one.data) for one in party.links[u].answers] for u in party.links}
            assert all(found == sizes[1] for found in sizes.values())
            await party.session.close()
            with pytest.raises(ZeroDivisionError if given == "error" else ParameterError) as e:
                await party.running.pop(0)
            assert not leaks(e.value, [np.float64(MARK).tobytes()], __name__)
        assert "patient 4711" not in caplog.text

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())


async def test_check52_a_weight_above_the_largest_is_lowered():
    params = replace(PARAMS, max_weight=9, modulus_bits=40)
    async with session_of(N) as party:
        for u in range(N):
            weight = 10**30 if u == 2 else 1
            party.join(
                u, lambda m, p, w=weight: (np.ones(LENGTH), w), policy=toy_policy(params)
            )
        result = await party.session.round(params)
        assert (result.weight, result.sum.tolist()) == (9 + 4, [13.0] * LENGTH)
        assert await party.end() == dict.fromkeys(range(N), 1)


@pytest.mark.parametrize("change", [{"max_weight": 8}, {"encoding": Integers(8)}], ids=str)
@pytest.mark.parametrize("stated", [False, True], ids=["first round", "policy"])
def test_check52_a_server_cannot_vary_the_bounds_of_an_input(change, stated):
    first = replace(PARAMS, max_weight=9, modulus_bits=40)
    policy = toy_policy(PARAMS)
    if stated:
        policy = replace(policy, bounds=Bounds.of(first))
    tasks = [] if stated else [first_task(named(first))]
    script = Script([*tasks, first_task(named(replace(first, **change), 1), 1)])
    with pytest.raises(ParameterError):
        asyncio.run(take_part(script, 0, refuse_to_train, policy=policy))
    assert [type(answer) for answer in script.answers] == [Answer] * len(tasks) + [Declined]


@pytest.mark.parametrize("kind", [RemoteProtocolError, LocalProtocolError])
async def test_an_application_can_decline_for_public_reasons(kind):
    def train(message: bytes, params: RoundParams) -> Any:
        if kind is LocalProtocolError:
            raise LocalProtocolError("no data for this sum")
        raise RemoteProtocolError("unknown", sender=None, phase="train", check="message")

    async with session_of(N) as party:
        party.come(PARAMS, range(1, N))
        party.join(0, train, policy=toy_policy(PARAMS))
        assert (await party.session.round(PARAMS)).survivors == (1, 2, 3, 4)
        (declined,) = party.of(MemberDeclined)
        assert (declined.client, declined.phase) == (0, "masked_input")
        if kind is LocalProtocolError:
            with pytest.raises(LocalProtocolError):
                await party.running.pop(0)


async def test_coroutine_functions_train_too():
    async def train(message: bytes, params: RoundParams) -> np.ndarray:
        await asyncio.sleep(0)
        return vector_of(0, LENGTH)

    async with session_of(N) as party:
        for u in range(N):
            party.join(u, train, policy=toy_policy(PARAMS))
        result = await party.session.round(PARAMS)
        assert (result.mean == vector_of(0, LENGTH)).all()


@pytest.mark.parametrize("step", ["share_keys", "masked_input", "unmasking"])
async def test_a_server_that_breaks_the_protocol_loses_the_attempt_not_the_member(step):
    async with session_of(N) as party:
        party.come(PARAMS)

        def spoiled(task: Task) -> Task:
            if (task.number, task.step) != (0, step):
                return task
            wrong = task.data[:-1] + bytes([task.data[-1] ^ 1])
            return msgspec.structs.replace(task, data=wrong)

        party.links[1].alter = spoiled
        result = await party.session.round(PARAMS)
        assert len(result.survivors) == (N if step == "unmasking" else N - 1)
        assert [event.client for event in party.of(MemberDeclined)] == [1]
        assert len((await party.session.round(PARAMS)).survivors) == N


def test_the_log_has_sizes_and_no_contents(caplog):
    async def run() -> None:
        async with session_of(N) as party:
            for u in range(N):
                party.join(u, lambda m, p: np.full(LENGTH, MARK), policy=toy_policy(PARAMS))
            await party.session.round(PARAMS, b"a model, 4711")
            accepted = party.of(MessageAccepted)
            assert len({event.size for event in accepted if event.phase == "masked_input"}) == 1
            for event in party.events:
                assert "4711" not in repr(event)

    with caplog.at_level(logging.DEBUG, logger="secagg.session"):
        asyncio.run(run())
    records = [r for r in caplog.records if r.name == "secagg.session"]
    assert {"PhaseOpened", "PhaseClosed", "RoundFinished"} <= {r.event for r in records}
    assert all(r.session == "session" and r.number == 0 for r in records)
    assert "1.41421" not in caplog.text
    assert "4711" not in caplog.text


async def test_an_answer_that_is_too_large_is_refused_at_bounded_cost():
    session = Session(range(N))
    await rejects("size", session.accept(0, bytes(1 << 20)))
    await session.close()


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_check51_members_of_an_attempt_train_on_one_message(security):
    """A message for one victim alone would make the sum the victim's vector."""
    params = replace(PARAMS, threshold=4, security=security, session=b"s")
    trained = list[bytes]()

    def train(message: bytes, params: RoundParams) -> Any:
        trained.append(message)
        return np.zeros(LENGTH)

    async def run() -> None:
        async with session_of(N, registry=registry_of(params), attempts=1) as party:
            for u in range(N):
                party.join(u, train, **member_options(u, params))
            party.links[1].alter = lambda task: msgspec.structs.replace(
                task, message=task.message and b"other"
            )
            result = await party.session.round(params, b"model")
            assert result.survivors == (0, 2, 3, 4)
            assert [event.client for event in party.of(MemberDeclined)] == [1]

    asyncio.run(run())
    assert trained == [b"model"] * 4


def test_a_rejected_member_gets_a_hint_in_its_log(caplog):
    """The member runs twice, or is of another version."""
    member = _Member(0, print, None, None, None, None, None, None, None)
    for check in ("repeated", "late", "version", "size"):
        member.leave(RemoteProtocolError("", sender=0, phase="p", check=check))
    assert [bool(record.hint) for record in caplog.records] == [True, True, True, False]


@pytest.mark.parametrize("stored", [False, True])
async def test_check01_members_keep_sealing_keys_and_neighbours_over_rounds(
    stored, tmp_path
) -> None:
    """Later rounds agree on little that is new; masking keys are fresh all the same."""
    params = RoundParams(
        n_clients=8, threshold=3, length=2, encoding=FixedPoint(clip=8.0), neighbours=4
    )
    async with session_of(8, folder=tmp_path / "session" if stored else None) as party:
        for u in range(8):
            party.join(u, lambda *_: np.ones(2), **member_options(u, params))
        for _ in range(3):
            result = await party.session.round(params)
            assert result.sum.tolist() == [8.0, 8.0]
        for link in party.links.values():
            tasks = [task for task in link.tasks if task.step == "share_keys"]
            rosters = [read(task.data, Roster) for task in tasks]
            assert len(rosters) == 3
            assert len({roster.ids for roster in rosters}) == 1
            assert len({roster.seal_keys for roster in rosters}) == 1
            fresh = {key for r in rosters for key in pieces(r.mask_keys, 32)}
            assert len(fresh) == 3 * 5
