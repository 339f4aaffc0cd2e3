"""FLARE's doors: `SecAggExecutor` and `SecAggFilter`, in FLARE's own runner of tasks."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import queue
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from flare_kits import Project
from flare_network import Network, Site
from lying.door import CLIENTS, LENGTH, Door, Outcome, Settings, Training
from lying.liar import Liar
from lying.sessions import (
    RoundServer,
    one_shot_params,
    one_shot_sum,
    round_params,
    settled,
    show,
)
from lying.walk import Opened, Unbuildable, opener
from lying.worlds import WEIGHTED
from secagg import Identity, Registry, SecAggError, client_id
from secagg.flare import SecAggFilter, SitePolicy, configuration, names
from secagg.flare.model import Model, write_model
from secagg.oneshot import Accumulator
from secagg.session.wire import (
    REPORT,
    AttemptName,
    Task,
    encode,
    message_digest,
    read_answer,
    read_task,
    task_id,
)

NAMES = {u: f"site-{u}" for u in CLIENTS}
IDS = {u: client_id(name) for u, name in NAMES.items()}
LARGE = 1 << 20
ARGUMENTS = {"rate": 0.1}
"""Arguments of the trainer in the job's configuration."""
FILE = "config/config_fed_client.json"
_PLAIN = (str, int, float, bytes, dict, list, tuple)
_TOPIC = "topic of the session"


@opener
def _shareable(value: Any, _: str) -> Opened | None:
    if type(value) is not Shareable:
        return None

    def whole(parts: dict[str, Any]) -> Shareable:
        made = Shareable()
        made.clear()
        made.update(parts)
        return made

    return dict(value), whole


class Reading(Executor):
    """Trainer that reads all it can reach: its task, its arguments, and FLARE's context."""

    def __init__(self, site: int, training: Training) -> None:
        super().__init__()
        self.site, self.training = site, training
        self.arguments: dict[str, Any] = {}

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        peer = fl_ctx.get_peer_context()
        context = {
            key: prop["value"]
            for key, prop in fl_ctx.props.items()
            if isinstance(prop["value"], _PLAIN)
        }
        server_side = {
            "task": {"name": task_name, "data": shareable},
            "fl_ctx": context,
            "peer": {} if peer is None else peer.get_all_public_props(),
            "arguments": self.arguments,
        }
        private = self.training.train(self.site, server_side, NAMES[self.site])
        weight = private.told_weight
        meta = {} if weight is None else {"NUM_STEPS_CURRENT_ROUND": weight}
        params = {"w": private.trained}
        model = FLModel(params=params, params_type=ParamsType.DIFF, meta=meta)
        return FLModelUtils.to_shareable(model)


class FlareDoor(Door):
    """Sites of a job, whose operators have a policy, keys and a folder."""

    def __init__(self, name: str, *, keyed: bool, one_shot: bool) -> None:
        super().__init__(f"FLARE, {name}", WEIGHTED, keyed=keyed, one_shot=one_shot)
        self.repeats = ("twice",) if one_shot else ()
        self.numbers = itertools.count()
        self.trainers = {u: Reading(u, self.training) for u in CLIENTS}
        self._written: dict[int, Mapping[str, Any]] = {}
        self._agreed = {self._configured(u, ARGUMENTS) for u in CLIENTS}.pop()

    def app(self, u: int) -> Path:
        """Return the folder to which FLARE deploys the job's app at a site."""
        return self.root(u) / "job" / f"app_{NAMES[u]}"

    def policy(self, u: int, **more: Any) -> SitePolicy:
        return SitePolicy(helpers=[key.hex() for key in self.trusted] or None, **more)

    def root(self, u: int) -> Path:
        root = self._folder / NAMES[u]
        root.mkdir(exist_ok=True)
        return root

    def message(self) -> tuple[int, bytes]:
        """Return the number of a new round, and its message: a model of zeros."""
        number = next(self.numbers)
        arrays = {"w": np.zeros(LENGTH)}
        model = Model("train", number, 1 << 20, arrays, configuration=self._agreed)
        return number, write_model(model)

    def perform(self, u: int, step: str, name: str, data: Shareable, liar: Liar) -> Shareable:
        """Let a site perform what the liar makes of a task, and return what leaves it."""
        honest = {"data": data, "peer": {}, "arguments": ARGUMENTS}
        told = liar.tell(u, step, honest)
        if step == REPORT:
            self.note_digest(u, told["data"], liar)
        self.trainers[u].arguments = told["arguments"]
        digest = self._configured(u, told["arguments"])
        liar.digests["configuration", u] = digest
        self._peers[NAMES[u]] = told["peer"]
        try:
            return self.network.perform(self.sites[u], name, told["data"])
        except Exception as error:
            raise Unbuildable(f"{type(error).__name__} of FLARE") from None

    def _tell_context(self, site: str, context: FLContext) -> None:
        """Tell a site other public properties of the server's context."""
        for key, value in self._peers[site].items():
            context.get_peer_context().set_prop(key, value, private=False, sticky=False)

    def _configured(self, u: int, arguments: Mapping[str, Any]) -> bytes:
        """Write a site's configuration of the job where FLARE deploys it; return its digest."""
        app = self.app(u)
        if self._written.get(u) == arguments:
            return configuration._digest(app, FILE)
        folder = app / "config"
        folder.mkdir(parents=True, exist_ok=True)
        executor = {"path": "lying.flare.Reading", "args": dict(arguments)}
        config = {"format_version": 2, "executors": [{"tasks": ["*"], "executor": executor}]}
        text = json.dumps(config, default=repr)
        (app / FILE).write_text(text)
        self._written[u] = arguments
        configuration._digest.cache_clear()  # another job, which has another process
        return configuration._digest(app, FILE)

    def note_digest(self, u: int, data: Shareable, liar: Liar) -> None:
        frame = data.get(names.SESSION_TASK)
        try:
            liar.digests["message", u] = message_digest(read_task(frame).message)
        except (SecAggError, TypeError):
            return

    def join(self, sites: Mapping[int, Site]) -> None:
        self.sites = dict(sites)
        self.network, self._peers = Network(list(sites.values())), dict[str, Any]()
        self.network.context = self._tell_context
        self._stack.callback(self.network._pool.shutdown)


