"""Any order of sending, losing, delaying, repeating, timing out: the exact sum or an abort."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from effort import scaled
from secagg import (
    LocalProtocolError,
    Phase,
    RemoteProtocolError,
    TooFewSurvivors,
    _fast,
    testing,
)

ENDED = (Phase.FINISHED, Phase.FAILED)
RARELY = st.integers(0, 19).map(lambda drawn: drawn == 13)


class AnyRound(RuleBasedStateMachine):
    """The server's caller and the network, at their worst short of lying."""

    @initialize(round=testing.rounds())
    def start(self, round: testing.Round) -> None:
        self.cohort = testing.Cohort(round)
        self.server = self.cohort.server
        self.present = set(self.cohort.ids)
        self.step = 0
        self.inbox = dict(self.cohort.inbox)
        self.outbox: dict[int, bytes] = {}
        self.delivered: list[tuple[int, bytes]] = []
        self.counts: list[set[int]] = [set()]

    def running(self) -> bool:
        return self.server.phase not in ENDED

    @precondition(running)
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        """One client makes its message; it may arrive late or never."""
        ready = sorted(self.inbox.keys() & self.present)
        if ready:
            u = data.draw(st.sampled_from(ready))
            self.outbox[u] = self.make(u)

    @precondition(running)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """One message reaches the server."""
        if self.outbox:
            self.hand_over(data.draw(st.sampled_from(sorted(self.outbox))))

    @precondition(running)
    @rule()
    def everyone_answers(self) -> None:
        """All clients that are present send, and all messages arrive."""
        for u in sorted(self.inbox.keys() & self.present):
            self.outbox[u] = self.make(u)
        for u in sorted(self.outbox):
            self.hand_over(u)

    @precondition(running)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """Bytes that were accepted come again: ignored."""
        if self.delivered:
            self.server.receive(*data.draw(st.sampled_from(self.delivered)))

    @precondition(running)
    @rule(data=st.data())
    def cross(self, data: st.DataObject) -> None:
        """A client's message arrives under another's id: rejected, unless it is its own."""
        if self.delivered:
            u, message = data.draw(st.sampled_from(self.delivered))
            v = data.draw(st.sampled_from(sorted(self.cohort.ids)))
            if u != v:
                try:
                    self.server.receive(v, message)
                except RemoteProtocolError as error:
                    assert error.sender == v
                else:
                    raise AssertionError("a message was accepted under another's name")

    @precondition(running)
    @rule(data=st.data())
    def drop_out(self, data: st.DataObject) -> None:
        """A client drops out; rarely one without which too few are left."""
        spare = len(self.present) > self.ample()
        if self.present and (spare or data.draw(RARELY)):
            self.present.discard(data.draw(st.sampled_from(sorted(self.present))))

    @precondition(running)
    @rule(data=st.data())
    def time_out(self, data: st.DataObject) -> None:
        """Time is up, mostly not before enough have answered: else no round would finish."""
        if len(self.counts[-1]) < self.ample() and not data.draw(RARELY):
            self.everyone_answers()
        self.close()

    def needed(self) -> int:
        params, phase = self.cohort.params, self.server.phase
        return params.threshold if phase is Phase.UNMASKING else params.min_survivors

    def ample(self) -> int:
        """Return a number of clients, enough on any graph: all keep enough neighbours."""
        return self.needed() + max(0, len(self.cohort.ids) - self.cohort.params.holders)

    def close(self) -> None:
        params = self.cohort.params
        enough = len(self.counts[-1]) >= self.needed()
        try:
            self.inbox = self.server.close_round()
        except TooFewSurvivors:
            complete = params.neighbours is None
            assert not (complete and enough), "a round that had enough clients was given up"
            assert self.server.phase is Phase.FAILED
        else:
            assert enough
            self.step += 1
            self.counts.append(set())
            assert set(self.inbox) <= self.counts[-2]

    @precondition(lambda self: not self.running())
    @rule()
    def call_after_the_end(self) -> None:
        for call in (self.server.close_round, lambda: self.server.receive(0, b"")):
            try:
                call()
            except LocalProtocolError:
                continue
            raise AssertionError("the round is over, and the server went on")

    @invariant()
    def no_result_before_the_end(self) -> None:
        if not hasattr(self, "server") or self.server.phase is Phase.FINISHED:
            return
        try:
            self.server.result()
        except LocalProtocolError:
            return
        raise AssertionError("a result before the end")

    def teardown(self) -> None:
        if not hasattr(self, "server"):
            return
        while self.running():
            self.everyone_answers()
            self.close()
        if self.server.phase is Phase.FINISHED:
            result = self.server.result()
            u3 = sorted(self.counts[2])
            assert list(result.survivors) == u3
            assert result.integers.tolist() == self.cohort.expected(u3)
            assert result.disputes == ()
            if self.cohort.params.max_weight is not None:
                assert result.weight == sum(self.cohort.weights[u] for u in u3)

    def make(self, u: int) -> bytes:
        data = self.inbox.pop(u)
        return self.cohort.answer(u, data)

    def hand_over(self, u: int) -> None:
        message = self.outbox.pop(u)
        try:
            self.server.receive(u, message)
        except RemoteProtocolError:
            # sent in an earlier phase, or by a client that has dropped out
            assert u not in self.server.waiting or self.late(message)
        else:
            self.delivered.append((u, message))
            self.counts[-1].add(u)

    def late(self, message: bytes) -> bool:
        due = {
            Phase.ADVERTISE_KEYS: 1,
            Phase.SHARE_KEYS: 3,
            Phase.MASKED_INPUT: 5,
            Phase.CONSISTENCY_CHECK: 9,
            Phase.UNMASKING: 7,
        }
        return message[2] != due[self.server.phase]


@pytest.mark.hypothesis
def test_check32_any_schedule_gives_the_sum_or_an_abort() -> None:
    """Any schedule gives the exact sum or a typed abort."""
    # without kernels the schedules are those of the same Python; sums are checked in fewer
    examples = scaled(100 if _fast.COMPILED else 40)
    run_state_machine_as_test(
        AnyRound, settings=settings(max_examples=examples, stateful_step_count=40)
    )
