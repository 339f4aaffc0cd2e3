"""Sums over nodes: the server's side of the four exchanges, for one batch of messages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from secagg import FixedPoint, Registry, RoundParams, RoundResult, graph
from secagg.errors import ParameterError
from secagg.flower.exchange import exchange
from secagg.flower.nodes import NodeServer
from secagg.flower.vectors import Layout
from secagg.flower.wire import (
    PREFIX,
    RECORD,
    Plan,
    Task,
    content_digest,
    run_name,
    task_record,
    write_plan,
)
from secagg.protocol import Phase
from secagg.protocol.params import Security
from secagg.session.wire import AttemptName, write_name

__all__ = ["Settings", "Sum", "sum_replies"]

_MOST_COMPLETE = 100
"""Number of nodes up to which all share secrets with all, unless the settings say otherwise."""
_TTL_SLACK = 30.0
"""Seconds that a message outlives its exchange, so that its reply can still be pulled."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Parameters of the sums of a run; `SecAgg` documents them."""

    encoding: FixedPoint
    max_weight: int
    threshold: int | None
    neighbours: int | None
    security: Security
    registry: Registry | None
    key_timeout: float
    poll: float


class Sum(NamedTuple):
    """Outcome of a sum: its result, where its elements are, and the errors of nodes."""

    result: RoundResult
    layout: Layout
    errors: list[Message]


def sum_replies(
    grid: Grid,
    batch: Sequence[Message],
    plan: Plan,
    settings: Settings,
    *,
    number: int,
    timeout: float,
) -> Sum:
    """Return the sum of what the nodes reply to a batch, without any single reply.

    Parameters
    ----------
    grid : Grid
    batch : sequence of Message
        Messages of the strategy, one for each node, all with the same content.
    plan : Plan
    settings : Settings
    number : int
        Number of the sum, above those of all earlier ones of the run.
    timeout : float
        Seconds for the exchange in which the nodes train.

    Raises
    ------
    ParameterError
        The messages differ or have a record of the protocol's name, a node has two of them, or
        the parameters do not fit the model or the number of nodes.
    TooFewSurvivors, RemoteProtocolError
        The sum failed; see `Server.close_round`. Nothing has been unmasked.
    LinkError
        The SuperLink took no message.
    """
    own = {message.metadata.dst_node_id: message for message in batch}
    first, packed = batch[0], write_plan(plan)
    digest = content_digest(first, packed)
    _check_batch(batch, own, digest, packed)
    layout = Layout(plan, first.content, settings.encoding.clip)
    name = AttemptName(run_name(grid.run.run_id), number, 0, os.urandom(8), digest)
    params = _params(len(own), layout.length, settings, write_name(PREFIX, name))
    server = NodeServer(params, settings.registry)
    answers = dict.fromkeys(own, b"")
    errors: list[Message] = []
    while answers:
        large = server.phase is Phase.MASKED_INPUT
        seconds = timeout if large else settings.key_timeout
        task = Task(server.phase, params.to_bytes(), packed if large else b"", b"")
        messages = {
            node: _message(own[node], task._replace(data=data), seconds)
            for node, data in answers.items()
        }
        found = exchange(grid, messages, seconds, settings.poll)
        errors += found.errors
        for node, reply in found.replies.items():
            server.receive(node, reply)
        answers = server.close_round()
    return Sum(server.result(), layout, errors)


def _check_batch(
    batch: Sequence[Message], own: Mapping[int, Message], digest: bytes, plan: bytes
) -> None:
    if len(own) != len(batch):
        raise ParameterError("a node has two messages of one round; send one to each node")
    if RECORD in batch[0].content:
        raise ParameterError(f"the messages have a record {RECORD!r} of their own; rename it")
    shared = batch[0].content
    for message in batch[1:]:
        # most strategies send one object; a digest reads the whole model
        same = message.content is shared and _kind(message) == _kind(batch[0])
        if not same and content_digest(message, plan) != digest:
            raise ParameterError(
                "the strategy sends nodes different messages, and their replies cannot be "
                "averaged in one sum; send all nodes the same content"
            )


def _kind(message: Message) -> tuple[str, str]:
    return message.metadata.message_type, message.metadata.group_id


def _params(clients: int, length: int, settings: Settings, session: bytes) -> RoundParams:
    """Return the parameters of a sum, with the smallest modulus that its headroom allows."""
    threshold, neighbours = settings.threshold, settings.neighbours
    active = settings.security == "active"
    if threshold is None:
        threshold = (2 * clients // 3 if active else clients // 2) + 1
        if clients > _MOST_COMPLETE and not active:
            neighbours, threshold = graph.recommend(clients, 0.05, 0.05)
    encoding, weight = settings.encoding, settings.max_weight
    # 2^b > 2 · n · W · M for the sums, and > n · d for the number of clipped elements
    largest = clients * max(2 * weight * encoding.max_encoded, length)
    return RoundParams(
        n_clients=clients,
        threshold=threshold,
        neighbours=neighbours,
        length=length,
        encoding=encoding,
        modulus_bits=min(largest.bit_length(), 64),
        max_weight=weight,
        session=session,
        count_clipped=True,
        security=settings.security,
    )


def _message(own: Message, task: Task, seconds: float) -> Message:
    """Return the message of a task to a node, with the strategy's records where it trains."""
    content = RecordDict({RECORD: task_record(task)})
    if task.phase is Phase.MASKED_INPUT:
        content = RecordDict({**own.content, **content})
    metadata = own.metadata
    return Message(
        content,
        metadata.dst_node_id,
        metadata.message_type,
        ttl=seconds + _TTL_SLACK,
        group_id=metadata.group_id,
    )
