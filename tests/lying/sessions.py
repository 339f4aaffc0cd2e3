"""The door of sessions: members that `take_part`, and a server that asks them step by step.

The server is written out here, so that it can say anything. It asks one member at a time, and
counts the steps of the member's coroutine until the answer.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import numpy as np

from harness import registry_of
from lying.door import CLIENTS, LENGTH, Door, Outcome, Settings, plain_world
from lying.liar import Liar
from lying.walk import Unbuildable
from lying.worlds import WEIGHTED
from oneshot_parties import open_sum
from secagg import (
    ClientPolicy,
    FixedPoint,
    Noise,
    Registry,
    RoundParams,
    RoundResult,
    SecAggError,
    Server,
)
from secagg.oneshot import Accumulator, Helper, OneShotParams, OneShotPolicy, OneShotResult
from secagg.session import bind, take_part
from secagg.session.wire import (
    REPORT,
    Answer,
    AttemptName,
    Task,
    encode,
    message_digest,
    read_answer,
    read_task,
    task_id,
    write_name,
)
from secagg.testing import make_identity

STEPS = itertools.count(1)
LARGE = 1 << 20
PLAIN = plain_world()


class Seat(Protocol):
    """Place of a member at the server."""

    async def ask(self, frame: bytes) -> tuple[bytes | None, int]:
        """Return the answer, None if the member has ended, and its steps until then."""
        ...

    async def repeat(self, frame: bytes) -> None:
        """Give a task once more, and drop what comes."""
        ...


@dataclass
class RoundServer:
    """Server of one sum, in four exchanges or in one, over seats.

    Parameters
    ----------
    seats : mapping of int to Seat
    ids : mapping of int to int or str
        Names of the clients in the protocol.
    """

    seats: Mapping[int, Seat]
    ids: Mapping[int, int]
    outcome: Outcome
    liar: Liar
    number: int
    message: bytes
    _params: dict[int, bytes] = field(default_factory=dict)
    _before: dict[int, bytes] = field(default_factory=dict)

    async def round(
        self, params: RoundParams, registry: Registry | None, *, begin: bool = False
    ) -> None:
        """Run a sum, or only begin one, at whose parameters members fix their bounds."""
        server = Server(params, registry=registry)
        inbox = {self.ids[u]: b"" for u in CLIENTS}
        clients = {self.ids[u]: u for u in CLIENTS}
        while inbox:
            phase, first = server.phase, server.phase == "advertise_keys"
            message = self.message if phase == "masked_input" else b""
            for name, data in inbox.items():
                u = clients[name]
                sent = params.to_bytes() if first else b""
                task = Task(b"", self.number, 0, str(phase), sent, message, data)
                answer = await self.ask(u, task, params.to_bytes())
                if answer is None:
                    continue
                self.outcome.take(u, phase, server.receive, name, answer)
            if begin:
                return
            inbox = server.close_round()
        show(server.result(), self.outcome)

    async def one_shot(
        self, params: OneShotParams, journals: Sequence[Any], registry: Registry | None
    ) -> None:
        helpers, accumulator, signed = one_shot_sum(params, journals, registry)
        for u in CLIENTS:
            task = Task(b"", self.number, 0, REPORT, params.to_bytes(), self.message, signed)
            answer = await self.ask(u, task, params.to_bytes())
            if answer is not None:
                self.outcome.take(u, REPORT, accumulator.add, answer)
        show(settled(accumulator, helpers), self.outcome)

    async def ask(self, u: int, task: Task, params: bytes) -> bytes | None:
        """Return a member's message in answer to what the liar makes of a task."""
        self._params.setdefault(u, params)
        task = self._named(task, self._params[u])
        told = self.liar.tell(u, task.step, task)
        if read_task(encode(told)) != told:
            raise Unbuildable("the frame of a task")
        if told.params and told.params != self._params[u]:
            self._params[u] = told.params
            if told.id == task.id:
                told = self._named(told, told.params)
        frame = encode(told)
        if task.step in ("masked_input", REPORT):
            self.liar.digests["message", u] = message_digest(told.message)
        seat = self.seats[u]
        if self.liar.repeats == "before" and u in self._before:
            await seat.repeat(self._before[u])
        data, steps = await seat.ask(frame)
        if self.liar.repeats == "twice":
            await seat.repeat(frame)
        self._before[u] = frame
        if data is None:
            self.outcome.note(u, task.step, "ended", steps)
            return None
        answer = read_answer(data, LARGE, u, task.step)
        kind = "answer" if isinstance(answer, Answer) else "declined"
        self.outcome.note(u, task.step, kind, len(data), steps)
        if not isinstance(answer, Answer):
            return None
        if task.step in ("masked_input", REPORT):
            self.outcome.masked[u] = answer.data
        return answer.data

    @staticmethod
    def _named(task: Task, params: bytes) -> Task:
        """Return a task with the id that a member of these parameters expects."""
        kind = OneShotParams if task.step == REPORT else RoundParams
        try:
            digest = kind.from_bytes(params).digest
        except SecAggError:
            digest = params
        name = task_id(digest, task.number, task.attempt, task.step)
        return msgspec.structs.replace(task, id=name)


