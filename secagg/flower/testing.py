"""Grid and helpers in one process, to test applications of Flower without a network."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from flwr.app import Context, Error, Message, RecordDict, UserConfig
from flwr.clientapp import ClientApp
from flwr.common.config import flatten_dict, get_fused_config_from_dir
from flwr.common.serde import (
    context_from_proto,
    context_to_proto,
    message_from_proto,
    message_to_proto,
)
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from secagg._check import check_integer, check_kind
from secagg.errors import ParameterError
from secagg.flower.config import FOLDER_KEY
from secagg.flower.grid import FixedNodes
from secagg.oneshot import Helper, HelperJournal, OneShotParams, OneShotPolicy
from secagg.protocol import Registry
from secagg.session import LocalHelper as SessionHelper

logger = logging.getLogger("flwr.secagg")

_SUPERLINK = 1
_RAISED, _UNAVAILABLE = 2, 5
"""Flower's codes for an exception of the app, and for a node without a heartbeat."""


class LocalGrid(FixedNodes):
    """Grid whose nodes are in this process: each message runs a node's app at once.

    Messages and Contexts pass through their protobuf, as between processes. An exception of an
    app becomes the error with its text that Flower would send. The lines that this package logs
    for a node begin with the node's id.

    Parameters
    ----------
    app : ClientApp
        App of all nodes.
    nodes : mapping of int to mapping
        Configurations of the nodes by their ids. Nodes without a ``secagg-state-dir`` share a
        new folder, which is removed with the grid.
    run_id : int
    run_config : mapping or path, optional
        Configuration of the run, in the Contexts of all nodes. A mapping may have tables, whose
        keys are joined by dots, as in Flower. The path of an application's folder: the
        configuration in the folder's pyproject.toml.

    Raises
    ------
    ParameterError
        A configuration has a key that is no str, or a value that Flower cannot send.

    Attributes
    ----------
    contexts : dict of int to Context
        Contexts of the nodes.
    replies : list of Message
        All replies of nodes so far, as the SuperLink has them.
    """

    def __init__(
        self,
        app: ClientApp,
        nodes: Mapping[int, UserConfig],
        run_id: int = 1,
        *,
        run_config: Mapping[str, object] | str | Path | None = None,
    ) -> None:
        run = Run.create_empty(run_id)
        run.override_config = _flat(run_config)
        for node, config in nodes.items():
            _check_config(f"the configuration of node {node}", config, tables=False)
        own = {node: dict(config) for node, config in nodes.items()}
        if not all(FOLDER_KEY in config for config in own.values()):
            # the folder of Flower remembers the sums and bounds of all earlier grids
            folder = mkdtemp(prefix="secagg-nodes-")
            finalize(self, rmtree, folder, ignore_errors=True)
            for config in own.values():
                config.setdefault(FOLDER_KEY, folder)
        self.contexts = {
            node: Context(run_id, node, config, RecordDict(), dict(run.override_config))
            for node, config in own.items()
        }
        self.replies: list[Message] = []
        self._app = app
        self._drops: dict[int, int] = {}
        self._received = dict.fromkeys(nodes, 0)
        self._ids = itertools.count(1)
        self._waiting: dict[str, Message] = {}
        self.set_run(run)

    def drop(self, node: int, after: int = 0) -> None:
        """Let a node answer `after` more messages, ≥ 0, and none after these.

        Raises
        ------
        ParameterError
            The grid has no such node, or `after` is no such number.
        """
        if node not in self._received:
            known = ", ".join(str(one) for one in self._received) or "none"
            raise ParameterError(f"this grid has no node {node!r}; its nodes are {known}")
        check_integer("after", after, 0, 1 << 53)
        self._drops[node] = self._received[node] + after

    def set_run(self, run: Run) -> None:
        """Set the run, also as that of this process, which Flower's messages need."""
        self._run = run
        TaskIdentity.run_id, TaskIdentity.node_id = run.run_id, _SUPERLINK
        TaskIdentity.task_id = 1

    @property
    def run(self) -> Run:
        """Run of the grid."""
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Return a new message."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of all nodes, also of those that have dropped out."""
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Run the apps of the messages' nodes and keep their replies."""
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = f"message {next(self._ids)}"
            ids.append(message.metadata.message_id)
            reply = self.deliver(message)
            if reply is not None:
                self._waiting[ids[-1]] = reply
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies that have come to these messages, each once."""
        return [self._waiting.pop(name) for name in message_ids if name in self._waiting]

    def expects(self, message_ids: Iterable[str]) -> bool:
        """Return True if a reply to any of these messages has still to be pulled."""
        return any(name in self._waiting for name in message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Push messages and pull their replies."""
        return self.pull_messages(self.push_messages(messages))

    def deliver(self, message: Message) -> Message | None:
        """Return a node's reply to a message, or None if it never comes.

        A test can override this to lose, alter or repeat messages.
        """
        node = message.metadata.dst_node_id
        self._received[node] += 1
        if self._received[node] > self._drops.get(node, self._received[node]):
            lost = Message(Error(_UNAVAILABLE, "Node Unavailable"), reply_to=message)
            lost.metadata.__dict__["_src_node_id"] = _SUPERLINK
            return lost
        reply = self.answer(message)
        self.replies.append(reply)
        return reply

    def answer(self, message: Message) -> Message:
        """Return the reply of the message's node; its Context has then changed."""
        node = message.metadata.dst_node_id
        received = message_from_proto(message_to_proto(message))
        context = context_from_proto(context_to_proto(self.contexts[node]))

        def name(record: logging.LogRecord) -> bool:
            record.msg = f"node {node}: {record.msg}"
            return True

        logger.addFilter(name)
        try:
            reply = self._app(received, context)
        except Exception as error:
            reply = Message(Error(_RAISED, f"{type(error)}:<'{error}'>"), reply_to=received)
        finally:
            logger.removeFilter(name)
        self.contexts[node] = context_from_proto(context_to_proto(context))
        return message_from_proto(message_to_proto(reply))


