"""The folder of a session: a server that is killed goes on, and does nothing twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import sqlite3
import sys
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import session_server
from inputs_of import Altered
from secagg import (
    CohortLedger,
    Dispute,
    FixedPoint,
    Integers,
    Journal,
    JournalError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    RoundParams,
    RoundResult,
    TooFewSurvivors,
)
from secagg.oneshot import HelperJournal, OneShotPolicy
from secagg.session import (
    MessageAccepted,
    PhaseOpened,
    RoundBegun,
    RoundFailed,
    RoundFinished,
    Session,
    take_part,
)
from secagg.session.outcomes import read, write_error, write_result
from secagg.session.store import Store, program
from secagg.session.wire import encode
from secagg.testing import toy_policy
from session_party import Party, rejects, session_of, until, vector_of
from session_server import HELPERS, LENGTH, PARAMS, ROUNDS, N, SocketLink


async def run_killed(path: Path, mode: str, kind: str, points: list[int]) -> list[list[Any]]:
    """Run the program until it ends; each of its processes dies at a point. Return results."""
    address, up = str(path / "socket"), asyncio.Event()
    seen: dict[int, set[bytes]] = {u: set() for u in range(N)}
    options: dict[str, Any] = {"policy": toy_policy(PARAMS)}
    if mode == "one-shot":
        with ExitStack() as stack:
            made = [
                HelperJournal.create(path / f"helper {j}", "x25519") for j in range(HELPERS)
            ]
            keys = [stack.enter_context(journal).public[1] for journal in made]
        options["one_shot_policy"] = OneShotPolicy(helpers=frozenset(keys))

    def train(u: int, message: bytes) -> np.ndarray:
        seen[u].add(message)
        return vector_of(u, LENGTH) + message[0] / 64

    members = [
        asyncio.create_task(
            take_part(SocketLink(address, u, up), u, lambda m, p, u=u: train(u, m), **options)
        )
        for u in range(N)
    ]
    outputs = []
    for point in [*points, -1]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            session_server.__file__,
            *map(str, (path, address, kind, point, mode)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        lines = []
        while line := await process.stdout.readline():
            if line == b"ready\n":
                up.set()
            else:
                lines.append(json.loads(line))
        up.clear()
        died = await process.wait()
        outputs.append(lines)
        if died == 0:
            break
        assert died == -signal.SIGKILL
    assert await asyncio.gather(*members) == [ROUNDS] * N
    assert all(len(messages) == ROUNDS for messages in seen.values())
    return outputs


def assert_same_exact_sums(outputs: list[list[Any]]) -> None:
    assert len(outputs[-1]) == ROUNDS
    for lines in outputs:  # finished rounds give the same again
        assert lines == outputs[-1][: len(lines)]
    model = b"first model"
    for line in outputs[-1]:
        assert line["ids"] == list(range(N))
        exact = sum(vector_of(u, LENGTH) + model[0] / 64 for u in range(N))
        assert line["sum"] == exact.tolist()
        model = hashlib.sha256(model + exact.tobytes()).digest()


POINTS = {"event": [4, 23, 38], "commit": [2, 15, 24]}


@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("mode", ["round", "one-shot"])
def test_a_killed_server_goes_on_where_it_was(mode, kind, ram_path):
    outputs = asyncio.run(run_killed(ram_path, mode, kind, POINTS[kind]))
    assert_same_exact_sums(outputs)
    assert len(outputs) > 2
    left = {entry.name for entry in (ram_path / "session").iterdir()}
    assert left == {"session"}  # nothing of finished rounds but their results


@pytest.mark.slow
@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("mode", ["round", "one-shot"])
def test_a_server_may_be_killed_at_any_point(mode, kind, ram_path):
    for point in range(1, 70, 3):
        path = ram_path / str(point)
        path.mkdir()
        assert_same_exact_sums(asyncio.run(run_killed(path, mode, kind, [point])))


def run_rounds(folder: Path, messages: list[bytes], **options: Any) -> tuple[list[Any], Party]:
    """Run a program of some rounds in this process; return its results or its error."""
    again = options.pop("again", False)

    async def run() -> tuple[list[Any], Party]:
        async with session_of(N, folder=folder, **options) as party:
            party.come(PARAMS, () if again else None)
            return [await party.session.round(PARAMS, m) for m in messages], party

    return asyncio.run(run())


def assert_same(one: RoundResult, two: RoundResult) -> None:
    assert one.sum.dtype == two.sum.dtype
    for name, value in vars(one).items():
        assert np.array_equal(value, getattr(two, name))


def test_finished_rounds_are_returned_without_any_member(ram_path):
    first, _ = run_rounds(ram_path, [b"a", b"b"])
    second, party = run_rounds(ram_path, [b"a", b"b"], again=True)
    for one, two in zip(first, second, strict=True):
        assert_same(one, two)
    assert [event.stored for event in party.of(RoundFinished)] == [True, True]


async def test_a_program_may_go_on_after_rounds_whose_results_it_has(ram_path):
    async with session_of(N, folder=ram_path) as party:
        party.come(PARAMS)
        await party.session.round(PARAMS, b"a")
        with pytest.raises(ParameterError):
            party.session.skip_to(0)
        party.session.skip_to(7)
        await party.session.round(PARAMS, b"b")
    async with session_of(N, folder=ram_path) as party:
        party.session.skip_to(7)
        await party.session.round(PARAMS, b"b")
        (again,) = party.of(RoundFinished)
        assert (again.place.number, again.stored) == (7, True)


def test_another_program_in_the_same_folder_is_an_error(ram_path):
    run_rounds(ram_path, [b"a"])
    with pytest.raises(ParameterError):
        run_rounds(ram_path, [b"b"], again=True)
    with pytest.raises(ParameterError):
        run_rounds(ram_path, [b"a"], name="other", again=True)
    # the hash of earlier versions, which know no min_clients, so that their folders go on
    earlier = hashlib.sha256(b"params" + hashlib.sha256(b"a").digest()).digest()
    assert program(b"params", b"a") == earlier


def test_min_clients_is_a_part_of_the_program_of_a_round(ram_path):
    """Else a sum of fewer could be under way: the requests to unmask may have gone out."""

    async def run(min_clients: int | None, lost: dict[int, Any]) -> RoundResult:
        async with session_of(N, folder=ram_path, attempts=1) as party:
            party.come(PARAMS, lost=lost)
            return await party.session.round(PARAMS, min_clients=min_clients)

    with pytest.raises(TooFewSurvivors):
        asyncio.run(run(N, {0: {(0, 0, "masked_input"): "answer"}}))
    for other in (None, N - 1):
        with pytest.raises(ParameterError):
            asyncio.run(run(other, {}))
    assert len(asyncio.run(run(N, {})).survivors) == N


async def test_a_resumed_attempt_asks_for_min_clients_too(ram_path):
    async with session_of(N, folder=ram_path) as party:
        party.hand.expire = lambda: False
        party.come(PARAMS, lost={0: {(0, 0, "masked_input"): "task"}})
        ending = asyncio.create_task(party.session.round(PARAMS, min_clients=N))
        await until(lambda: len(party.of(MessageAccepted)) == 3 * N - 1)
        await party.session.close()
        with pytest.raises(LocalProtocolError):
            await ending
    async with session_of(N, folder=ram_path, attempts=1) as party:
        party.silent |= set(range(N))
        with pytest.raises(TooFewSurvivors) as caught:
            await party.session.round(PARAMS, min_clients=N)
        assert [event.phase for event in party.of(PhaseOpened)] == ["masked_input"]
        assert (caught.value.survivors, caught.value.needed) == (N - 1, N)


def test_the_journal_stays_until_the_outcome_is_on_the_disk(ram_path, monkeypatch):
    def killed(*_: object) -> None:
        raise JournalError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "keep_outcome", killed)
        with pytest.raises(JournalError):
            run_rounds(ram_path, [b"a"])
    assert (ram_path / "round-0-0.journal").exists()
    (result,), _ = run_rounds(ram_path, [b"a"], again=True)  # of the journal alone
    assert set(result.survivors) == set(range(N))


def test_files_are_deleted_if_the_process_was_killed_before(ram_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Store, "delete_files", lambda *_: None)
        run_rounds(ram_path, [b"a", b"b"])
    (ram_path / "round-1.reports-wal").touch()  # of a database that was not closed
    assert (ram_path / "round-1-0.journal").exists()
    run_rounds(ram_path, [b"a"], again=True)
    assert (ram_path / "round-1-0.journal").exists()  # the last round could be under way
    run_rounds(ram_path, [b"a", b"b"], again=True)
    assert {path.name for path in ram_path.iterdir()} == {"session"}


def test_altered_results_are_found(ram_path):
    run_rounds(ram_path, [b"a"])
    (outcome,) = in_database(ram_path, "SELECT outcome FROM rounds")
    for place in (0, 40, len(outcome) - 1):
        wrong = outcome[:place] + bytes([outcome[place] ^ 1]) + outcome[place + 1 :]
        in_database(ram_path, "UPDATE rounds SET outcome = ?", wrong)
        with pytest.raises(JournalError):
            run_rounds(ram_path, [b"a"], again=True)
    for wrong in (b"no fingerprint", None):
        in_database(ram_path, "UPDATE head SET answers = ?", wrong)
        with pytest.raises(JournalError) as caught:
            Session(range(N), folder=ram_path)
    in_database(ram_path, "UPDATE head SET answers = ?", b"")
    asyncio.run(Session(range(N), folder=ram_path).close())
    assert caught.tb is not None  # the error's frames are alive, and lock nothing


def in_database(folder: Path, statement: str, *values: object) -> Any:
    with closing(sqlite3.connect(folder / "session")) as database, database:
        return database.execute(statement, values).fetchone()


LOST = {u: {(0, 0, "masked_input"): "answer"} for u in range(3)}


def test_a_failed_round_is_tried_again_if_it_was_the_last(ram_path):
    async def run(lost: dict[int, Any]) -> Any:
        async with session_of(N, folder=ram_path, attempts=1) as party:
            party.come(PARAMS, lost=lost)
            result = await party.session.round(PARAMS)
            return result, party.of(RoundBegun)[-1].place.attempt

    with pytest.raises(TooFewSurvivors):
        asyncio.run(run(LOST))
    result, attempt = asyncio.run(run({}))
    assert len(result.survivors) == N
    assert attempt == 1  # no member is in an attempt twice


def test_a_cancelled_attempt_is_followed_by_the_next(ram_path):
    """Its journal is gone, so a server would begin it anew under the same name."""
    sessions: list[bytes] = []

    async def run(cancel: bool) -> list[int]:
        async with session_of(N, folder=ram_path) as party:
            party.come(PARAMS)
            under_way = asyncio.create_task(party.session.round(PARAMS, b"a"))
            opened = lambda: [e.phase for e in party.of(PhaseOpened)]  # noqa: E731
            await until(lambda: not cancel or "unmasking" in opened())
            if cancel:
                under_way.cancel()
            await asyncio.wait([under_way])
            await party.session.round(PARAMS, b"b")
            firsts = [task for task in party.links[0].tasks if task.step == "advertise_keys"]
            sessions.extend(RoundParams.from_bytes(task.params).session for task in firsts)
            return [event.place.attempt for event in party.of(RoundBegun)]

    assert asyncio.run(run(cancel=True)) == [0, 0]
    assert asyncio.run(run(cancel=False)) == [1]
    assert len(set(sessions)) == 3


def test_a_failure_that_the_program_met_before_is_met_again(ram_path):
    async def run(lost: dict[int, Any]) -> Any:
        async with session_of(N, folder=ram_path, attempts=1) as party:
            party.come(PARAMS, lost=lost)
            with pytest.raises(TooFewSurvivors) as caught:
                await party.session.round(PARAMS)
            party.come(PARAMS)
            error = caught.value
            result = await party.session.round(PARAMS)
            return str(error), error.phase, error.survivors, error.needed, result.survivors

    assert asyncio.run(run(LOST)) == asyncio.run(run({}))


@pytest.mark.parametrize("killed", [False, True], ids=["stored", "killed before"])
def test_a_round_whose_sum_was_opened_is_never_tried_again(killed, ram_path, monkeypatch):
    """Two sums of the same vectors over other survivors would give one vector."""

    class Spoilt(Altered):
        def alter(self, masked: Any, plain: Any) -> None:
            masked[:1] += np.uint32(1 << 30)  # an array wraps around without a warning

    def fail(*_: object) -> None:
        raise JournalError("killed here")

    async def run(members: int) -> tuple[str, str]:
        async with session_of(N, folder=ram_path) as party:
            if members:
                party.come(PARAMS)
            with pytest.raises((RemoteProtocolError, JournalError)) as caught:
                await party.session.round(PARAMS)
            assert len(party.of(RoundBegun)) <= 1
            assert not members or len(party.of(RoundBegun)) == 1
            return getattr(caught.value, "check", ""), getattr(caught.value, "phase", "")

    with monkeypatch.context() as patch:
        patch.setattr("secagg.client.client.Input", Spoilt)
        if killed:
            patch.setattr("secagg.session.store.Store.keep_outcome", fail)
        first = asyncio.run(run(N))
    assert first == (("", "") if killed else ("sum", "unmasking"))
    expected = ("resume" if killed else "sum", "unmasking")
    assert [asyncio.run(run(0)) for _ in "ab"] == [expected, expected]


def test_a_remote_error_is_stored_with_all_that_it_names():
    error = RemoteProtocolError(
        "it is so: or not",
        sender=3,
        phase="unmasking",
        check="shares",
        disputes=(Dispute(1, 2), Dispute(3, 4)),
        helpers=(2,),
    )
    found = read(write_error(error), PARAMS)
    assert isinstance(found, RemoteProtocolError)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


def test_the_ledger_survives_its_process(ram_path):
    async def run(cohorts: list[Any]) -> None:
        ledger = CohortLedger(min_difference=3)
        async with session_of(N, folder=ram_path, ledger=ledger, attempts=1) as party:
            party.come(PARAMS)
            for cohort in cohorts:
                await party.session.round(PARAMS, cohort=cohort)

    asyncio.run(run([None]))
    with pytest.raises(TooFewSurvivors):
        asyncio.run(run([None, range(4)]))


@pytest.mark.parametrize(
    "params",
    [
        replace(PARAMS, max_weight=9, count_clipped=True),
        replace(PARAMS, modulus=(1 << 40) + 15),
        replace(PARAMS, encoding=Integers(1 << 40), modulus_bits=64),
        replace(PARAMS, modulus_bits=23),
    ],
    ids=["weighted", "modulus", "integers", "23 bits"],
)
def test_results_are_the_same_when_read_again(params):
    signed = isinstance(params.encoding, FixedPoint)
    encoded = np.array([-524288 * N, 3, 0, 7] if signed else [1 << 42, 3, 0, 7])
    result = RoundResult(
        sum=encoded / 65536 if signed else encoded,
        integers=encoded,
        survivors=tuple(range(N)),
        weight=None if params.max_weight is None else 44,
        clipped=3 if params.count_clipped else None,
        disputes=(Dispute(1, 2),),
    )
    found = read(write_result(result, params), params)
    assert_same(found, result)


def test_a_failing_disk_ends_the_round_and_acknowledges_nothing(ram_path, monkeypatch):
    extend = Journal.extend

    def full(self: Journal, number: int, entries: Any) -> None:
        if number > 7:
            raise JournalError("the disk is full")
        extend(self, number, entries)

    async def run() -> int:
        async with session_of(N, folder=ram_path) as party:
            party.come(PARAMS)
            with pytest.raises(JournalError):
                await party.session.round(PARAMS)
            assert not party.of(RoundFailed)  # it is no attempt of the members that failed
            return len(party.of(MessageAccepted))

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "extend", full)
        accepted = asyncio.run(run())
    with Journal.open(ram_path / "round-0-0.journal", stored_params(ram_path)) as journal:
        assert sum(client is not None for client, _ in journal.entries()) >= accepted


def stored_params(folder: Path) -> RoundParams:
    (data,) = in_database(folder, "SELECT params FROM rounds")
    return RoundParams.from_bytes(data)


def test_members_of_a_round_whose_disk_failed_go_on_after_a_restart(ram_path, monkeypatch):
    test_a_failing_disk_ends_the_round_and_acknowledges_nothing(ram_path, monkeypatch)
    results, party = run_rounds(ram_path, [b""], deadlines=5)
    # these members are new, so all decline what is under way, and a second attempt begins
    assert set(results[0].survivors) == set(range(N))
    assert [event.resumed for event in party.of(RoundBegun)] == [True, False]


def test_an_attempt_that_failed_before_its_process_was_killed_is_followed_by_the_next(
    ram_path, monkeypatch
):
    keep = Store.keep_attempt

    def killed(self: Store, number: int, begun: Any, answers: bytes) -> None:
        if begun.attempt:
            raise JournalError("killed here")
        keep(self, number, begun, answers)

    async def run(lost: dict[int, Any]) -> Any:
        async with session_of(N, folder=ram_path, deadlines=5) as party:
            party.come(PARAMS, lost=lost)
            ending = asyncio.create_task(party.session.round(PARAMS))
            await until(lambda: not (lost and not party.of(RoundFailed)))
            for u in lost:
                party.running[u].cancel()
                party.come(PARAMS, [u])
            result = await ending
            return set(result.survivors), [e.place.attempt for e in party.of(RoundBegun)]

    with monkeypatch.context() as patch:
        patch.setattr(Store, "keep_attempt", killed)
        with pytest.raises(JournalError):
            asyncio.run(run(LOST))
    assert asyncio.run(run({})) == (set(range(N)), [0, 1])


async def test_the_last_answers_of_a_finished_round_may_come_again_after_a_restart(ram_path):
    async with session_of(N, folder=ram_path) as party:
        party.come(PARAMS)
        await party.session.round(PARAMS)
        last = {u: encode(party.links[u].answers[-1]) for u in range(N)}
        limit = party.session.answer_limit
    async with Session(range(N), folder=ram_path) as session:
        assert session.answer_limit == limit
        for u in range(N):
            await session.accept(u, last[u])
        await rejects("late", session.accept(0, last[1]))


async def test_answers_from_before_a_restart_count_and_may_come_again(ram_path):
    """The acknowledgement of a phase's last answer may be lost with the process."""
    async with session_of(N, folder=ram_path) as party:
        party.hand.expire = lambda: False
        party.come(PARAMS, lost={u: {(0, 0, "masked_input"): "task"} for u in (3, 4)})
        ending = asyncio.create_task(party.session.round(PARAMS))
        await until(lambda: len(party.of(MessageAccepted)) >= 2 * N + 3)
        sent = {u: encode(party.links[u].answers[-1]) for u in range(N)}
        await party.session.close()
        with pytest.raises(LocalProtocolError):
            await ending
    async with session_of(N, folder=ram_path) as party:
        party.hand.expire = lambda: False
        ending = asyncio.create_task(party.session.round(PARAMS))
        await until(lambda: party.of(PhaseOpened))
        (opened,) = party.of(PhaseOpened)
        assert (opened.phase, opened.awaited) == ("masked_input", 2)
        for u in range(N):  # in this phase, and of clients 3 and 4 in the phase before
            await party.session.accept(u, sent[u])
        ending.cancel()
