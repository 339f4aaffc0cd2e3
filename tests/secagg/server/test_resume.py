"""A server logs accepted messages before it answers, and resumes from its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest import mock

import pytest

from harness import Cohort, ReplayedEntropy, altered, make_params
from secagg import (
    CohortLedger,
    JournalError,
    LocalProtocolError,
    ParameterError,
    Phase,
    RemoteProtocolError,
    RoundParams,
    Server,
    TooFewSurvivors,
)
from secagg.protocol.messages import SHARE_BYTES, UnmaskShares
from secagg.server import Entry

KINDS = [{}, {"neighbours": 6}, {"modulus": (1 << 61) - 1, "max_weight": 9}]


class MemoryLog:
    """A log that can fail, before or after it has stored the entry."""

    def __init__(self, params: RoundParams, stored: list[Entry] | None = None) -> None:
        self.params = params
        self.stored = [] if stored is None else list(stored)
        self.fails = ""

    def entries(self) -> Iterator[Entry]:
        return iter(list(self.stored))

    def append(self, number: int, entry: Entry) -> None:
        if number != len(self.stored):
            raise JournalError("there are other entries")
        if self.fails != "before":
            self.stored.append(entry)
        if self.fails:
            raise JournalError("the disk is full")


def logged(params: RoundParams, seed: object = 0) -> tuple[Cohort, MemoryLog]:
    cohort, log = Cohort(params, seed=seed), MemoryLog(params)
    cohort.server = Server(params, journal=log, entropy=ReplayedEntropy((seed, "server")))
    return cohort, log


def finished(params: RoundParams) -> tuple[Cohort, MemoryLog]:
    """A round in which a client is lost before each message but the first."""
    cohort, log = logged(params)
    cohort.advance(1)
    for gone in ([1], [1, 6], [1, 6, 8]):
        cohort.deliver(cohort.step(without=gone))
    return cohort, log


def test_check28_accepted_messages_are_written_in_order() -> None:
    """Every accepted message and close is written in its order."""
    cohort, log = finished(make_params(10, neighbours=6))
    expected: list[Entry] = [(None, ReplayedEntropy((0, "server"))(32))]
    for sent in cohort.sent:
        expected += [*sent.items(), (None, b"")]
    assert log.stored == expected


def test_check28_rejected_and_repeated_messages_are_not_written() -> None:
    cohort, log = logged(make_params(5))
    first = cohort.step()
    for u in range(4):
        cohort.server.receive(u, first[u])
    stored = list(log.stored)
    cohort.server.receive(0, first[0])
    for u, data in ((0, first[1]), (4, first[4] + b"\0"), (4, b""), (3, first[4])):
        with pytest.raises(RemoteProtocolError):
            cohort.server.receive(u, data)
    assert log.stored == stored
    cohort.inbox = cohort.server.close_round()
    stored = list(log.stored)
    cohort.server.receive(0, first[0])
    with pytest.raises(RemoteProtocolError):
        cohort.server.receive(4, first[4])
    assert log.stored == stored


@pytest.mark.parametrize("kind", KINDS)
def test_check28_server_resumed_after_any_entry_is_the_same(kind: dict[str, int]) -> None:
    """From every point of the round: the same answers, byte for byte, and the same sum."""
    params = make_params(10, **kind)
    cohort, log = finished(params)
    result = cohort.server.result()
    answers: dict[int, bytes] = {}
    whole = Server.resume(MemoryLog(params, log.stored[:1]))
    for count in range(1, len(log.stored) + 1):
        resumed = Server.resume(MemoryLog(params, log.stored[:count]))
        assert resumed.outbox == answers
        assert (resumed.phase, resumed.waiting) == (whole.phase, whole.waiting)
        for u, data in log.stored[1:count]:  # clients without an acknowledgement send again
            if u is not None and resumed.phase is not Phase.FINISHED:
                resumed.receive(u, data)
        for u, data in log.stored[count:]:
            resumed.receive(u, data) if u is not None else resumed.close_round()
        assert resumed.result().integers.tolist() == result.integers.tolist()
        assert resumed.result().survivors == result.survivors
        assert resumed.result().weight == result.weight
        if count < len(log.stored):
            u, data = log.stored[count]
            if u is None:
                answers = whole.close_round()
            else:
                whole.receive(u, data)
    assert result.integers.tolist() == cohort.expected(result.survivors)


@pytest.mark.parametrize("phase", range(4))
def test_check28_round_that_failed_fails_again_when_resumed(phase: int) -> None:
    """A second close, with late messages, would give other answers."""
    cohort, log = logged(make_params(6, 5))
    cohort.advance(phase)
    sent = cohort.step()
    for u in range(4):
        cohort.server.receive(u, sent[u])
    with pytest.raises(TooFewSurvivors):
        cohort.server.close_round()
    resumed = Server.resume(log)
    assert resumed.phase is Phase.FAILED
    assert resumed.outbox == {}
    for call in (lambda: resumed.receive(5, sent[5]), resumed.close_round):
        with pytest.raises(LocalProtocolError) as caught:
            call()
        assert "resume" not in str(caught.value)  # which would be no remedy


def test_check28_wrong_shares_end_a_resumed_round_again() -> None:
    cohort, log = logged(make_params(5))
    cohort.advance(3)
    for u, data in cohort.step().items():
        cohort.server.receive(u, altered(data, UnmaskShares, shares=bytes(5 * SHARE_BYTES)))
    with pytest.raises(RemoteProtocolError):
        cohort.server.close_round()
    assert Server.resume(log).phase is Phase.FAILED


@pytest.mark.parametrize("fails", ["before", "after"])
@pytest.mark.parametrize("phase", range(4))
def test_check28_unwritten_message_is_not_acknowledged(phase: int, fails: str) -> None:
    """The server ends; resumed, it takes the same message again, stored or not."""
    cohort, log = logged(make_params(5))
    cohort.advance(phase)
    sent = cohort.step()
    cohort.server.receive(0, sent[0])
    for call in (
        lambda: cohort.server.receive(1, sent[1]),
        lambda: cohort.server.close_round(),
    ):
        log.fails = fails
        with pytest.raises(JournalError):
            call()
        assert cohort.server.phase is Phase.FAILED
        with pytest.raises(LocalProtocolError, match="resume"):
            call()
        log.fails = ""
        cohort.server = Server.resume(log)
        closed = len(log.stored) == 1 + 6 * phase + 6
        if not closed:
            for u, data in sent.items():
                cohort.server.receive(u, data)
    cohort.inbox = cohort.server.outbox if closed else cohort.server.close_round()
    cohort.advance(3 - phase)
    assert cohort.server.result().integers.tolist() == cohort.expected(range(5))


def test_server_interrupted_half_way_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may or may not have added the input; the log decides."""
    cohort, log = logged(make_params(5))
    cohort.advance(2)
    sent = cohort.step()

    def interrupted(number: int, entry: Entry) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cohort.server.receive(0, sent[0])
    assert cohort.server.phase is Phase.FAILED
    monkeypatch.undo()
    cohort.server = Server.resume(log)
    cohort.deliver(sent)
    cohort.advance(1)
    assert cohort.server.result().integers.tolist() == cohort.expected(range(5))


