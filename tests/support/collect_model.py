"""Collections in any order of events, beside a model of what a batch must have.

Workers and closers are coroutines that stop before each of their calls, at the database or in
the accumulator. The machine lets one call go at a time, ends processes, and lets time pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray

from collect_parts import Collected, Databases
from oneshot_parties import Parties, parties, registry_for
from secagg import (
    DatabaseError,
    LinkError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.collect import Asking, Closer, Database, State, Worker, batches
from secagg.collect.close import drop, result
from secagg.collect.reports import Verdict, place_of
from secagg.oneshot import Accumulator, OneShotParams
from secagg.session.clock import Clock
from secagg.session.exchange import Calls
from secagg.session.helpers import HelperLink

T = TypeVar("T")
CLIENTS, ROOM, LEAST, SLICES = 16, 6, 3, 2
BAD = {0: 1, 1: 2}
"""Clients in different slices, and the helper whose box each may spoil."""
SPOILT = 2
"""Seed of a report with a spoilt box."""
TURNS = 30
"""Turns of the loop from a call to the next, at least."""


class Gated(Calls):
    """Calls that wait until the machine lets them go, in the order in which they came."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []

    async def run(self, call: Callable[[], T]) -> T:
        gate = asyncio.get_running_loop().create_future()
        self.waiting.append(gate)
        await gate
        return call()


class Link:
    """Link to a helper, which may start again or be away; helper 4 also rejects clients."""

    def __init__(self, made: Parties, number: int) -> None:
        self.made, self.number = made, number
        self.rejected: tuple[int, ...] = ()
        self.away = 0

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        if self.away:
            self.away -= 1
            raise LinkError("it is away", check="patience")
        return (*self.made.helpers[self.number - 1].check(boxes), *self.rejected)

    async def reserve(self, request: bytes) -> bytes:
        return self.made.helpers[self.number - 1].reserve(request)

    async def open(self, request: bytes) -> bytes:
        return self.made.helpers[self.number - 1].open(request)


@dataclass
class Expected:
    """A batch as it must be."""

    clients: set[int] = field(default_factory=set)
    state: State = State.OPEN
    fixed: bytes | None = None
    dropped: bool = False


@dataclass
class Process:
    """Worker or closer under way."""

    database: Database
    task: asyncio.Task[object]
    calls: Gated


REJECTED = st.sets(st.integers(0, CLIENTS - 1), max_size=3) | st.sets(
    st.integers(0, CLIENTS - 1), min_size=CLIENTS - 3
)


