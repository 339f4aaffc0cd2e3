"""One-shot sums over nodes: one exchange with them, then the helpers open the sum."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

from secagg import FixedPoint, Registry
from secagg.errors import RemoteProtocolError
from secagg.flower.batches import FEWEST, Sum, message_to, prepare
from secagg.flower.dropouts import Dropouts, dropouts
from secagg.flower.exchange import exchange
from secagg.flower.helpers import Endorsed, Reachable, endorsed, reached
from secagg.flower.wire import Plan, Task, read_answer
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.session.batch import Batch
from secagg.session.thread import Thread
from secagg.session.wire import REPORT


@dataclass(frozen=True, kw_only=True)
class OneShotSettings:
    """Parameters of the sums of a run; `OneShot` documents them."""

    helpers: tuple[Reachable, ...]
    encoding: FixedPoint
    max_weight: int
    threshold: int
    min_clients: int | None
    registry: Registry | None
    helper_timeout: float
    poll: float


def sum_reports(
    grid: Grid,
    batch: Sequence[Message],
    plan: Plan,
    settings: OneShotSettings,
    *,
    number: int,
    timeout: float,
) -> Sum:
    """Return the sum of what the nodes report for a batch; see `Summing`."""
    fewest = settings.min_clients or FEWEST
    prepared = prepare(grid, batch, plan, settings.encoding, number, least=fewest, phase=REPORT)
    own, layout = prepared.own, prepared.layout

    def params_of(helpers: Sequence[Reachable]) -> OneShotParams:
        return one_shot_params(
            len(own), layout.length, settings, prepared.session, [one.public for one in helpers]
        )

    least, seconds = settings.threshold, settings.helper_timeout
    agreed = asyncio.run(endorsed(settings.helpers, params_of, least, seconds))
    params, endorsements = agreed.params, agreed.endorsements
    task = Task(REPORT, params.to_bytes(), prepared.plan, b"".join(endorsements))
    messages = {node: message_to(message, task, timeout) for node, message in own.items()}
    # the parameters end with this call, so that no list of clients has to outlive the process
    reports = Batch(
        number=0,
        params=params,
        message=b"",
        endorsements=endorsements,
        registry=settings.registry,
        ledger=None,
        store=None,
    )
    with dropouts("min_clients=") as lost:
        found = exchange(grid, messages, lost, timeout, settings.poll)
        reports.open()
        for node, reply in found.replies.items():
            _receive(reports, node, reply, lost)
        result = asyncio.run(_opened(reports, agreed, seconds))
    return Sum(result, layout, found.errors)


def one_shot_params(
    clients: int,
    length: int,
    settings: OneShotSettings,
    session: bytes,
    helpers: Sequence[tuple[bytes, bytes]],
) -> OneShotParams:
    """Return the parameters of a sum."""
    return OneShotParams.suggest(
        clients,
        length,
        settings.encoding,
        helpers=helpers,
        security="semi-honest" if settings.registry is None else "active",
        max_weight=settings.max_weight,
        threshold=settings.threshold,
        min_clients=settings.min_clients,
        session=session,
    )


def _receive(reports: Batch, node: int, reply: Message, lost: Dropouts) -> None:
    """Add a node's report; a node whose reply is invalid drops out."""
    try:
        data = read_answer(reply.content, large=True, sender=node, phase=REPORT)
        if reports.params.active:  # signed by the client that it names
            reports.accumulator.add(data)
        else:
            reports.receive(node, data)
    except RemoteProtocolError as error:
        lost.add_invalid(node, error)


async def _opened(reports: Batch, agreed: Endorsed, seconds: float) -> OneShotResult:
    """Return the sum of the reports, which the helpers check and open."""
    thread = Thread()
    try:
        async with AsyncExitStack() as stack:
            helpers = reached(agreed.params, agreed.helpers, stack)
            return await reports.finish(helpers, thread, seconds)
    finally:
        thread.close()
