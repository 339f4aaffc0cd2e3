"""FLARE without its processes: a controller and the runners of sites, joined by function calls.

Each message goes through FLARE's serialisation, and all that leaves a site is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.filter import Filter, FilterChainType, FilterContextKey
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext, FLContextManager
from nvflare.apis.shareable import ReturnCode, Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.apis.utils.decomposers import flare_decomposers
from nvflare.apis.utils.fl_context_utils import gen_new_peer_ctx
from nvflare.apis.wf_comm_spec import WFCommSpec
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.decomposers import common_decomposers
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.fuel.utils import fobs
from nvflare.private.fed.client.client_engine_executor_spec import TaskAssignment
from nvflare.private.fed.client.client_runner import (
    ClientRunner,
    ClientRunnerConfig,
    TaskRouter,
)
from nvflare.private.privacy_manager import Scope

from secagg.flare import SecAggExecutor, SecAggFedAvg, SitePolicy

flare_decomposers.register()
common_decomposers.register()
Arrays = Mapping[str, np.ndarray]


class Adding(Executor):
    """Trainer that adds a number to each float array."""

    def __init__(self, add: float, steps: int | None = None, relative: bool = False) -> None:
        super().__init__()
        self.add, self.steps, self.relative = add, steps, relative
        self.rounds: list[int] = []
        self.before: Callable[[int], object] = lambda number: None

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        model = FLModelUtils.from_shareable(shareable)
        assert task_name == "train"
        self.rounds.append(model.current_round)
        self.before(model.current_round)
        new = dict(model.params)
        for name, array in new.items():
            if array.dtype.kind == "f" and self.relative:
                new[name] = np.full_like(array, self.add)
            elif array.dtype.kind == "f":
                array += self.add  # noqa: PLW2901, trainers work in place
        meta = {} if self.steps is None else {"NUM_STEPS_CURRENT_ROUND": self.steps}
        kind = ParamsType.DIFF if self.relative else ParamsType.FULL
        return FLModelUtils.to_shareable(FLModel(params=new, params_type=kind, meta=meta))


@dataclass
class Site:
    """A site with its executor, its operator's policy and filters, and its folders."""

    name: str
    trainer: Executor
    policy: SitePolicy | None = None
    kit: Path = Path("none")
    root: Path = Path("none")  # in a test's folder: one of the site's own
    app: Path | None = None
    signal: Signal = field(default_factory=Signal)
    executor: Any = None
    scope: Scope | None = None
    data_filters: list[Filter] = field(default_factory=list)
    result_filters: list[Filter] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.root == Path("none"):
            self.root = Path("sites", self.name)
        if self.executor is None:
            self.executor = SecAggExecutor(self.trainer)

    def runner(self, engine: _SiteEngine, job: str) -> ClientRunner:
        """Return FLARE's runner of a job at this site."""
        router = TaskRouter()
        router.add_executor(["*"], self.executor)
        for one in self.data_filters:
            one.set_prop(FilterContextKey.CHAIN_TYPE, FilterChainType.TASK_DATA_CHAIN)
        for one in self.result_filters:
            one.set_prop(FilterContextKey.CHAIN_TYPE, FilterChainType.TASK_RESULT_CHAIN)
        config = ClientRunnerConfig(
            router, {"train/in": self.data_filters}, {"train/out": self.result_filters}
        )
        runner = ClientRunner({}, config, job, engine)
        runner.run_abort_signal = self.signal
        return runner