def test_empty_log_begins_a_round_with_the_graph_seed() -> None:
    log, seed = MemoryLog(make_params(3)), bytes(range(32))
    server = Server.resume(log, graph_seed=seed)
    assert (server.phase, server._stage._seed) == (Phase.ADVERTISE_KEYS, seed)
    assert log.stored == [(None, seed)]
    assert Server.resume(log, graph_seed=bytes(32))._stage._seed == seed  # the log has its own
    with pytest.raises(JournalError):
        Server(log.params, journal=log)
    with pytest.raises(ParameterError):
        Server(make_params(4), journal=MemoryLog(log.params))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda stored: stored[1:],
        lambda stored: [(0, bytes(32)), *stored[1:]],
        lambda stored: [(None, bytes(31)), *stored[1:]],
        lambda stored: [stored[0], (9, stored[1][1]), *stored[2:]],
        lambda stored: [stored[0], (0, b"\1"), *stored[2:]],
        lambda stored: stored[:1] + stored[2:],
        lambda stored: stored[:11] + stored[12:],
        lambda stored: [*stored, stored[1]],
        lambda stored: [*stored, (None, b"")],
    ],
)
def test_log_of_no_server_is_rejected(spoil: Callable[[list[Entry]], list[Entry]]) -> None:
    params = make_params(10)
    _, log = finished(params)
    with pytest.raises(JournalError):
        Server.resume(MemoryLog(params, spoil(log.stored)))


