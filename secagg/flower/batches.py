"""Batches of a strategy's messages: the common part of the sums of both protocols.

A session names an attempt by a digest of one message's bytes. Nodes also agree on the run's
configuration and on type and group of the message, so sums over nodes have other names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from flwr.app import Message, RecordDict, UserConfig
from flwr.serverapp import Grid

from secagg import FixedPoint, RoundResult
from secagg.errors import ParameterError, TooFewSurvivors
from secagg.flower.runs import run_config
from secagg.flower.vectors import Layout
from secagg.flower.wire import (
    PREFIX,
    RECORD,
    TRAINING,
    Plan,
    Task,
    content_digest,
    run_name,
    task_record,
    write_plan,
)
from secagg.session import Place
from secagg.session.wire import AttemptName, write_name

FEWEST = 3
"""Smallest number of clients of a sum, unless the settings of the run have another number."""
_TTL_SLACK = 30.0
"""Seconds that a message outlives the exchange, so that the reply can still be pulled."""


class Sum(NamedTuple):
    """Outcome of a sum: the result, the places of the elements, and the errors of nodes."""

    result: RoundResult
    layout: Layout
    errors: list[Message]


class Summing(Protocol):
    """Function that sums the nodes' replies to a batch, without seeing any single reply."""

    def __call__(
        self, grid: Grid, batch: Sequence[Message], plan: Plan, *, number: int, timeout: float
    ) -> Sum:
        """Return the sum.

        Parameters
        ----------
        grid : Grid
        batch : sequence of Message
            Messages of the strategy, one for each node, all with the same content.
        plan : Plan
        number : int
            Number of the sum, above the numbers of all earlier sums of the run.
        timeout : float
            Seconds for the exchange in which the nodes train.

        Raises
        ------
        ParameterError
            The messages differ, or have a record of the protocol's name. A node has two
            messages, or the parameters do not fit the model or the number of nodes.
        TooFewSurvivors, RemoteProtocolError
            The sum failed, or the batch is too small for a sum. Nothing has been unmasked,
            except after an impossible sum.
        LinkError
            The SuperLink took no message.
        """
        ...


class Prepared(NamedTuple):
    """Batch of equal messages to different nodes.

    Attributes
    ----------
    own : mapping of int to Message
        The strategy's messages, by the id of the node.
    plan : bytes
        `write_plan` of the sum's plan.
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


def prepare(
    grid: Grid,
    batch: Sequence[Message],
    plan: Plan,
    encoding: FixedPoint,
    number: int,
    *,
    least: int,
    phase: str,
) -> Prepared:
    """Return a batch of `least` nodes or more with the name of the sum.

    See `Summing` for the errors; `phase` is the first phase of the protocol.
    """
    if len(batch) < least:
        kind = batch[0].metadata.message_type.partition(".")[0]
        raise TooFewSurvivors(
            f"the strategy sampled {len(batch)} nodes, and a sum needs {least}; pass it "
            f"min_{kind}_nodes={least} or more: with min_available_nodes alone it samples from "
            "the nodes that were connected before",
            phase=phase,
            survivors=len(batch),
            needed=least,
        )
    own = {message.metadata.dst_node_id: message for message in batch}
    first, packed, config = batch[0], write_plan(plan), run_config(grid)
    digest = content_digest(first, packed, config)
    _check(batch, own, digest, packed, config)
    layout = Layout(plan, first.content, encoding.clip)
    # random bytes: run ids of a LocalGrid repeat, and no two sums may have the same session
    name = AttemptName(run_name(grid.run.run_id), number, 0, os.urandom(8), digest)
    place = Place(f"flower {grid.run.run_id}", number, name.attempt)
    return Prepared(own, packed, layout, write_name(PREFIX, name), place)


def message_to(own: Message, task: Task, seconds: float) -> Message:
    """Return the message of a task to a node, with the strategy's records for a training."""
    content = RecordDict({RECORD: task_record(task)})
    # the records have the whole model, most of a round's bytes, which no other phase reads
    if task.phase in TRAINING:
        content = RecordDict({**own.content, **content})
    metadata = own.metadata
    return Message(
        content,
        metadata.dst_node_id,
        metadata.message_type,
        ttl=seconds + _TTL_SLACK,
        group_id=metadata.group_id,
    )


def _check(
    batch: Sequence[Message],
    own: Mapping[int, Message],
    digest: bytes,
    plan: bytes,
    config: UserConfig,
) -> None:
    if len(own) != len(batch):
        raise ParameterError("a node has two messages of one round; send one to each node")
    if RECORD in batch[0].content:
        raise ParameterError(f"the messages have a record {RECORD!r} of their own; rename it")
    shared = batch[0].content
    for message in batch[1:]:
        # most strategies send one object; a digest reads the whole model
        same = message.content is shared and _kind(message) == _kind(batch[0])
        if not same and content_digest(message, plan, config) != digest:
            raise ParameterError(
                "the strategy sends nodes different messages, and their replies cannot be "
                "averaged in one sum; send all nodes the same content"
            )


def _kind(message: Message) -> tuple[str, str]:
    return message.metadata.message_type, message.metadata.group_id
