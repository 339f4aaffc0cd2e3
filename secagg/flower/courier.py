"""Exchanges with nodes: the server pushes the tasks and pulls the replies.

Members of a `Session` call the server, each as a known client. Nodes differ, so this class
takes the place of the session's `Desk`, and the same `Attempt` and `Batch` drive this class:

- A Grid calls nobody, and calls of a Grid block. No member is present, waits or is gathered.
- In active sums a node's first reply shows which client the node is, and nothing else does.
- A node takes each number of a sum once and keeps no vector. A run ends with the ServerApp.
  So there is one attempt at a sum, and no folder: a strategy's next round is the next attempt.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from flwr.app import Message
from flwr.serverapp import Grid

from secagg.errors import LinkError, RemoteProtocolError
from secagg.flower.batches import Prepared, message_to
from secagg.flower.dropouts import Dropouts
from secagg.flower.fixed_nodes import FixedNodes
from secagg.flower.wire import TRAINING, Task, read_answer
from secagg.oneshot import OneShotParams, messages
from secagg.protocol import Registry, RoundParams
from secagg.protocol.messages import AdvertiseKeys, decode
from secagg.session import Clock
from secagg.session.events import Hooks
from secagg.session.exchange import Exchange, Exchanges
from secagg.session.thread import Calls


async def _block(seconds: float) -> None:
    time.sleep(seconds)


_CLOCK = Clock(sleep=_block)
"""Clock with a blocking sleep, like the calls of a Grid: `at_once` runs these exchanges."""


class Courier(Exchanges):
    """Exchanges of one sum over nodes. No coroutine of this class waits for an event loop.

    An exchange ends when all nodes have replied, or at the deadline, and has at least one pull.
    On `FixedNodes` the exchange ends earlier if no reply can come. A reply belongs to the node
    of the answered message. A reply with another sender is dropped. Errors are the exception,
    as the SuperLink sends errors for a node.

    Parameters
    ----------
    grid : Grid
    prepared : Prepared
        Messages of the strategy.
    params : RoundParams or OneShotParams
    registry : Registry or None
        Public keys of the nodes' identities, in active sums. The id of a client is then the id
        of the key, and no two nodes can have the same key. Without a registry the id of a
        client is the id of the node.
    lost : Dropouts
        Record of the nodes without a valid reply; the exchanges add to it.
    poll : float
        Seconds between two pulls, > 0.

    Attributes
    ----------
    errors : list of Message
        Replies of nodes or of the SuperLink that are errors.
    """

    def __init__(
        self,
        grid: Grid,
        prepared: Prepared,
        params: RoundParams | OneShotParams,
        registry: Registry | None,
        lost: Dropouts,
        poll: float,
        clock: Clock = _CLOCK,
    ) -> None:
        super().__init__(prepared.place, Calls(), Hooks(()), clock)
        self._grid, self._prepared, self._params = grid, prepared, params
        self._registry, self._lost, self._poll = registry, lost, poll
        self._nodes: dict[int, int] = {}  # by client, from the first reply on
        self.errors: list[Message] = []

    async def _collect(self, exchange: Exchange, seconds: float) -> None:
        """Push the tasks, and take the replies that come in time.

        LinkError is raised if the SuperLink took none of the messages ("push").
        """
        # the first exchange of an active sum has nodes' ids in place of the registry's ids
        known = self._registry is None or bool(self._nodes)
        clients = {self._nodes.get(u, u): u for u in sorted(exchange.clients)}
        waiting = self._push(exchange, clients, seconds)
        end = self._clock.now() + seconds
        while waiting:
            # before the deadline is looked at: replies of LocalGrid are there, even at 0 s
            for reply in self._grid.pull_messages(list(waiting)):
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                if node is not None:
                    self._take(exchange, clients[node], known, node, reply)
            remaining = end - self._clock.now()
            grid = self._grid
            lost_all = isinstance(grid, FixedNodes) and not grid.expects(waiting)
            if not waiting or remaining <= 0 or lost_all:
                break
            await self._clock.sleep(min(self._poll, remaining))
        for node in sorted(waiting.values()):
            self._lost.add(node, "it did not reply in time", "without a reply in time")

    def _push(
        self, exchange: Exchange, clients: Mapping[int, int], seconds: float
    ) -> dict[str, int]:
        """Push the tasks of clients, by node; return the nodes by ids of messages."""
        own, phase = self._prepared.own, exchange.phase
        plan = self._prepared.plan if phase in TRAINING else b""
        messages = []
        for node, client in clients.items():
            task = Task(phase, self._params.to_bytes(), plan, exchange.task(client).data)
            messages.append(message_to(own[node], task, seconds))
            self._take_task(exchange, client, sum(map(len, task)))
        ids = list(self._grid.push_messages(messages))
        if len(ids) != len(messages):  # Flower logs the reason: they are too large, for example
            raise LinkError(
                f"the SuperLink took {len(ids)} of {len(messages)} messages; see the log of "
                "the ServerApp, and send a smaller model if they are too large",
                check="push",
            )
        waiting = {pushed: node for pushed, node in zip(ids, clients, strict=True) if pushed}
        for node in sorted(clients.keys() - waiting.values()):
            self._lost.add(node, "it is not connected", "without a connection")
        return waiting

    def _take(
        self, exchange: Exchange, client: int, known: bool, node: int, reply: Message
    ) -> None:
        """Take a reply to the message of a node; a node with an invalid reply drops out."""
        # before the sender's check: the SuperLink itself sends the error of a lost node
        if reply.has_error():
            self._lost.add_error(node, reply.error)
            self.errors.append(reply)
            self._decline(exchange, client)
            return
        phase, data = exchange.phase, b""
        try:
            if (sender := reply.metadata.src_node_id) != node:
                raise _violation(node, phase, "sender", f"node {sender} replied for it")
            data = read_answer(reply.content, large=phase in TRAINING, sender=node, phase=phase)
            found = client if known else self._identify(node, phase, data)
            exchange.receive(found, data)
        except RemoteProtocolError as error:
            self._lost.add_invalid(node, error)
            self._reject(exchange, client, len(data), error)
        else:
            # after the signature was checked: a forged reply must not take a client's place
            self._nodes[found] = node
            self._accept_answer(exchange, client, len(data))

    def _identify(self, node: int, phase: str, data: bytes) -> int:
        """Return the client that a node's first message names, and that has to sign it."""
        params, registry = self._params, self._registry
        if isinstance(params, OneShotParams):
            client = messages.read_report(data, params).client_id
        else:
            client = decode(data, AdvertiseKeys, params, sender=node, phase=phase).sender
        if registry is None or client not in registry:
            raise _violation(node, phase, "unknown client", "its identity is not registered")
        if client in self._nodes:
            why = f"node {self._nodes[client]} has the same identity; make one for each node"
            raise _violation(node, phase, "duplicate identity", why)
        return client


def _violation(node: int, phase: str, check: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=node, phase=phase, check=check)
