"""Verdicts and complaints in a session: whom the next attempt leaves out, what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg import (
    ClientPolicy,
    Dispute,
    FixedPoint,
    JournalError,
    RemoteProtocolError,
    RoundParams,
    RoundResult,
    TooFewSurvivors,
    Verdict,
    blame,
)
from secagg.client import complaints
from secagg.session import RoundBegun, RoundFailed, RoundFinished
from secagg.session.exclusion import at_fault, in_doubt
from secagg.session.outcomes import read, write_error
from secagg.session.store import Begun, Store
from session_party import Party, registry_of, session_of, until, vector_of

N, LENGTH = 10, 4
PARAMS = RoundParams(
    n_clients=N,
    threshold=7,
    length=LENGTH,
    encoding=FixedPoint(clip=8.0),
    session=b"app",
    security="active",
)
SEMI = replace(PARAMS, security="semi-honest")
WIDE = replace(PARAMS, n_clients=13, threshold=9)


def lying(patch: pytest.MonkeyPatch, lies: Mapping[int, list[int]]) -> None:
    """Let clients complain of dealers, in every attempt."""
    judge = complaints.judge

    def lied(opened: Any, hashes: bytes, peers: Any, holder: Any, params: RoundParams) -> Any:
        word = judge(opened, hashes, peers, holder, params)
        word[np.isin(peers.ids, lies.get(holder.me, []))] = 1
        return word

    patch.setattr(complaints, "judge", lied)


async def attempts(party: Party, params: RoundParams, gone: list[int]) -> RoundResult:
    """Run a round whose first attempt lacks the inputs of some members, which come again."""
    lost = {u: {(0, 0, "masked_input"): "answer"} for u in gone}
    party.come(params, lost=lost)
    result = asyncio.create_task(party.session.round(params))
    await until(lambda: party.of(RoundFailed) or result.done())
    for u in gone:
        party.running[u].cancel()
        party.come(params, [u])
    found = await result
    assert (found.sum == sum(vector_of(u, LENGTH) for u in found.survivors)).all()
    return found


async def test_check60_both_ends_of_disjoint_complaints_are_left_out(monkeypatch):
    """Three complain of client 12, of whom it is one that is lost: the pair has a liar."""
    lying(monkeypatch, {u: [12] for u in (0, 1, 2)})
    async with session_of(13, registry=registry_of(WIDE)) as party:
        result = await attempts(party, WIDE, [7, 8])
        assert set(result.survivors) == set(range(1, 12))
        (failed,) = party.of(RoundFailed)
        assert (failed.check, failed.left_out, failed.convicted) == ("dealer", (0, 12), ())
        assert [event.cohort for event in party.of(RoundBegun)] == [13, 11]
        assert party.session.convicted == set()
        # in the next round all take part again
        lying(monkeypatch, {})
        assert set((await party.session.round(WIDE)).survivors) == set(range(13))


@pytest.mark.parametrize("liars", [1, 2])
async def test_pairs_stay_if_the_next_attempt_would_lack_members(monkeypatch, liars):
    """Without the pairs, and as many absent, there would be fewer than seven of ten."""
    lying(monkeypatch, {9 - u: [0, 1, 2] for u in range(liars)})
    async with session_of(N, registry=registry_of(PARAMS)) as party:
        result = await attempts(party, PARAMS, [5, 6, 7][: 4 - liars])
        assert set(result.survivors) == set(range(N))
        (failed,) = party.of(RoundFailed)
        assert (failed.check, failed.left_out) == ("dealer", ())
        expected = [Dispute(v, 9 - u) for v in range(3) for u in range(liars)]
        assert set(result.disputes) == set(expected)


async def test_error_of_dealers_that_fell_silent_has_the_complaints(monkeypatch):
    """Two dealers of bad boxes for clients 0 and 1 answer no more: six good shares."""
    lying(monkeypatch, {0: [8, 9], 1: [8, 9]})
    async with session_of(N, registry=registry_of(PARAMS), attempts=1) as party:
        party.come(PARAMS, lost={u: {(0, 0, "unmasking"): "answer"} for u in (8, 9)})
        with pytest.raises(TooFewSurvivors) as caught:
            await party.session.round(PARAMS)
    assert set(caught.value.disputes) == {Dispute(v, w) for v in (8, 9) for w in (0, 1)}
    assert caught.value.verdicts == ()


async def test_check60_pairs_are_left_out_after_dealers_fell_silent(monkeypatch):
    """Client 12 has eight good shares of nine, and the pair has a liar."""
    lying(monkeypatch, {0: [12], 1: [12]})
    gone = [10, 11, 12]
    async with session_of(13, registry=registry_of(WIDE)) as party:
        party.come(WIDE, lost={u: {(0, 0, "unmasking"): "answer"} for u in gone})
        result = asyncio.create_task(party.session.round(WIDE))
        await until(lambda: party.of(RoundFailed) or result.done())
        for u in gone:
            party.running[u].cancel()
            party.come(WIDE, [u])
        assert set((await result).survivors) == set(range(1, 12))
        (failed,) = party.of(RoundFailed)
        assert (failed.phase, failed.left_out) == ("unmasking", (0, 12))


async def test_a_convicted_client_is_left_out_of_all_later_sums(monkeypatch):
    """Clients 0 to 2 complain of client 9, which is a verdict: c is 2 of ten clients.

    So nobody else is lost for these complaints.
    """
    lying(monkeypatch, {u: [9] for u in (0, 1, 2)})
    async with session_of(N, registry=registry_of(PARAMS)) as party:
        result = await attempts(party, PARAMS, [7])
        assert set(result.survivors) == set(range(9))
        (failed,) = party.of(RoundFailed)
        assert (failed.left_out, failed.convicted) == ((9,), (9,))
        # the verdict of the first attempt is in the result
        (verdict,) = result.verdicts
        assert blame.check(verdict.data, registry_of(PARAMS)) == verdict.client == 9
        (finished,) = party.of(RoundFinished)
        assert finished.convicted == (9,)
        second = await party.session.round(PARAMS)
        assert (set(second.survivors), second.verdicts) == (set(range(9)), ())
        assert party.session.convicted == {9}


async def test_a_verdict_of_a_sum_leaves_its_client_out_of_the_next(monkeypatch):
    """All are there, so the first attempt gives the sum."""
    lying(monkeypatch, {u: [9] for u in (0, 1, 2)})
    async with session_of(N, registry=registry_of(PARAMS)) as party:
        party.come(PARAMS)
        first = await party.session.round(PARAMS)
        assert set(first.survivors) == set(range(N))
        assert set((await party.session.round(PARAMS)).survivors) == set(range(9))


async def test_a_rejected_complainer_is_left_out_and_its_verdict_is_in_the_last_error(
    monkeypatch,
):
    """2t − n − 1 is 3. Without its input and those of three others, too few are left."""
    lying(monkeypatch, {9: [0, 1, 2, 3]})
    async with session_of(N, registry=registry_of(PARAMS), attempts=2) as party:
        lost = {u: {(0, 0, "masked_input"): "answer"} for u in (4, 5, 6)}
        party.come(PARAMS, lost=lost)
        with pytest.raises(TooFewSurvivors) as caught:
            await party.session.round(PARAMS)
        first, second = party.of(RoundFailed)
        assert (first.left_out, first.convicted) == ((9,), (9,))
        assert (second.phase, second.convicted) == ("gather", ())
        assert [one.client for one in caught.value.verdicts] == [9]
        assert party.session.convicted == {9}


async def test_an_error_of_the_session_itself_has_the_verdicts_of_the_server(monkeypatch):
    """All ten must be in the sum, so the session ends the attempt before the server does."""
    lying(monkeypatch, {9: [0, 1, 2, 3]})
    async with session_of(N, registry=registry_of(PARAMS), attempts=1) as party:
        party.come(PARAMS)
        with pytest.raises(TooFewSurvivors) as caught:
            await party.session.round(PARAMS, min_clients=N)
        (failed,) = party.of(RoundFailed)
        assert (failed.phase, failed.survivors, failed.convicted) == ("masked_input", 9, (9,))
        assert [one.client for one in caught.value.verdicts] == [9]


@pytest.mark.parametrize("stored", [False, True])
async def test_the_policy_of_the_session_counts_the_colluders(ram_path, monkeypatch, stored):
    """Three may collude, so three complaints are disputes."""
    lying(monkeypatch, {u: [9] for u in (0, 1, 2)})
    options = {"policy": ClientPolicy(colluders=3)} | ({"folder": ram_path} if stored else {})
    async with session_of(N, registry=registry_of(PARAMS), **options) as party:
        party.come(PARAMS)
        result = await party.session.round(PARAMS)
        assert (set(result.survivors), result.verdicts) == (set(range(N)), ())
        assert result.disputes == tuple(Dispute(9, u) for u in range(3))


@pytest.mark.parametrize("fails", [False, True])
def test_verdicts_are_in_the_folder_with_the_outcome(ram_path: Path, monkeypatch, fails):
    async def run(come: bool) -> tuple[Verdict, ...]:
        options = {"folder": ram_path, "attempts": 1}
        async with session_of(N, registry=registry_of(PARAMS), **options) as party:
            if come:
                gone = {"masked_input": 7} if fails else {}
                lost = {u: {(0, 0, phase): "answer"} for phase, u in gone.items()}
                party.come(PARAMS, lost=lost)
            try:
                return (await party.session.round(PARAMS)).verdicts
            except RemoteProtocolError as error:
                assert error.check == "dealer"
                return error.verdicts
            finally:
                if not come and not fails:
                    (finished,) = party.of(RoundFinished)
                    assert (finished.stored, finished.convicted) == (True, (9,))

    lying(monkeypatch, {u: [9] for u in (0, 1, 2)})
    found = asyncio.run(run(True))
    assert [one.client for one in found] == [9]
    if not fails:  # a failed round is tried again, unless the program went on
        assert asyncio.run(run(False)) == found

    async def go_on() -> set[int]:
        """Run the next round in a new process, which does not read the first."""
        async with session_of(N, registry=registry_of(PARAMS), folder=ram_path) as party:
            party.session.skip_to(1)
            assert party.session.convicted == {9}
            party.come(PARAMS)
            return set((await party.session.round(PARAMS)).survivors)

    assert asyncio.run(go_on()) == set(range(9))


@pytest.mark.parametrize("stored", [False, True])
def test_verdicts_of_an_attempt_survive_a_kill_in_the_next(
    ram_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    """The kill comes before the next attempt is in the folder, and after."""
    keep = Store.keep_attempt

    def killed(self: Store, number: int, begun: Begun, answers: bytes) -> None:
        if stored or not begun.attempt:
            keep(self, number, begun, answers)
        if begun.attempt:
            raise JournalError("killed")

    async def run(lost: list[int]) -> tuple[RoundResult, frozenset[int]]:
        options = {"folder": ram_path, "deadlines": 5, "registry": registry_of(PARAMS)}
        async with session_of(N, **options) as party:
            party.come(PARAMS, lost={u: {(0, 0, "masked_input"): "answer"} for u in lost})
            ending = asyncio.create_task(party.session.round(PARAMS))
            await until(lambda: not lost or bool(party.of(RoundFailed)))
            for u in lost:
                party.running[u].cancel()
                party.come(PARAMS, [u])
            return await ending, party.session.convicted

    lying(monkeypatch, {u: [9] for u in (0, 1, 2)})
    with monkeypatch.context() as patch:
        patch.setattr(Store, "keep_attempt", killed)
        with pytest.raises(JournalError):
            asyncio.run(run([7]))
    result, convicted = asyncio.run(run([]))
    assert set(result.survivors) == set(range(9))
    assert [one.client for one in result.verdicts] == [9] == [*convicted]


# ---- outcomes as bytes

DISPUTES = (Dispute(1, 2), Dispute(2**64 - 1, 0))
VERDICTS = (Verdict(3, "shares", b"\0proof"), Verdict(2**64 - 1, "answer", b""))


@pytest.mark.parametrize(
    "error",
    [
        RemoteProtocolError(
            "so it is", sender=None, phase="masked_input", check="dealer", disputes=DISPUTES
        ),
        TooFewSurvivors(
            "so it is", phase="unmasking", survivors=2, needed=3, disputes=DISPUTES
        ),
    ],
)
def test_an_error_is_stored_with_its_disputes(error):
    assert vars(read(write_error(error), PARAMS)) == vars(error)


def test_a_verdict_is_stored_once_and_altered_rows_are_errors(ram_path):
    """A resumed server lacks some verdicts that the killed server had."""
    with closing(Store(ram_path, "app")) as store:
        assert store.keep_verdicts(0, 0, VERDICTS[1:]) == VERDICTS[1:]
        assert store.keep_verdicts(0, 0, VERDICTS) == VERDICTS
        assert store.keep_verdicts(0, 1, []) == ()
        assert store.keep_verdicts(1, 0, VERDICTS[:1]) == VERDICTS[:1]
        assert store.verdicts(0, 0, 2) == VERDICTS
        assert store.convicted() == {one.client for one in VERDICTS}
        store._write(("UPDATE verdicts SET content = content || x'00' WHERE number = 1", ()))
        with pytest.raises(JournalError):
            store.verdicts(1, 0, 1)
    with closing(Store(ram_path, "app")) as store:
        store._write(("UPDATE verdicts SET client = x'00' WHERE number = 1", ()))
        with pytest.raises(JournalError):
            store.convicted()


# ---- whom an error leaves out


def failed(
    disputes: list[tuple[int, int]], convicted: tuple[int, ...] = (), **more: Any
) -> RemoteProtocolError:
    fields: dict[str, Any] = {"sender": None, "phase": "masked_input", "check": "dealer"}
    proofs = tuple(Verdict(u, "complaints", b"") for u in convicted)
    pairs = tuple(Dispute(*pair) for pair in disputes)
    return RemoteProtocolError("", **(fields | more), disputes=pairs, verdicts=proofs)


def test_at_fault_are_the_convicted_and_the_sender():
    pairs = [(1, 2), (3, 2)]
    for check in ("dealer", "shares", "contribution", "sum"):
        error = failed(pairs, (5,), check=check, phase="unmasking")
        assert at_fault(error, PARAMS) == {5}
    error = failed([], check="contribution", sender=4, phase="unmasking")
    assert at_fault(error, PARAMS) == at_fault(error, SEMI) == {4}
    assert at_fault(failed(pairs, check="shares"), SEMI) == {1, 3}
    few = TooFewSurvivors("", phase="", survivors=1, needed=2, verdicts=VERDICTS[:1])
    assert at_fault(few, PARAMS) == {3}


def test_in_doubt_are_clients_after_dealer_without_an_explanation():
    pairs = [(1, 2), (3, 2), (4, 6)]
    assert in_doubt(failed(pairs), set()) == {1, 2, 4, 6}
    assert in_doubt(failed(pairs), {2}) == {4, 6}
    assert in_doubt(failed(pairs), {2, 4}) == set()
    assert in_doubt(failed(pairs, check="shares"), set()) == set()
    few = TooFewSurvivors("", phase="", survivors=1, needed=2)
    assert in_doubt(few, set()) == set()
    few.disputes = tuple(Dispute(*pair) for pair in pairs)
    assert in_doubt(few, {2}) == {4, 6}


@given(st.data())
def test_check60_no_more_honest_clients_are_left_out_than_liars(data: st.DataObject):
    """In all attempts together: a complaint has a liar at one of its ends."""
    liars = data.draw(st.sets(st.integers(0, 11), max_size=4))
    left = set(range(12))
    for _ in range(4):
        possible = [
            pair
            for edge in combinations(sorted(left), 2)
            for pair in (edge, edge[::-1])
            if liars.intersection(pair)
        ]
        pairs = data.draw(st.lists(st.sampled_from(possible))) if possible else []
        known = sorted(left & liars)
        proofs = data.draw(st.sets(st.sampled_from(known))) if known else set()
        error = failed(pairs, tuple(proofs))
        guilty = at_fault(error, PARAMS)
        assert guilty == proofs
        left -= guilty | in_doubt(error, guilty)
        # what is left has no complaint that could end the next attempt in the same way
        assert not any({*pair} <= left for pair in pairs)
    lost = set(range(12)) - left
    assert len(lost - liars) <= len(lost & liars)
