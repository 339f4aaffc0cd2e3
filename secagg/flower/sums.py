"""Sums over nodes: the server's side of the four exchanges, for one batch of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

from secagg import ClientPolicy, FixedPoint, Registry, RoundParams, TooFewSurvivors
from secagg.flower.batches import FEWEST, Sum, message_to, prepare
from secagg.flower.dropouts import dropouts
from secagg.flower.exchange import exchange
from secagg.flower.nodes import NodeServer
from secagg.flower.wire import Plan, Task
from secagg.protocol import Phase
from secagg.protocol.shape import Security


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


def sum_replies(
    grid: Grid,
    batch: Sequence[Message],
    plan: Plan,
    settings: Settings,
    *,
    number: int,
    timeout: float,
) -> Sum:
    """Return the sum of what the nodes reply to a batch; see `Summing`."""
    least = max(FEWEST, settings.threshold or 0, (settings.neighbours or 0) + 1)
    phase = Phase.ADVERTISE_KEYS
    prepared = prepare(grid, batch, plan, settings.encoding, number, least=least, phase=phase)
    own, layout = prepared.own, prepared.layout
    params = _params(len(own), layout.length, settings, prepared.session)
    with dropouts("threshold=") as lost:
        server = NodeServer(params, settings.registry, lost)
        answers = dict.fromkeys(own, b"")
        errors: list[Message] = []
        while answers:
            large = server.phase is Phase.MASKED_INPUT
            seconds = timeout if large else settings.key_timeout
            packed = prepared.plan if large else b""
            task = Task(server.phase, params.to_bytes(), packed, b"")
            messages = {
                node: message_to(own[node], task._replace(data=data), seconds)
                for node, data in answers.items()
            }
            found = exchange(grid, messages, lost, seconds, settings.poll)
            errors += found.errors
            for node, reply in found.replies.items():
                server.receive(node, reply)
            first = server.phase is Phase.ADVERTISE_KEYS
            answers = server.close_round()
            if first:
                _check_cohort(params, len(answers))
    return Sum(server.result(), layout, errors)


def _check_cohort(params: RoundParams, size: int) -> None:
    """Raise `TooFewSurvivors` if nodes with the default policy reject a cohort so small.

    They would reject it one by one, each in its own log.
    """
    needed = ClientPolicy().smallest_cohort(params)
    if size < needed:
        raise TooFewSurvivors(
            f"{size} of {params.n_clients} nodes sent keys, and on this graph nodes with the "
            f"default policy take part with {needed} or more; for room take a larger threshold "
            f"than {params.threshold}, or more neighbours than {params.neighbours}",
            phase=Phase.ADVERTISE_KEYS,
            survivors=size,
            needed=needed,
        )


def _params(clients: int, length: int, settings: Settings, session: bytes) -> RoundParams:
    """Return the parameters of a sum; a threshold without neighbours is of all nodes."""
    return RoundParams.suggest(
        clients,
        length,
        settings.encoding,
        security=settings.security,
        max_weight=settings.max_weight,
        neighbours="auto" if settings.threshold is None else settings.neighbours,
        threshold=settings.threshold,
        session=session,
        count_clipped=True,
    )
