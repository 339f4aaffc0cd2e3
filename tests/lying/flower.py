"""Flower's door: `SecAggMod` and `OneShotMod` on a grid in this process."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
    UserConfig,
)
from flwr.clientapp import ClientApp
from flwr.common.serde import (
    context_from_proto,
    context_to_proto,
    message_from_proto,
    message_to_proto,
)

from flower_nodes import fedavg, make_app, phase_of, registry, signed_configs
from lying.door import CLIENTS, LENGTH, Door, Outcome, Settings
from lying.liar import Liar
from lying.walk import Opened, Unbuildable, opener
from lying.worlds import EVERY
from secagg import ClientPolicy, SecAggError
from secagg.flower import OneShot, OneShotMod, SecAgg, SecAggMod
from secagg.flower import node as flower_node
from secagg.flower.testing import LocalGrid, LocalHelper
from secagg.flower.wire import RECORD
from secagg.oneshot import OneShotPolicy

_RAISED = 2


@opener
def _message(value: Any, _: str) -> Opened | None:
    if not isinstance(value, Message):
        return None

    def whole(parts: dict[str, Any]) -> Message:
        made = message_from_proto(message_to_proto(value))
        vars(made.metadata).update(parts["metadata"])
        made.content = parts["content"]
        return made

    return {"metadata": dict(vars(value.metadata)), "content": value.content}, whole


@opener
def _record(value: Any, _: str) -> Opened | None:
    if isinstance(value, ArrayRecord | ConfigRecord | MetricRecord | RecordDict):
        return dict(value), lambda parts: type(value)(parts)
    if isinstance(value, Array):
        names = ("dtype", "shape", "stype", "data")
        return {n: getattr(value, n) for n in names}, lambda parts: Array(**parts)
    return None


CONFIG = {"learning-rate": 0.1}
"""Configuration of the run, which applications read."""
CLOCK = datetime(2026, 1, 1, tzinfo=UTC)
"""Time of all nodes' own clocks, which is not the server's word."""


class LyingGrid(LocalGrid):
    """Grid whose SuperLink passes messages and contexts through a liar."""

    liar = Liar()
    outcome = Outcome()

    def __init__(self, app: ClientApp, nodes: Mapping[int, UserConfig]) -> None:
        super().__init__(app, nodes, run_config=CONFIG)
        self._before: dict[int, Message] = {}

    def answer(self, message: Message) -> Message:
        """Return the reply to what the liar makes of a message; see `LocalGrid.answer`."""
        node = message.metadata.dst_node_id
        step = phase_of(message) or message.metadata.message_type
        honest = {
            "message": message,
            "run_config": dict(CONFIG),
            # that of the context may be a lie that no message could carry
            "run_id": self.run.run_id,
        }
        told = self.liar.tell(node, step, honest)
        if self.liar.repeats == "before" and node in self._before:
            self._given(node, self._before[node], honest)
        reply = self._given(node, told["message"], told)
        if self.liar.repeats == "twice":
            self._given(node, told["message"], told)
        self._before[node] = told["message"]
        vars(reply.metadata)["_src_node_id"] = node
        vars(reply.metadata)["_reply_to_message_id"] = ""  # a grid's ids grow in length
        proto = message_to_proto(reply)
        size, reply = len(proto.SerializeToString()), message_from_proto(proto)
        error = (reply.error.code, reply.error.reason) if reply.has_error() else ()
        vars(reply.metadata)["_reply_to_message_id"] = message.metadata.message_id
        self.outcome.note(node, step, "error" if error else "answer", size, *error)
        if step in ("masked_input", "report") and not error:
            record = reply.content.get(RECORD)
            if isinstance(record, ArrayRecord):
                self.outcome.masked[node] = record["data"].data
        return reply

    def _given(self, node: int, message: Message, told: Mapping[str, Any]) -> Message:
        """Run a node's app on a message and the context that the SuperLink gives with it."""
        own = self.contexts[node]
        try:
            received = message_from_proto(message_to_proto(message))
            own.run_config, own.run_id = told["run_config"], told["run_id"]
            context = context_from_proto(context_to_proto(own))
        except Exception as error:
            raise Unbuildable(str(error)) from None
        try:
            with self._digests_noted(node), patch.object(flower_node, "now", lambda: CLOCK):
                reply = self._app(received, context)
        except Exception as error:
            reply = Message(Error(_RAISED, f"{type(error)}:<'{error}'>"), reply_to=received)
        self.contexts[node] = context
        context.run_id = self.run.run_id
        return reply

    @contextmanager
    def _digests_noted(self, node: int) -> Iterator[None]:
        """Note the digest by which a node compares what it trains on with the sum's name."""
        digest = flower_node.content_digest

        def noted(*arguments: Any, **named: Any) -> bytes:
            found: bytes = digest(*arguments, **named)
            self.liar.digests["message", node] = found
            return found

        with patch.object(flower_node, "content_digest", noted):
            yield