def _flat(given: Mapping[str, object] | str | Path | None) -> UserConfig:
    """Return a run's configuration as Flower has it in Contexts."""
    try:
        if isinstance(given, str | Path):
            return get_fused_config_from_dir(Path(given), {})
        check_kind("run_config", given or {}, Mapping, "a mapping, or an application's folder")
        _check_config("run_config", given or {}, tables=True)
        return flatten_dict(dict(given or {}))
    except ParameterError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise ParameterError(
            f"run_config is {given!r}, and Flower cannot read it ({error}); pass numbers, "
            'texts and booleans by name, such as {"local-epochs": 1}, or the folder with the '
            "application's pyproject.toml"
        ) from None


def _check_config(name: str, given: Mapping[str, object], *, tables: bool) -> None:
    """Raise `ParameterError` for a key or a value that Flower's messages cannot have."""
    entries: list[tuple[object, object]] = [*given.items()]
    for key, value in entries:
        if not isinstance(key, str):
            raise ParameterError(f"{name} has the key {key!r}; keys must be str")
        if isinstance(value, dict) and tables:
            _check_config(f"{name}[{key!r}]", value, tables=True)
        elif not _is_sent(key) or not _is_sent(value):
            raise ParameterError(
                f"{name} has a value of type {type(value).__name__} for {key!r} that Flower "
                "cannot send; pass a bool, a float, an int of 64 bits, or a str of UTF-8"
            )


def _is_sent(value: object) -> bool:
    """Return True for a value that Flower's protobuf can have."""
    if isinstance(value, str):
        return value.encode(errors="replace") == value.encode(errors="surrogatepass")
    if isinstance(value, int):  # or a bool
        return -(1 << 63) <= value < 1 << 63
    return isinstance(value, float)


class LocalHelper:
    """Helper of one-shot sums in the process of the server, for tests only.

    Parameters
    ----------
    journal : HelperJournal
    registry : Registry, optional
        Public keys of all clients, if the sums are "active".
    min_clients, policy
        Demands on every sum; see `secagg.oneshot.Helper`.
    """

    def __init__(
        self,
        journal: HelperJournal,
        *,
        registry: Registry | None = None,
        min_clients: int | None = None,
        policy: OneShotPolicy | None = None,
    ) -> None:
        self.public = journal.public
        self._new_helper = partial(
            Helper, journal=journal, registry=registry, min_clients=min_clients, policy=policy
        )

    def __repr__(self) -> str:
        return f"<LocalHelper {self.public[1].hex()[:8]}>"

    @asynccontextmanager
    async def reach(self, params: OneShotParams) -> AsyncIterator[LocalLink]:
        """Yield a link to the helper, which has endorsed the parameters."""
        yield LocalLink(self._new_helper(params))


class LocalLink(SessionHelper):
    """Link to a helper that has endorsed the parameters.

    Attributes
    ----------
    endorsement : bytes
    """

    def __init__(self, helper: Helper) -> None:
        super().__init__(helper)
        self.endorsement = helper.endorse()