def test_replay_takes_one_message_at_a_time() -> None:
    """A round can be longer than the memory."""
    params = make_params(10)
    _, log = finished(params)
    with mock.patch.object(
        Server, "_replay", autospec=True, side_effect=Server._replay
    ) as taken:

        def entries() -> Iterator[Entry]:
            for number, entry in enumerate(list(log.stored)):
                assert taken.call_count == max(0, number - 1)  # the first entry is the seed
                yield entry

        log.entries = entries  # type: ignore[method-assign]
        Server.resume(log)


# ---- with a ledger of cohorts


def with_ledger(log: MemoryLog, ledger: CohortLedger) -> Cohort:
    cohort = Cohort(log.params)
    cohort.server = Server(log.params, journal=log, ledger=ledger, kind="updates")
    return cohort


@pytest.mark.parametrize("kept", [True, False])
def test_check30_resumed_server_neither_forgets_nor_counts_twice(kept: bool) -> None:
    """The ledger was stored after the close of the masked inputs, or only before."""
    log, ledger = MemoryLog(make_params(9)), CohortLedger(min_difference=3)
    before = ledger.to_bytes()
    cohort = with_ledger(log, ledger)
    asked = cohort.advance(3)
    stored = CohortLedger.from_bytes(ledger.to_bytes() if kept else before)
    cohort.server = Server.resume(log, ledger=stored, kind="updates")
    assert cohort.server.outbox == asked
    assert stored.to_bytes() == ledger.to_bytes() != before
    cohort.advance(1)
    assert cohort.server.phase is Phase.FINISHED
    assert stored.record(range(9), "updates") == 0
    assert stored.record(range(8), "updates") == 1


def test_check30_rejected_cohort_stays_rejected_after_a_resume() -> None:
    log, ledger = MemoryLog(make_params(9)), CohortLedger(min_difference=3)
    ledger.record(range(9), "updates")
    cohort = with_ledger(log, ledger)
    cohort.advance(2)
    with pytest.raises(TooFewSurvivors):
        cohort.advance(1, without=[4])
    server = Server.resume(log, ledger=ledger, kind="updates")
    assert server.phase is Phase.FAILED
    assert not server.outbox


def test_check30_server_resumes_with_its_ledger_only() -> None:
    params = make_params(9)
    log, plain = MemoryLog(params), MemoryLog(params)
    with_ledger(log, CohortLedger(min_difference=3)).advance(2)
    Server(params, journal=plain)
    ledger = CohortLedger(min_difference=3)
    for wrong in ({}, {"ledger": ledger}, {"ledger": ledger, "kind": "counts"}):
        with pytest.raises(ParameterError):
            Server.resume(log, **wrong)
    with pytest.raises(ParameterError):
        Server.resume(plain, ledger=ledger)
    with pytest.raises(JournalError):
        Server.resume(MemoryLog(params, [(None, bytes(33))]))
    fresh = Server.resume(MemoryLog(params), ledger=ledger, kind="updates")
    assert fresh.phase is Phase.ADVERTISE_KEYS