def show(result: RoundResult, outcome: Outcome) -> None:
    """Note what a server has of a sum."""
    outcome.opened = np.asarray(result.sum, float)
    outcome.shown = {"weight": float(result.weight or 0), "clipped": float(result.clipped or 0)}


def one_shot_sum(
    params: OneShotParams, journals: Sequence[Any], registry: Registry | None
) -> tuple[list[Helper], Accumulator, bytes]:
    """Return helpers, an accumulator and the endorsements of a new sum."""
    helpers = [Helper(params, journal, registry=registry) for journal in journals]
    accumulator = Accumulator(params, registry=registry)
    return helpers, accumulator, b"".join(helper.endorse() for helper in helpers)


def settled(accumulator: Accumulator, helpers: Sequence[Helper]) -> OneShotResult:
    """Return the result over all reports that the helpers do not reject."""
    for helper in helpers:
        for boxes in accumulator.boxes(helper.number):
            accumulator.drop(helper.check(boxes))
    return open_sum(accumulator, helpers)


def round_params(
    settings: Settings,
    active: bool,
    name: AttemptName,
    prefix: bytes = b"session",
    *,
    keyed: bool = True,
) -> RoundParams:
    return RoundParams.suggest(
        len(CLIENTS),
        LENGTH,
        FixedPoint(settings.clip, settings.bits),
        threshold=3,
        max_weight=settings.max_weight,
        count_clipped=True,
        security="active" if active else "semi-honest",
        suite=settings.suite_of(keyed=keyed),
        session=write_name(prefix, name),
    )


def one_shot_params(
    settings: Settings, active: bool, message: bytes, journals: Sequence[Any]
) -> OneShotParams:
    return OneShotParams.suggest(
        len(CLIENTS),
        LENGTH,
        FixedPoint(settings.clip, settings.bits),
        max_weight=settings.max_weight,
        helpers=tuple(journal.public for journal in journals),
        threshold=2,
        min_clients=3,
        security="active" if active else "semi-honest",
        noise=None if settings.sigma is None else Noise(settings.sigma),
        session=bind(b"sum %d" % next(STEPS), message),
    )


class Counted:
    """Coroutine that counts its steps."""

    def __init__(self, work: Coroutine[Any, Any, int]) -> None:
        self._work, self.steps = work, 0

    def __await__(self) -> Generator[Any, Any, int]:
        value: Any = None
        while True:
            self.steps += 1
            try:
                waited = self._work.send(value)
            except StopIteration as end:
                return int(end.value)
            try:
                value = yield waited
            except BaseException as error:
                self._work.throw(error)
                raise