class FlowerDoor(Door):
    """Nodes with a mod, and the ServerApp of a strategy that wraps FedAvg.

    Parameters
    ----------
    keyed : bool
        Give the nodes identities and a registry.
    one_shot : bool
        Sums of one message, with helpers, for four exchanges.
    """

    errors: tuple[type[Exception], ...] = (SecAggError,)
    repeats = ("twice", "before")

    def __init__(self, *, keyed: bool, one_shot: bool) -> None:
        kind = "OneShotMod" if one_shot else "SecAggMod"
        super().__init__(f"Flower, {kind}", EVERY, keyed=keyed, one_shot=one_shot)
        one = OneShotMod(OneShotPolicy(helpers=self.trusted))
        mod = one if one_shot else SecAggMod(ClientPolicy())
        self._configs = signed_configs(CLIENTS)
        if keyed and not one_shot:
            for config in self._configs.values():
                config["secagg-require-hybrid"] = True
        if not keyed:
            keys = ("secagg-identity", "secagg-registry")
            for config in self._configs.values():
                for key in keys:
                    del config[key]
        self.grid = LyingGrid(make_app([mod], self.train), self._configs)

    def train(self, message: Message, context: Context) -> Message:
        node = context.node_id
        server_side = {
            "message": message,
            "run_config": dict(context.run_config),
            "run_id": context.run_id,
        }
        private = self.training.train(node, server_side, node)
        (model,) = message.content.array_records.values()
        (start,) = model.to_numpy_ndarrays()
        trained = private.trained
        new = start + trained if trained.shape == start.shape else trained
        loss = None if private.failure == "no metric" else private.loss
        told = {"num-examples": private.told_weight, "loss": loss}
        metrics = MetricRecord({name: one for name, one in told.items() if one is not None})
        content = RecordDict({"arrays": ArrayRecord([new]), "metrics": metrics})
        return Message(content, reply_to=message)

    def sum(self, settings: Settings, liar: Liar) -> Outcome:
        outcome = Outcome()
        self.training.outcome = self.grid.outcome = outcome
        self.grid.liar = liar
        self.grid.replies.clear()
        active = settings.is_active(keyed=self.keyed)
        try:
            strategy, start = self.strategy(settings, active)
            strategy.start(self.grid, start, num_rounds=1, timeout=0.0)
        except self.errors as error:
            outcome.failed = type(error).__name__
        except Unbuildable:
            raise
        except Exception as error:
            outcome.failed = f"{type(error).__name__}, foreign"
        return outcome

    def strategy(self, settings: Settings, active: bool) -> tuple[Any, ArrayRecord]:
        """Return the strategy of one sum, and its first arrays."""
        given: dict[str, Any] = {
            "clip": settings.clip,
            "max_weight": settings.max_weight,
            "fractional_bits": settings.bits,
            "metrics": {"loss": settings.bound},
            "registry": registry(CLIENTS) if active else None,
        }
        start = ArrayRecord([np.zeros(LENGTH)])
        strategy = fedavg()
        self.watch(strategy)
        if not self.one_shot:
            given["security"] = "active" if active else "semi-honest"
            given["suite"] = settings.suite_of(keyed=self.keyed)
            return SecAgg(strategy, key_timeout=1e-9, **given), start
        keys = given["registry"]
        helpers = [LocalHelper(journal, registry=keys) for journal in self.journals]
        return OneShot(strategy, helpers=helpers, **given), start

    def watch(self, strategy: Any) -> None:
        """Note what a strategy gets of the sums."""
        aggregate = strategy.aggregate_train

        def opened(number: int, replies: Iterable[Message]) -> Any:
            replies = list(replies)
            for reply in replies:
                if not reply.has_error():
                    self.note(reply.content)
            return aggregate(number, replies)

        strategy.aggregate_train = opened

    def note(self, content: RecordDict) -> None:
        (mean,) = content["arrays"].to_numpy_ndarrays()
        shown = {name: float(value) for name, value in content["metrics"].items()}
        self.grid.outcome.shown = shown
        self.grid.outcome.opened = np.asarray(mean, float) * shown["num-examples"]

    def close(self) -> None:
        super().close()
        for config in self._configs.values():
            shutil.rmtree(str(config["secagg-state-dir"]), ignore_errors=True)