class AnyCollection(RuleBasedStateMachine):
    """Clients, serves, workers, closers and helpers; `make` returns a new database."""

    make: ClassVar[Callable[[], Databases]]

    @initialize(rejected=REJECTED, lying=st.booleans())
    def start(self, rejected: set[int], lying: bool) -> None:
        self.stack = ExitStack()
        self.loop = asyncio.new_event_loop()
        self.stack.callback(self.loop.close)
        self.made = self.stack.enter_context(
            parties(4, n_clients=ROOM, min_clients=LEAST, length=2)
        )
        self.databases = type(self).make()
        self.stack.callback(self.databases.close)
        self.serves = [self.databases.open() for _ in range(2)]
        self.collected = Collected(self.serves[0], self.made, slices=SLICES)
        self.links = [Link(self.made, j) for j in (1, 2, 3, 4)]
        self.rejected = list[set[int]]()
        self.change_mind(rejected)
        self.processes: list[Process] = []
        self.batches = [Expected()]
        self.sent: dict[int, int] = {}
        self.any_away = False
        assert len({place_of(u) >= 0 for u in BAD}) == len(BAD)
        self.reports: dict[tuple[int, int], bytes] = {}
        self.vectors: dict[tuple[int, int], NDArray[np.int64]] = {}
        if lying:
            self.report([*BAD, 2, 3, 4], SPOILT, 0)

    def teardown(self) -> None:
        """Every batch that is closed comes to its sum, unless too few reports are good."""
        if not hasattr(self, "stack"):
            return
        with self.stack:
            for process in self.processes:
                self.end(process)
            self.databases.time += 1e6
            self.loop.run_until_complete(self.finish())
            self.agrees()
            for number, batch in enumerate(self.batches):
                found = result(self.serves[0], number)
                assert (found is None) == (batch.dropped or batch.state == State.OPEN)
                if found is not None:
                    self.check_list(batch, set(found.survivors))
                    vectors = [self.vectors[u, self.sent[u]] for u in found.survivors]
                    assert found.integers.tolist() == sum(vectors).tolist()  # type: ignore[union-attr]

    @rule(
        us=st.lists(st.integers(0, CLIENTS - 1), min_size=1, max_size=ROOM, unique=True),
        seed=st.sampled_from([0, 0, 1, SPOILT]),
        at=st.integers(0, 1),
    )
    def report(self, us: list[int], seed: int, at: int) -> None:
        """Clients send reports, perhaps again, or another than before, or with a spoilt box."""
        expected = [self.verdict(u, seed) for u in us]
        for u in us:
            if (u, seed) not in self.reports:
                spoils = seed == SPOILT and u in BAD
                self.reports[u, seed] = (
                    self.made.spoilt(u, BAD[u], seed=seed)
                    if spoils
                    else self.made.report(u, seed=seed)
                )
                self.vectors[u, seed] = self.made.vectors[u]
        sent = [(u, self.reports[u, seed]) for u in us]
        assert self.collected.send(sent, self.serves[at]) == expected

    def verdict(self, u: int, seed: int) -> Verdict:
        """Return the verdict on a report, and note a report that counts."""
        last = self.batches[-1]
        if (known := self.sent.get(u)) is not None:
            return Verdict.STORED if known == seed else Verdict.OTHER
        if last.state != State.OPEN:
            return Verdict.CLOSED
        if len(last.clients) == ROOM:
            return Verdict.FULL
        last.clients.add(u)
        self.sent[u] = seed
        return Verdict.STORED

    @rule(reopen=st.booleans())
    def close(self, reopen: bool) -> None:
        """The last batch closes if it has enough reports."""
        batch = self.batches[-1]
        few = batch.state == State.OPEN and len(batch.clients) < LEAST
        try:
            closed = self.collected.close(len(self.batches) - 1, reopen=reopen)
        except TooFewSurvivors:
            assert few
            return
        assert closed == (batch.state == State.OPEN)
        assert not few
        if closed:
            batch.state = State.CLOSING
            self.batches += [Expected()] * reopen

    @rule(data=st.data(), sure=st.sampled_from([False, False, False, True]))
    def drop(self, data: st.DataObject, sure: bool) -> None:
        """The operator drops a batch that has no sum."""
        number = data.draw(st.integers(0, len(self.batches) - 1))
        if not sure:
            return
        batch = self.batches[number]
        has_sum = batch.state in (State.OPENED, State.DONE)
        try:
            drop(self.serves[0], number)
        except ParameterError:
            assert has_sum
            return
        assert not has_sum
        batch.state, batch.dropped = State.DONE, True

    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """The operator lets the helpers check a batch again."""
        number = data.draw(st.integers(0, len(self.batches) - 1))
        with self.serves[0].transaction() as tx:
            asked = batches.ask_again(tx, number)
        assert asked == (self.batches[number].state == State.CLOSING)

    @rule(rejected=REJECTED)
    def change_mind(self, rejected: set[int]) -> None:
        """Helper 4 rejects other clients from now on."""
        self.rejected.append(rejected)
        self.links[3].rejected = tuple(sorted(rejected))

    @rule(number=st.integers(1, 4))
    def leave(self, number: int) -> None:
        """A helper does not answer the next check."""
        self.links[number - 1].away = 1
        self.any_away = True

    @rule(away=st.permutations(list(BAD.values())))
    def work_without(self, away: list[int]) -> None:
        """A process works on slices from begin to end; at each another helper is away."""
        self.any_away = True
        for number in away:
            asking = self.asking([link for link in self.links if link.number != number])
            worker = Worker(self.serves[0], asking, registry_for(self.made.params))
            try:
                self.loop.run_until_complete(worker.step())
            except RemoteProtocolError as error:
                assert error.check == "helpers", "a second helper was away"

    @precondition(lambda self: len(self.processes) < 4)
    @rule()
    def work(self) -> None:
        """A process begins that works on a slice."""
        database, calls = self.databases.connect(), Gated()
        registry = registry_for(self.made.params)
        worker = Worker(database, self.asking(), registry, thread=calls)
        self.begin(worker.step, database, calls)

    @precondition(lambda self: len(self.processes) < 4)
    @rule(data=st.data())
    def lead(self, data: st.DataObject) -> None:
        """A process begins that leads a batch a step further."""
        number = data.draw(st.integers(0, len(self.batches) - 1))
        database, calls = self.databases.connect(), Gated()
        closer = Closer(database, self.asking(), registry_for(self.made.params), calls)
        self.begin(lambda: closer.step(number), database, calls)

    @precondition(lambda self: self.processes)
    @rule(data=st.data(), times=st.integers(1, 6))
    def go_on(self, data: st.DataObject, times: int) -> None:
        """A process makes some calls."""
        process = data.draw(st.sampled_from(self.processes))
        for _ in range(times):
            if process.calls.waiting:
                process.calls.waiting.pop(0).set_result(None)
                self.settle()
        self.reap()

    @precondition(lambda self: self.processes)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """A process ends between two calls."""
        self.end(data.draw(st.sampled_from(self.processes)))
        self.reap()

    @rule(part=st.sampled_from([0.4, 1.1, -0.6]))
    def wait(self, part: float) -> None:
        """Time passes, and leases may run out; or the clock of the database is set back."""
        self.databases.time += part * Worker.lease

    @rule()
    def restart(self) -> None:
        """The helpers start again, with their journals, and without the checked boxes."""
        self.made.restart()

    @invariant()
    def agrees(self) -> None:
        """States go forward only, and a list that is fixed stays, with the right clients."""
        if not hasattr(self, "batches"):
            return
        found = self.collected.stored()
        with self.serves[0].transaction() as tx:
            rows = [batches.stored(tx, one.number) for one in found]
        assert len(found) == len(self.batches)
        order = list(State)
        for batch, row, expected in zip(found, rows, self.batches, strict=True):
            assert batch.reports == len(expected.clients)
            moved = order.index(batch.state) - order.index(expected.state)
            assert moved >= 0
            assert not moved or expected.state != State.OPEN, "only `close` closes"
            expected.state = batch.state
            if row.list is not None:
                assert expected.fixed in (None, row.list)
                expected.fixed = row.list
                registry = registry_for(self.made.params)
                whole = Accumulator.from_bytes(row.list, self.made.params, registry=registry)
                self.check_list(expected, set(whole.ids))
            assert (row.list is None) == (batch.state in (order[0], order[1], order[-1]))

    def check_list(self, batch: Expected, listed: set[int]) -> None:
        """Check the clients of a batch's list: a helper that rejects too many is a liar."""
        ever = set[int]().union(*self.rejected, self.spoilt(batch))
        assert batch.clients - ever <= listed <= batch.clients
        assert len(listed) >= LEAST
        if len(self.rejected) == 1 and not self.any_away and not self.spoilt(batch):
            kept = batch.clients - ever
            assert listed == (kept if len(kept) >= LEAST else batch.clients)

    def spoilt(self, batch: Expected) -> set[int]:
        """Return the clients of a batch with a spoilt box."""
        return {u for u in batch.clients & BAD.keys() if self.sent[u] == SPOILT}

    def asking(self, links: Sequence[Link] | None = None) -> Asking:
        """Return the way to ask some helpers, or all."""

        @asynccontextmanager
        async def reach(_: OneShotParams) -> AsyncIterator[Sequence[HelperLink]]:
            yield self.links if links is None else links

        async def never(_: float) -> None:
            await asyncio.get_running_loop().create_future()

        return Asking(reach, clock=Clock(lambda: 0.0, never))

    def begin(
        self,
        step: Callable[[], Coroutine[None, None, object]],
        database: Database,
        calls: Gated,
    ) -> None:
        self.processes.append(Process(database, self.loop.create_task(step()), calls))
        self.settle()

    def end(self, process: Process) -> None:
        """Cancel a process until it stops: a killed process gives no lease back."""
        while not process.task.done():
            process.task.cancel()
            self.settle()

    def settle(self) -> None:
        """Run all tasks until they wait for calls, or are done."""

        async def turns() -> None:
            for _ in range(TURNS):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    def reap(self) -> None:
        """Forget processes that are done; some errors are right."""
        for process in [one for one in self.processes if one.task.done()]:
            self.processes.remove(process)
            process.database.close()  # a server of PostgreSQL has few connections
            try:
                process.task.result()
            except asyncio.CancelledError:
                pass
            except RemoteProtocolError as error:
                assert error.check == "helpers", "helpers that start again, or are away"
            except TooFewSurvivors:
                assert any(map(self.is_hopeless, self.batches))
            except DatabaseError:
                assert State.DONE in {batch.state for batch in self.collected.stored()}

    def is_hopeless(self, batch: Expected) -> bool:
        """Return whether the reports without a spoilt box are too few for a sum."""
        return len(batch.clients - self.spoilt(batch)) < LEAST

    async def finish(self) -> None:
        """Lead all closed batches to their sums, and drop those without hope."""
        for link in self.links:
            link.away = 0
        registry = registry_for(self.made.params)
        worker = Worker(self.serves[0], self.asking(), registry)
        closer = Closer(self.serves[0], self.asking(), registry)
        for number, batch in enumerate(self.batches):
            for _ in State if batch.state != State.OPEN else ():
                while await worker.step(number):
                    pass
                self.made.restart()
                try:
                    await closer.step(number)
                except RemoteProtocolError as error:
                    assert error.check == "helpers", "others were away at the checks before"
                except TooFewSurvivors:
                    assert self.is_hopeless(batch)
                    drop(self.serves[0], number)
                    batch.dropped = True
            assert batch.state == State.OPEN or await closer.state(number) == State.DONE
