"""A resumed server gives the same answers, disputes and verdicts in the active variant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import ReplayedEntropy
from lying_clients import (
    LiarsCohort,
    active_params,
    complains,
    convicted,
    deals_off,
    publishes_another,
    reveals_others,
    seals_noise,
)
from raised import rejects
from secagg import ClientPolicy, Phase, RemoteProtocolError, RoundParams, Server
from secagg.protocol import dealing
from secagg.server import Entry

POLICY = ClientPolicy(colluders=1)


class MemoryLog:
    def __init__(self, params: RoundParams, stored: list[Entry]) -> None:
        self.params, self.stored = params, stored

    def entries(self) -> Iterator[Entry]:
        return iter(list(self.stored))

    def append(self, number: int, entry: Entry) -> None:
        self.stored.append(entry)


def logged(suite: str, lies: dict[int, list[object]]) -> tuple[LiarsCohort, MemoryLog]:
    cohort = LiarsCohort(active_params(13, suite), lies)
    log = MemoryLog(cohort.params, [])
    cohort.server = Server(
        cohort.params,
        registry=cohort.registry,
        policy=POLICY,
        journal=log,
        entropy=ReplayedEntropy("server"),
    )
    return cohort, log


def resumed(cohort: LiarsCohort, log: MemoryLog, count: int) -> Server:
    part = MemoryLog(log.params, log.stored[:count])
    return Server.resume(part, registry=cohort.registry, policy=POLICY)


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check28_a_round_with_liars_goes_on_from_any_entry(suite: str) -> None:
    lies = {
        1: [seals_noise([5, 6])],  # two complaints, c is 1
        2: [seals_noise([7])],
        3: [deals_off([0])],
        4: [reveals_others([9])],
    }
    cohort, log = logged(suite, lies)
    cohort.advance(2)
    cohort.advance(1, without=[12])
    cohort.run()
    result = cohort.server.result()
    kinds = [(1, "complaints"), (3, "shares"), (4, "answer")]
    assert convicted(cohort, result.verdicts) == kinds
    answers: dict[int, bytes] = {}
    whole = resumed(cohort, log, 1)
    for count in range(1, len(log.stored) + 1):
        if count % 9 == 0 or log.stored[count - 1][0] is None:
            server = resumed(cohort, log, count)
            assert (server.outbox, server.phase) == (answers, whole.phase)
            assert (server.waiting, server.verdicts) == (whole.waiting, whole.verdicts)
            for u, data in log.stored[count:]:
                server.receive(u, data) if u is not None else server.close_round()
            again = server.result()
            assert again.integers.tolist() == result.integers.tolist()
            assert (again.verdicts, again.disputes) == (result.verdicts, result.disputes)
        if count < len(log.stored):
            u, data = log.stored[count]
            if u is None:
                answers = whole.close_round()
            else:
                whole.receive(u, data)


def test_check28_a_failed_round_keeps_its_verdicts() -> None:
    cohort, log = logged("x25519", {4: [publishes_another(dealing.B_SHARE)]})
    with pytest.raises(RemoteProtocolError) as caught:
        cohort.run()
    again = resumed(cohort, log, len(log.stored))
    assert again.phase is Phase.FAILED
    assert again.verdicts == caught.value.verdicts
    assert convicted(cohort, again.verdicts) == [(4, "shares")]


def test_another_policy_changes_verdicts_and_no_answer() -> None:
    cohort, log = logged("hybrid", {1: [seals_noise([5, 6])]})
    cohort.run()
    default = Server.resume(log, registry=cohort.registry)  # a fifth of 13 is 3
    result = cohort.server.result()
    assert default.result().integers.tolist() == result.integers.tolist()
    assert (len(result.verdicts), len(default.result().verdicts)) == (1, 0)
    assert (len(result.disputes), len(default.result().disputes)) == (0, 2)


def test_a_round_begun_by_resume_has_the_policy() -> None:
    cohort, _ = logged("x25519", {1: [seals_noise([5, 6])]})
    cohort.server = resumed(cohort, MemoryLog(cohort.params, []), 0)
    cohort.run()
    assert convicted(cohort, cohort.server.result().verdicts) == [(1, "complaints")]


def test_a_verdict_of_a_rejected_message_is_not_in_the_journal() -> None:
    lies = {4: [complains(dict.fromkeys(range(6, 12), 1))]}
    cohort, log = logged("x25519", lies)
    cohort.advance(2)
    sent = cohort.step()
    rejects("dealer", lambda: cohort.server.receive(4, sent[4]))
    assert len(cohort.server.verdicts) == 1
    assert resumed(cohort, log, len(log.stored)).verdicts == ()
