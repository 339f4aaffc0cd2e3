"""Grid that replaces a batch of messages to nodes by a secure sum with one reply.

A session names an attempt by a digest of one message's bytes. Nodes also agree on the run's
configuration and on type and group of the message, so sums over nodes have other names.
"""

from __future__ import annotations

import itertools
import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from flwr.app import Message, MetricRecord, RecordDict
from flwr.common.config import get_fused_config
from flwr.serverapp import Grid

from secagg import Bounded, FixedPoint, RoundResult
from secagg.errors import BudgetSpent, ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.flower.vectors import Layout, check_finite, clip_of
from secagg.flower.wire import (
    CLIPPED_NODES,
    MISSING,
    PREFIX,
    RECORD,
    Plan,
    content_digest,
    run_name,
)
from secagg.protocol import Phase
from secagg.session import Place
from secagg.session.wire import REPORT, AttemptName, write_name

if TYPE_CHECKING:
    from flwr.supercore.run import Run


logger = logging.getLogger("flwr.secagg")

CLIPPED = "secagg-clipped"
"""Key of the number of clipped elements in the metrics of a round."""
CLIPPED_VECTORS = "secagg-clipped-vectors"
"""Key of the number of nodes whose update was longer than the norm, with noise."""
FEWEST = 3
"""Smallest number of clients of a sum, unless the settings of the run have another number."""
_NUMBERS = itertools.count(1)  # of all sums of this process, so of all that a run can have


class FixedNodes(Grid):
    """Grid in one process: no node joins later, and a reply is known to come or not."""

    @abstractmethod
    def expects(self, message_ids: Iterable[str]) -> bool:
        """Return True if a reply to any of these messages has still to be pulled."""


@dataclass(frozen=True, kw_only=True)
class Averages:
    """Contents of the vectors that a strategy averages; see `SecAgg`.

    Attributes
    ----------
    phase : str
        First phase of the protocol.
    least : int
        Smallest number of nodes of a sum.
    weighted : bool
        False: the mean is unweighted, and `weight` is the strategy's key only.
    """

    encoding: FixedPoint | Bounded
    phase: str
    least: int
    weight: str
    weighted: bool
    exclude: tuple[str, ...]
    train: Mapping[str, float]
    evaluate: Mapping[str, float]
    on_failure: Literal["raise", "skip"]


class Prepared(NamedTuple):
    """Batch of equal messages to different nodes.

    Attributes
    ----------
    own : mapping of int to Message
        The strategy's messages, by the id of the node.
    plan : bytes
        Plan of the sum, in MessagePack.
    layout : Layout
    session : bytes
        ``params.session`` of the sum: run, number and digest of the message.
    place : Place
        Place of the sum in events and in the log of `secagg.session`.
    """

    own: Mapping[int, Message]
    plan: bytes
    layout: Layout
    session: bytes
    place: Place


Summing = Callable[[Grid, Prepared, float], tuple[RoundResult, list[Message]]]
"""Function that returns the sum of the replies to a batch, and the errors of nodes.

The last argument is the time in seconds for the exchange in which the nodes train. The function
sees no single reply. `SecureGrid.send_and_receive` lists the errors.
"""