class MemberSeat:
    """Seat and link of a member in this event loop."""

    def __init__(self) -> None:
        self._tasks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.counted: Counted | None = None
        self.running: asyncio.Future[int] | None = None

    async def next_task(self, after: bytes) -> bytes | None:
        return await self._tasks.get()

    async def send(self, answer: bytes) -> None:
        self._answers.put_nowait(answer)

    def start(self, work: Coroutine[Any, Any, int]) -> None:
        self.counted = Counted(work)
        self.running = asyncio.ensure_future(self.counted)
        self.running.add_done_callback(lambda _: self._answers.put_nowait(None))

    async def ask(self, frame: bytes) -> tuple[bytes | None, int]:
        assert self.counted is not None
        assert self.running is not None
        if self.running.done():
            return None, 0
        before = self.counted.steps
        self._tasks.put_nowait(frame)
        return await self._answers.get(), self.counted.steps - before

    async def repeat(self, frame: bytes) -> None:
        await self.ask(frame)

    async def end(self) -> None:
        assert self.running is not None
        self._tasks.put_nowait(None)
        await asyncio.gather(self.running, return_exceptions=True)


class SessionDoor(Door):
    """Members of a session, who take part in a first sum and then in the one asked for.

    Parameters
    ----------
    keyed : bool
        Give the members identities.
    one_shot : bool
        Sums of one message, with helpers, for four exchanges.
    """

    def __init__(self, *, keyed: bool, one_shot: bool) -> None:
        kind = "one-shot" if one_shot else "four exchanges"
        super().__init__(f"take_part, {kind}", WEIGHTED, keyed=keyed, one_shot=one_shot)
        self._registry = registry_of(CLIENTS)

    def sum(self, settings: Settings, liar: Liar) -> Outcome:
        return asyncio.run(self._sum(settings, liar))

    async def _sum(self, settings: Settings, liar: Liar) -> Outcome:
        seats = {u: MemberSeat() for u in CLIENTS}
        for u, seat in seats.items():
            seat.start(self._member(u, seat))
        run = os.urandom(8)
        try:
            if settings != Settings():  # what a member holds to is that of its first sum
                world, self.training.world = self.training.world, PLAIN
                await self._one(seats, run, 0, Settings(), Liar(to=CLIENTS), begin=True)
                self.training.world = world
            return await self._one(seats, run, 1, settings, liar)
        finally:
            for seat in seats.values():
                await seat.end()

    async def _one(
        self,
        seats: Mapping[int, MemberSeat],
        run: bytes,
        number: int,
        settings: Settings,
        liar: Liar,
        *,
        begin: bool = False,
    ) -> Outcome:
        outcome = self.training.outcome = Outcome()
        active = settings.is_active(keyed=self.keyed)
        registry = self._registry if active else None
        message = b"model of all"
        server = RoundServer(seats, {u: u for u in CLIENTS}, outcome, liar, number, message)
        try:
            if self.one_shot:
                params = one_shot_params(settings, active, message, self.journals)
                await server.one_shot(params, self.journals, registry)
            else:
                digest = message_digest(message)
                name = AttemptName(run, number, 0, os.urandom(8), digest)
                params = round_params(settings, active, name, keyed=self.keyed)
                await server.round(params, registry, begin=begin)
        except SecAggError as error:
            outcome.failed = type(error).__name__
        return outcome

    def _member(self, u: int, seat: MemberSeat) -> Coroutine[Any, Any, int]:
        more: dict[str, Any] = {"identity": make_identity(u)} if self.keyed else {}
        if self.one_shot:
            more["one_shot_policy"] = OneShotPolicy(helpers=self.trusted)
        else:
            more["policy"] = ClientPolicy(require_hybrid=self.keyed)
            if self.keyed:
                more["registry"] = self._registry

        async def train(message: bytes, params: object) -> Any:
            private = self.training.train(u, {"message": message, "params": params})
            weight = private.told_weight
            return private.trained if weight is None else (private.trained, weight)

        return take_part(seat, u, train, **more)