class Network(WFCommSpec):
    """Engine of server and sites, and the communicator of the controller.

    `sent` has what left each site, and `codes` the return codes of the replies to each step.
    `meddle` changes the data of tasks, `context` the contexts of sites, and `altered` the
    results. Those of the sites in `lost` do not arrive.
    """

    def __init__(self, sites: list[Site], job: str = "job 1", kit: Path = Path("none")) -> None:
        self.sites = {site.name: site for site in sites}
        self.job, self.kit = job, kit
        self.sent: list[tuple[str, Any]] = []
        self.codes: dict[str, list[str]] = {}
        self.panics: list[str] = []
        self.handlers: dict[str, Callable[..., Shareable]] = {}
        self.meddle: Callable[[str, Shareable], Shareable] = lambda site, data: data
        self.context: Callable[[str, FLContext], object] = lambda site, context: None
        self.altered: Callable[[str, Shareable], Shareable] = lambda site, data: data
        self.lost: set[str] = set()
        self._pool = ThreadPoolExecutor(32)
        self._standing: list[Future[None]] = []
        self.abort = Signal()

    def run(self, controller: SecAggFedAvg) -> dict[str, np.ndarray]:
        """Run a job; return the arrays of its last model."""
        saved: list[Arrays] = []
        controller.save_model = lambda model: saved.append(model.params)
        controller.set_communicator(self)
        controller._task_check_period = 0.01
        context = self._context(self, "server")
        controller.initialize(context)
        controller.control_flow(self.abort, context)
        self.abort.trigger(True)
        for site in self.sites.values():
            site.signal.trigger(True)
        self._pool.shutdown()
        assert not self.panics, self.panics
        return dict(saved[-1])

    def perform(self, site: Site, name: str, data: Shareable) -> Shareable:
        """Let a site perform a task, and return what leaves it."""
        engine = _SiteEngine(self, site)
        context, server = self._context(engine, site.name), self._context(self, "server")
        runner = site.runner(engine, self.job)
        context.set_prop(FLContextKey.RUNNER, runner)
        context.set_prop(FLContextKey.SCOPE_OBJECT, site.scope)
        context.set_prop(FLContextKey.APP_ROOT, None if site.app is None else str(site.app))
        context.set_peer_context(server)
        self.context(site.name, context)
        reply = runner._process_task(TaskAssignment(name, str(uuid4()), _moved(data)), context)
        self.codes.setdefault(data.get("step", name), []).append(reply.get_return_code())
        self._leaves(site.name, gen_new_peer_ctx(context).get_all_public_props())
        return self._leaves(site.name, reply)

    # the engine of the server

    def get_clients(self) -> list[Client]:
        return [Client(name, "token") for name in self.sites]

    def get_component(self, name: str) -> None:
        return None

    def get_workspace(self) -> SimpleNamespace:
        return SimpleNamespace(
            get_startup_kit_dir=lambda: str(self.kit),
            get_run_dir=lambda job: str(Path("server", job)),
        )

    def register_aux_message_handler(
        self, topic: str, message_handle_func: Callable[..., Shareable]
    ) -> None:
        self.handlers[topic] = message_handle_func

    def fire_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.FATAL_SYSTEM_ERROR:
            self.panics.append(fl_ctx.get_prop(FLContextKey.EVENT_DATA))

    # the communicator of the controller

    def send(self, task: Task, fl_ctx: FLContext, targets: list[str], *more: object) -> None:
        (name,) = targets
        self._standing.append(self._pool.submit(self._do, task, name))

    def broadcast_and_wait(
        self, task: Task, fl_ctx: FLContext, targets: list[str], *more: object, **named: object
    ) -> None:
        for done in [self._pool.submit(self._do, task, name) for name in targets]:
            done.result()

    def get_num_standing_tasks(self) -> int:
        return sum(not one.done() for one in self._standing)

    def _do(self, task: Task, name: str) -> None:
        data = self.meddle(name, _moved(task.data))
        result = self.altered(name, self.perform(self.sites[name], task.name, data))
        if task.result_received_cb is not None and name not in self.lost:
            done = ClientTask(Client(name, "token"), task)
            done.result = result
            task.result_received_cb(client_task=done, fl_ctx=self._context(self, "server"))
        if task.task_done_cb is not None:
            task.task_done_cb(task=task, fl_ctx=self._context(self, "server"))

    def _leaves(self, site: str, data: Any) -> Any:
        self.sent.append((site, _moved(data)))
        return _moved(data)

    def _context(self, engine: object, name: str) -> FLContext:
        return FLContextManager(engine, name, self.job).new_context()


class _SiteEngine:
    """Engine of one site, as executors and links see it."""

    def __init__(self, network: Network, site: Site) -> None:
        self._network, self._site = network, site

    def get_component(self, name: str) -> SitePolicy | None:
        return self._site.policy if name == "secagg_policy" else None

    def get_workspace(self) -> SimpleNamespace:
        return SimpleNamespace(
            get_startup_kit_dir=lambda: str(self._site.kit),
            get_root_dir=lambda: str(self._site.root),
        )

    def register_aux_message_handler(self, **named: object) -> None:
        """Accept the handlers of a runner."""

    def fire_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Accept the events of a runner."""

    def send_aux_request(
        self, targets: None, topic: str, request: Shareable, timeout: float, fl_ctx: FLContext
    ) -> dict[str, Shareable]:
        assert timeout > 0
        handler = self._network.handlers.get(topic)
        if handler is None:
            return {"server": make_reply(ReturnCode.TOPIC_UNKNOWN)}
        request = self._network._leaves(self._site.name, request)
        return {"server": _moved(handler(topic, request, fl_ctx))}


def _moved(data: Any) -> Any:
    return fobs.loads(fobs.dumps(data))


def leaves(value: object) -> Iterator[object]:
    """Yield all values in a message."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from leaves(one)
    elif isinstance(value, list | tuple | set):
        for one in value:
            yield from leaves(one)
    else:
        yield value
