"""Exchanges with nodes: the server pushes the tasks and pulls the replies.

Members of a `Session` call the server, each as a known client. Nodes differ, so this class
takes the place of the session's `Desk`, and the same `Attempt` and `Batch` drive this class:

- A Grid calls nobody, and calls of a Grid block. No member is present, waits or is gathered.
- In active sums a node's first reply shows which client the node is, and nothing else does.
- A node takes each number of a sum once and keeps no vector. A run ends with the ServerApp.
  So there is one attempt at a sum, and no folder: a strategy's next round is the next attempt.
- The events of a session have neither a node's reason nor the class of the node's error. This
  class logs the reasons, and counts the errors for the error of the sum.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping

from flwr.app import Error, Message, RecordDict
from flwr.serverapp import Grid

from secagg._printable import printable
from secagg.errors import (
    BudgetSpent,
    LinkError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.flower.grid import FixedNodes, Prepared
from secagg.flower.wire import (
    ERROR,
    NO_PROTOCOL,
    RAISED,
    RECORD,
    REFUSED,
    TRAINING,
    Task,
    read_answer,
    task_record,
    violation,
)
from secagg.oneshot import OneShotParams, messages
from secagg.protocol import Registry, RoundParams
from secagg.protocol.messages import AdvertiseKeys, decode
from secagg.session import Clock
from secagg.session.events import Hooks
from secagg.session.exchange import Calls, Exchange, Exchanges
from secagg.session.outcomes import reason

logger = logging.getLogger("flwr.secagg")

_TTL_SLACK = 30.0
"""Seconds that a message outlives the exchange, so that the reply can still be pulled."""
_LONGEST = 64
"""Most characters of a class's name in the error of a sum; a node chooses that name."""
_FOREIGN = "without the protocol"


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
    poll : float
        Seconds between two pulls, > 0.

    Attributes
    ----------
    errors : list of Message
        Replies of nodes or of the SuperLink that are errors.
    lost : Counter of str
        Number of nodes that have dropped out, by the kind of the error in words.
    """

    def __init__(
        self,
        grid: Grid,
        prepared: Prepared,
        params: RoundParams | OneShotParams,
        registry: Registry | None,
        poll: float,
        clock: Clock = _CLOCK,
    ) -> None:
        super().__init__(prepared.place, Calls(), Hooks(()), clock)
        self._grid, self._prepared, self._params = grid, prepared, params
        self._registry, self._poll = registry, poll
        self._nodes: dict[int, int] = {}  # by client, from the first reply on
        self.errors: list[Message] = []
        self.lost: Counter[str] = Counter()

    def explained(self, error: TooFewSurvivors, fewest: str) -> TooFewSurvivors:
        """Return the error of the sum with the kinds of dropouts and the remedies.

        `fewest` is the strategy's argument for the number of nodes that must stay.
        """
        why, hint = reason(error), ""
        if f"with {ParameterError.__name__}" in self.lost:
            why = why.partition("; ")[0]  # neither time nor more nodes help against a refusal
            hint = (
                "; with ParameterError: other bounds than at its first sum, or its policy, "
                "such as a min_clients above that of the sum"
            )
        if f"with {BudgetSpent.__name__}" in self.lost:
            hint += (
                "; with BudgetSpent: its budget has no room for a sum with this noise, so end "
                "the training, or add more noise"
            )
        if self.lost:
            lost = ", ".join(f"{count:,} {how}" for how, count in self.lost.items())
            why = (
                f"nodes dropped out ({lost}; the reason for an error is in the node's own log"
                f"{hint}), and {why}"
            )
        return TooFewSurvivors(
            f"{why}; {fewest} of the strategy says how many must stay, and with "
            'on_failure="skip" the run goes on without this round',
            phase=error.phase,
            survivors=error.survivors,
            needed=error.needed,
            verdicts=error.verdicts,
            disputes=error.disputes,
        )

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
            if not waiting or remaining <= 0:
                break
            if isinstance(self._grid, FixedNodes) and not self._grid.expects(waiting):
                break
            await self._clock.sleep(min(self._poll, remaining))
        for node in sorted(waiting.values()):
            self._drop(node, "it did not reply in time", "without a reply in time")

    def _push(
        self, exchange: Exchange, clients: Mapping[int, int], seconds: float
    ) -> dict[str, int]:
        """Push the tasks of clients, by node; return the nodes by ids of messages."""
        phase, training = exchange.phase, exchange.phase in TRAINING
        plan = self._prepared.plan if training else b""
        messages = []
        for node, client in clients.items():
            task = Task(phase, self._params.to_bytes(), plan, exchange.task(client).data)
            own = self._prepared.own[node]
            # the records have the whole model, most of a round's bytes, for the training only
            records = {**own.content} if training else {}
            messages.append(
                Message(
                    RecordDict({**records, RECORD: task_record(task)}),
                    own.metadata.dst_node_id,
                    own.metadata.message_type,
                    ttl=seconds + _TTL_SLACK,
                    group_id=own.metadata.group_id,
                )
            )
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
            self._drop(node, "it is not connected", "without a connection")
        return waiting

    def _take(
        self, exchange: Exchange, client: int, known: bool, node: int, reply: Message
    ) -> None:
        """Take a reply to the message of a node; a node with an invalid reply drops out."""
        # before the sender's check: the SuperLink itself sends the error of a lost node
        if reply.has_error():
            self._drop(node, *_error_in_words(reply.error))
            self.errors.append(reply)
            self._decline(exchange, client)
            return
        phase, data = exchange.phase, b""
        try:
            if (sender := reply.metadata.src_node_id) != node:
                raise violation(phase, "sender", f"node {sender} replied for it", node)
            data = read_answer(reply.content, large=phase in TRAINING, sender=node, phase=phase)
            found = client if known else self._identify(node, phase, data)
            exchange.receive(found, data)
        except RemoteProtocolError as error:
            foreign = error.check == "record"
            self._drop(node, str(error), _FOREIGN if foreign else "with an invalid reply")
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
            raise violation(phase, "unknown client", "its identity is not registered", node)
        if client in self._nodes:
            why = f"node {self._nodes[client]} has the same identity; make one for each node"
            raise violation(phase, "duplicate identity", why, node)
        return client

    def _drop(self, node: int, why: str, how: str) -> None:
        """Log why a node drops out, and count the node by the kind of the error, in words."""
        # `why` can be the text of a node, which could forge lines of the log
        logger.warning("secagg: node %d drops out: %s", node, printable(why))
        self.lost[how] += 1


def _error_in_words(error: Error) -> tuple[str, str]:
    """Return the text of a node's or the SuperLink's error, and the kind of the error."""
    text = error.reason or ""
    name = text.removeprefix(ERROR)
    if error.code not in (RAISED, REFUSED):  # of Flower itself, such as a lost node
        return text, f"with Flower's error {error.code}"
    if name == text:
        return f"{text}; {NO_PROTOCOL}", _FOREIGN
    # the error of the sum repeats a name at most: a node could write anything else there
    if error.code == RAISED and name.isidentifier() and len(name) <= _LONGEST:
        return text, f"with {name}"
    return text, "with a refusal"
