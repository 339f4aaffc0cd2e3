"""Nodes of Flower with known updates, and grids that lose or alter their messages."""

from __future__ import annotations

import atexit
import itertools
import json
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import Mod
from flwr.serverapp.strategy import FedAvg, Result

from secagg import ClientPolicy, Identity, Registry
from secagg.flower import SecAgg, SecAggMod
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import RECORD

NODES = range(11, 16)
SHARED = Path("/dev/shm")  # noqa: S108
FOLDER = TemporaryDirectory(prefix="secagg-flower-", dir=SHARED if SHARED.is_dir() else None)
atexit.register(FOLDER.cleanup)
COUNT = itertools.count()
ERROR = 2**-16
"""Bound on the error of an element of a mean, with the default encoding."""
FIXED = {
    "secagg: this node trains under secure aggregation only; wrap the strategy: "
    "SecAgg(FedAvg(), ...) for SecAggMod, OneShot(FedAvg(), ...) for OneShotMod",
    "secagg: this node answers evaluate messages of SecAgg(evaluate={...}) or "
    "OneShot(evaluate={...}) only; a mod with public=[...] answers others, too",
    "secagg: this node answers no query messages; a mod with public=[...] does",
    "secagg: this node sends declared metrics only; its own log names the metric, to be "
    "declared in public=[...] of the mod or left out of the reply",
}
"""All texts of a node's refusals."""

Reply = Callable[[Message, Context], Message]


def model(**arrays: np.ndarray) -> ArrayRecord:
    """A record of arrays, or of three of different shapes and dtypes."""
    arrays = arrays or {
        "weights": np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2),
        "bias": np.ones(5),
        "scale": np.array(1.5, dtype=np.float32),
    }
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def weight(node: int) -> int:
    return node - 10


def loss(node: int) -> float:
    return node / 8


def update(node: int, array: np.ndarray) -> np.ndarray:
    """A node's arrays after training; they depend on those before."""
    drawn = np.random.default_rng(node).uniform(-0.5, 0.5, array.shape)
    return np.asarray(0.9 * array + 0.1 * drawn, dtype=array.dtype)


def train(message: Message, context: Context) -> Message:
    (record,) = message.content.array_records.values()
    node = context.node_id
    arrays = {name: Array(update(node, array.numpy())) for name, array in record.items()}
    measured = MetricRecord({"num-examples": weight(node), "train-loss": loss(node)})
    content = RecordDict({"arrays": ArrayRecord(arrays), "metrics": measured})
    return Message(content, reply_to=message)


def noting(trained: list[int]) -> Reply:
    """Function of the nodes that notes which of them train."""

    def reply(message: Message, context: Context) -> Message:
        trained.append(context.node_id)
        return train(message, context)

    return reply


def evaluate(message: Message, context: Context) -> Message:
    node = context.node_id
    measured = MetricRecord({"num-examples": weight(node), "eval-loss": loss(node)})
    return Message(RecordDict({"metrics": measured}), reply_to=message)


def make_app(
    mods: Iterable[Mod], train: Reply = train, evaluate: Reply = evaluate
) -> ClientApp:
    app = ClientApp(mods=list(mods))
    app.train()(train)
    app.evaluate()(evaluate)
    app.query()(evaluate)
    return app


def configs(nodes: Iterable[int] = NODES) -> dict[int, dict[str, str]]:
    """Configurations of nodes that share a new folder."""
    folder = f"{FOLDER.name}/{next(COUNT)}"
    return {node: {"secagg-state-dir": folder} for node in nodes}


def identity(node: int) -> Identity:
    """Identity of the client with the node's name, such as "n11"."""
    return Identity(bytes([node]) * 32)


def registry(nodes: Iterable[int] = NODES) -> Registry:
    return Registry({f"n{node}": identity(node).public for node in nodes})


def signed_configs(nodes: Iterable[int] = NODES) -> dict[int, dict[str, str]]:
    """Configurations of nodes with identities, and one registry of all of them."""
    found = configs(nodes)
    for node, config in found.items():
        folder = Path(config["secagg-state-dir"])
        folder.mkdir(exist_ok=True)
        key, keys = folder / f"{node}.pem", folder / "registry.json"
        key.write_bytes(identity(node).to_pem())
        publics = {f"n{one}": identity(one).public.hex() for one in found}
        keys.write_text(json.dumps(publics))
        config |= {"secagg-identity": str(key), "secagg-registry": str(keys)}
    return found


def secure_app(policy: ClientPolicy | None = None, train: Reply = train) -> ClientApp:
    return make_app([SecAggMod(policy)], train)


def fedavg(**settings: object) -> FedAvg:
    return FedAvg(fraction_evaluate=0.0, **settings)


def wrapped(strategy: object = None, **settings: object) -> SecAgg:
    """SecAgg around a strategy, which does not wait for late nodes."""
    given = {"clip": 1.0, "max_weight": 100, "key_timeout": 1e-9, **settings}
    return SecAgg(strategy or fedavg(), **given)


def run(grid: LocalGrid, secagg: SecAgg | None = None, rounds: int = 1) -> Result:
    return (secagg or wrapped()).start(grid, model(), num_rounds=rounds, timeout=0.0)


def expected(nodes: Iterable[int], start: ArrayRecord | None = None) -> dict[str, np.ndarray]:
    """Weighted mean of the nodes' arrays after one round."""
    nodes = list(nodes)
    total = sum(map(weight, nodes))
    return {
        name: sum(weight(node) * update(node, array.numpy()).astype(float) for node in nodes)
        / total
        for name, array in (start or model()).items()
    }


def assert_mean(found: ArrayRecord, nodes: Iterable[int]) -> None:
    """Assert that arrays are the nodes' mean, within the error of encoding and of float32."""
    for name, array in expected(nodes).items():
        np.testing.assert_allclose(found[name].numpy(), array, rtol=0, atol=ERROR + 1e-6)


def logged_errors(records: Iterable[logging.LogRecord]) -> list[BaseException]:
    """Errors that nodes logged, in one line or with their tracebacks."""
    found: list[object] = []
    for record in records:
        if record.levelno == logging.ERROR:
            found += [*(record.args or ()), *(record.exc_info or ())]
    return [one for one in found if isinstance(one, BaseException)]


def errors(grid: LocalGrid) -> list[str]:
    """Texts of the errors that nodes replied with."""
    return [reply.error.reason for reply in grid.replies if reply.has_error()]


def sizes(grid: LocalGrid) -> list[tuple[int, int]]:
    """Node and size of every reply of the protocol."""
    found = []
    for reply in grid.replies:
        (data,) = reply.content[RECORD].values()
        found.append((reply.metadata.src_node_id, len(getattr(data, "data", data))))
    return sorted(found)


def phase_of(message: Message) -> str:
    """Phase of a message of the server, or "" of one without the protocol."""
    record = message.content.get(RECORD)
    return str(record["phase"]) if isinstance(record, ConfigRecord) else ""


class Meddler(LocalGrid):
    """Grid that passes a message of each phase to a function in its way.

    The function gets the message and `answer`, which runs the node, and returns the reply.
    """

    meddle: Callable[[Message, Callable[[Message], Message]], Message | None]

    def deliver(self, message: Message) -> Message | None:
        reply = self.meddle(message, self.answer)
        if reply is not None:
            self.replies.append(reply)
        return reply