class FilterDoor(FlareDoor):
    """Sites with a `SecAggFilter` before and behind their trainer.

    Parameters
    ----------
    keyed : bool
        Give the policies of the sites keys.
    """

    def __init__(self, *, keyed: bool) -> None:
        super().__init__("SecAggFilter", keyed=keyed, one_shot=True)
        self._identities = {u: Identity.generate() for u in CLIENTS}
        self._registry = Registry({IDS[u]: one.public for u, one in self._identities.items()})
        self.join({u: self._site(u) for u in CLIENTS})

    def _site(self, u: int) -> Site:
        more = {}
        if self.keyed:
            path = self.root(u) / "identity.pem"
            path.touch(0o600)
            path.write_bytes(self._identities[u].to_pem())
            more = {"identity": str(path)}
        return Site(
            NAMES[u],
            self.trainers[u],
            self.policy(u, **more),
            root=self.root(u),
            app=self.app(u),
            executor=self.trainers[u],
            data_filters=[SecAggFilter()],
            result_filters=[SecAggFilter()],
        )

    def sum(self, settings: Settings, liar: Liar) -> Outcome:
        outcome = self.training.outcome = Outcome()
        active = settings.is_active(keyed=self.keyed)
        registry = self._registry if active else None
        _, message = self.message()
        try:
            params = one_shot_params(settings, active, message, self.journals)
            helpers, accumulator, signed = one_shot_sum(params, self.journals, registry)
            name = task_id(params.digest, 0, 0, REPORT)
            frame = encode(Task(name, 0, 0, REPORT, params.to_bytes(), message, signed))
            for u in CLIENTS:
                data = Shareable()
                data[names.SESSION_TASK] = frame
                reply = self.perform(u, REPORT, "train", data, liar)
                if liar.repeats:
                    self.perform(u, REPORT, "train", data, liar)
                self._take(u, reply, accumulator, outcome)
            show(settled(accumulator, helpers), outcome)
        except SecAggError as error:
            outcome.failed = type(error).__name__
        return outcome

    def _take(
        self, u: int, reply: Shareable, accumulator: Accumulator, outcome: Outcome
    ) -> None:
        code, found = reply.get_return_code(), reply.get(names.ANSWER)
        if code != ReturnCode.OK or not isinstance(found, bytes):
            outcome.note(u, REPORT, code, sorted(map(str, reply)))
            return
        outcome.note(u, REPORT, "answer", len(found), sorted(map(str, reply)))
        report = outcome.masked[u] = read_answer(found, LARGE, u, REPORT).data  # type: ignore[union-attr]
        outcome.take(u, REPORT, accumulator.add, report)