class SecureGrid(Grid):
    """Grid around a ServerApp's Grid that answers train messages by one reply, the mean.

    `SecAgg.start` and `OneShot.start` make this grid. Messages outside of sums, such as
    queries, pass unchanged. All other methods are the methods of the ServerApp's Grid.

    Parameters
    ----------
    grid : Grid
        Grid of the ServerApp.
    summing : callable
        `Summing` of the protocol.
    averages : Averages
    """

    def __init__(self, grid: Grid, summing: Summing, averages: Averages) -> None:
        self._grid, self._summing, self._averages = grid, summing, averages

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Return one reply with the mean of the nodes' replies, and the errors of nodes.

        Parameters
        ----------
        messages : iterable of Message
            Messages of one kind, with the same content for all nodes.
        timeout : float, optional
            Seconds for the exchange in which the nodes train; an hour if None.

        Raises
        ------
        ParameterError
            The messages differ, or have a record of the protocol's name. A node has two
            messages, the model is not finite, or a sum of this model and number of nodes is
            impossible.
        TooFewSurvivors, RemoteProtocolError
            The sum failed, or the batch is too small for a sum, unless failures are to be
            skipped. Nothing has been unmasked, or the weights of all nodes are 0 ("weight").
        BudgetSpent
            The budget of the run has no room for this sum, unless failures are to be skipped.
        LinkError
            The SuperLink took no message.
        """
        batch, averages = list(messages), self._averages
        kinds = {message.metadata.message_type.partition(".")[0] for message in batch}
        trains = kinds == {"train"}
        metrics = averages.train if trains else averages.evaluate
        if "evaluate" in kinds:  # before any node gets the model; a sum checks it for training
            for record in batch[0].content.array_records.values():
                check_finite(record, averages.exclude)
        if "train" not in kinds and (kinds != {"evaluate"} or not metrics):
            return self._grid.send_and_receive(batch, timeout=timeout)
        model = None
        if trains:
            found = list(batch[0].content.array_records)
            if len(found) != 1:
                raise ParameterError(
                    f"a train message has {len(found)} ArrayRecords, and the update of one is "
                    "summed; send the global model alone"
                )
            model = found[0]
        computed = {MISSING + name: 1.0 for name in metrics}
        # reports have no number of clipped elements, and this metric would have noise
        if averages.phase == REPORT and averages.weighted:
            computed[CLIPPED_NODES] = 1.0
        plan = Plan(
            averages.weight if averages.weighted else None,
            model,
            averages.exclude if trains else (),
            (*metrics.items(), *computed.items()),
        )
        try:
            # a failed sum spends its number, too: nodes may have stored the number
            prepared = self._prepare(batch, plan, next(_NUMBERS))
            seconds = 3600.0 if timeout is None else timeout
            result, errors = self._summing(self._grid, prepared, seconds)
            if averages.weighted and not result.weight:
                raise RemoteProtocolError(
                    f"the weights {plan.weight!r} of {len(result.survivors)} nodes add up "
                    "to 0, so there is no mean: their trainings failed, or they have no "
                    "examples; the reason is in each node's own log",
                    sender=None,
                    phase=Phase.FINISHED,
                    check="weight",
                )
        except (BudgetSpent, TooFewSurvivors, RemoteProtocolError) as error:
            if averages.on_failure == "raise":
                raise
            logger.warning("secagg: this round has no result: %s", error)
            return []
        return [_reply(batch[0], averages.weight, plan, prepared.layout, result), *errors]

    def _prepare(self, batch: Sequence[Message], plan: Plan, number: int) -> Prepared:
        """Return a batch with the name of the sum; see `send_and_receive` for the errors."""
        first, least = batch[0], self._averages.least
        if len(batch) < least:
            kind = first.metadata.message_type.partition(".")[0]
            raise TooFewSurvivors(
                f"the strategy sampled {len(batch)} nodes, and a sum needs {least}; pass it "
                f"min_{kind}_nodes={least} or more: with min_available_nodes alone it samples "
                "from the nodes that were connected before",
                phase=self._averages.phase,
                survivors=len(batch),
                needed=least,
            )
        own = {message.metadata.dst_node_id: message for message in batch}
        if len(own) != len(batch):
            raise ParameterError("a node has two messages of one round; send one to each node")
        if RECORD in first.content:
            raise ParameterError(
                f"the messages have a record {RECORD!r} of their own; rename it"
            )
        run = self._grid.run
        # as in the nodes' Contexts; a run without an app, as in LocalGrid, has overrides only
        config = get_fused_config(run) if run.fab_id else dict(run.override_config)
        packed = msgspec.msgpack.encode(plan)
        digest = content_digest(first, packed, config)
        for message in batch[1:]:
            # most strategies send one object; a digest reads the whole model
            same = (
                message.content is first.content
                and message.metadata.message_type == first.metadata.message_type
                and message.metadata.group_id == first.metadata.group_id
            )
            if not same and content_digest(message, packed, config) != digest:
                raise ParameterError(
                    "the strategy sends nodes different messages, and their replies cannot be "
                    "averaged in one sum; send all nodes the same content"
                )
        layout = Layout(plan, first.content, clip_of(self._averages.encoding))
        # random bytes: run ids of a LocalGrid repeat, and no two sums may have the same session
        name = AttemptName(run_name(run.run_id), number, 0, os.urandom(8), digest)
        place = Place(f"flower {run.run_id}", number, name.attempt)
        return Prepared(own, packed, layout, write_name(PREFIX, name), place)

    @property
    def run(self) -> Run:
        """Run of the ServerApp."""
        return self._grid.run

    def set_run(self, run: Run) -> None:
        """Set the run of the ServerApp's Grid."""
        self._grid.set_run(run)

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Return a new message; see Flower's Grid."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of the nodes that are connected."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Push messages unchanged; nodes with a mod of this package refuse to train."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to pushed messages."""
        return self._grid.pull_messages(message_ids)

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the ServerApp's Grid that Flower's Grid does not declare."""
        return getattr(self._grid, name)


def _reply(
    message: Message, key: str, plan: Plan, layout: Layout, result: RoundResult
) -> Message:
    """Return the mean of a sum as the reply to a message of the sum; `key` is the weight's."""
    arrays, metrics = layout.restored(result.mean)
    nodes = len(result.survivors)
    if plan.weight is None:
        logger.info(
            "secagg: summed the replies of %d nodes, without weights; a node whose training "
            "failed is one of them, with zeros, and only its own log says so",
            nodes,
        )
    else:
        logger.info(
            "secagg: summed the replies of %d nodes, whose weights %r add up to %d; a node "
            "whose training failed is one of them, with the weight 0, and only its own log "
            "says so",
            nodes,
            key,
            result.weight,
        )
    # strategies divide by the weight
    weight = nodes if plan.weight is None else result.weight
    measured = MetricRecord({key: weight or 0, **metrics})
    if result.clipped is not None:
        measured[CLIPPED] = result.clipped
    if result.clipped_vectors is not None:
        measured[CLIPPED_VECTORS] = result.clipped_vectors
    if result.clipped:
        logger.warning(
            "secagg: clipped elements: %d, of %d nodes, with lowered weights and missing "
            "metrics; raise clip, max_weight or a bound of metrics",
            result.clipped,
            nodes,
        )
    if metrics.get(CLIPPED_NODES, 0.0) > 0:
        logger.warning(
            "secagg: nodes with %.3g %% of the weight clipped elements, lowered their weight "
            "or lack a metric; raise clip, max_weight or a bound of metrics",
            100 * metrics[CLIPPED_NODES],
        )
    content = RecordDict({"metrics": measured})
    if plan.arrays is not None:
        content[plan.arrays] = arrays
    return Message(content, reply_to=message)