class QueueSeat:
    """Seat of a site, whose executor asks for tasks in a thread of its own."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.ended, self.requests = False, 0

    def handle(self, topic: str, request: Shareable, fl_ctx: object) -> Shareable:
        """Answer a request of the site; it waits for the next task."""
        reply = make_reply(ReturnCode.OK)
        answer = request.get(names.ANSWER)
        if isinstance(answer, bytes):
            self.requests += 1  # another question can come before or after the next task
            self._answers.put(answer)
            return reply
        frame = self._tasks.get()
        reply.update({names.ENDED: True} if frame is None else {names.SESSION_TASK: frame})
        return reply

    async def ask(self, frame: bytes) -> tuple[bytes | None, int]:
        if self.ended:
            return None, 0
        before = self.requests
        self._tasks.put(frame)
        answer = await asyncio.to_thread(self._answers.get)
        return answer, 0 if answer is None else self.requests - before

    async def repeat(self, frame: bytes) -> None:
        await self.ask(frame)

    def end(self, _: object = None) -> None:
        """Note that the executor has returned."""
        self.ended = True
        self._answers.put(None)

    def close(self) -> None:
        self._tasks.put(None)


class ExecutorDoor(FlareDoor):
    """Sites with a `SecAggExecutor`.

    Parameters
    ----------
    keyed : bool
        Give the sites certificates, by which they sign keys for each session.
    """

    def __init__(self, *, keyed: bool) -> None:
        super().__init__("SecAggExecutor", keyed=keyed, one_shot=False)
        project = Project(self._folder / "kits")
        kits = {u: project.kit(name) if keyed else Path("none") for u, name in NAMES.items()}
        self.join({u: self._site(u, kits[u]) for u in CLIENTS})
        self._seats: dict[str, QueueSeat] = {}
        self._pool = ThreadPoolExecutor(len(CLIENTS))
        self._stack.callback(self._pool.shutdown)

    def _site(self, u: int, kit: Path) -> Site:
        more = {"require_active": True, "require_hybrid": True} if self.keyed else {}
        policy = self.policy(u, **more)
        return Site(NAMES[u], self.trainers[u], policy, kit, self.root(u), self.app(u))

    def sum(self, settings: Settings, liar: Liar) -> Outcome:
        outcome = self.training.outcome = Outcome()
        active = settings.is_active(keyed=self.keyed)
        registry, more = None, {}
        try:
            if active:
                registry, more = self._enrolled(liar, outcome)
            asyncio.run(self._sum(settings, liar, outcome, registry, more))
        except SecAggError as error:
            outcome.failed = type(error).__name__
        return outcome

    def _enrolled(self, liar: Liar, outcome: Outcome) -> tuple[Registry, dict[str, Any]]:
        """Return the registry of the keys that the sites drew, and their signatures."""
        keys, signatures = {}, {}
        for step, field, found in (
            (names.IDENTIFY, names.KEY, keys),
            (names.SIGN, names.SIGNATURE, signatures),
        ):
            for u in CLIENTS:
                data = Shareable()
                data[names.STEP] = step
                if step == names.SIGN:
                    data[names.KEYS] = dict(keys)
                reply = self.perform(u, step, names.TASK, data, liar)
                outcome.note(u, step, reply.get_return_code(), sorted(map(str, reply)))
                if isinstance(reply.get(field), bytes):
                    found[NAMES[u]] = reply[field]
        return Registry(keys), {names.SIGNATURES: signatures}

    async def _sum(
        self,
        settings: Settings,
        liar: Liar,
        outcome: Outcome,
        registry: Registry | None,
        more: Mapping[str, Any],
    ) -> None:
        number, message = self.message()
        seats, running = {}, []
        for u in CLIENTS:
            seats[u], ended = self._seated(u, liar, more)
            running.append(ended)
        name = AttemptName(os.urandom(8), number, 0, os.urandom(8), message_digest(message))
        active = registry is not None
        params = round_params(settings, active, name, b"flare", keyed=self.keyed)
        try:
            server = RoundServer(seats, IDS, outcome, liar, number, message)
            await server.round(params, registry)
        finally:
            for seat in seats.values():
                seat.close()
            for u, ended in zip(CLIENTS, running, strict=True):
                reply = await asyncio.wrap_future(ended)
                outcome.note(u, "end", reply.get_return_code(), sorted(map(str, reply)))

    def _seated(
        self, u: int, liar: Liar, more: Mapping[str, Any]
    ) -> tuple[QueueSeat, Future[Shareable]]:
        """Return the seat of a site, whose executor begins to take part."""
        seat = QueueSeat()
        data = Shareable()
        data.update({names.STEP: names.TAKE_PART, names.TOPIC: _TOPIC, names.TOKEN: b"t%d" % u})
        data.update(more)
        self._seats[NAMES[u]] = seat
        # requests under another topic or token reach the server, too
        self.network.handlers = SimpleNamespace(get=lambda _: self._handle)
        ended = self._pool.submit(self.perform, u, names.TAKE_PART, names.TASK, data, liar)
        ended.add_done_callback(seat.end)
        return seat, ended

    def _handle(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        return self._seats[fl_ctx.get_identity_name()].handle(topic, request, fl_ctx)
