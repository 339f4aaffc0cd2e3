"""One-shot sums over nodes: one exchange with the nodes, then the helpers open the sum."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import msgspec
from flwr.app import Message
from flwr.serverapp import Grid

from secagg import FixedPoint, Registry
from secagg.flower.batches import FEWEST, Sum, prepare
from secagg.flower.courier import Courier
from secagg.flower.dropouts import dropouts
from secagg.flower.helpers import Endorsed, Reachable, endorsed, reached
from secagg.flower.wire import CLIPPED_NODES, Plan
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.session import Place
from secagg.session.batch import Batch
from secagg.session.thread import at_once
from secagg.session.wire import REPORT


@dataclass(frozen=True, kw_only=True)
class OneShotSums:
    """One-shot sums of a run; see `OneShot` for the parameters."""

    helpers: tuple[Reachable, ...]
    encoding: FixedPoint
    max_weight: int
    threshold: int
    min_clients: int | None
    registry: Registry | None
    helper_timeout: float
    poll: float

    def __call__(
        self, grid: Grid, batch: Sequence[Message], plan: Plan, *, number: int, timeout: float
    ) -> Sum:
        """Return the sum of the nodes' reports for a batch; see `Summing`."""
        # a sum of this kind has no number of clipped elements
        plan = msgspec.structs.replace(plan, metrics=(*plan.metrics, (CLIPPED_NODES, 1.0)))
        fewest = self.min_clients or FEWEST
        prepared = prepare(grid, batch, plan, self.encoding, number, least=fewest, phase=REPORT)
        place, length = prepared.place, prepared.layout.length

        def params_of(helpers: Sequence[Reachable]) -> OneShotParams:
            public = [one.public for one in helpers]
            return self.params(len(batch), length, prepared.session, public)

        seconds = self.helper_timeout
        agreed = asyncio.run(endorsed(self.helpers, params_of, self.threshold, seconds, place))
        # the parameters end with this call, so that no list of clients has to outlive the
        # process
        reports = Batch(
            number=0,
            params=agreed.params,
            message=b"",
            endorsements=agreed.endorsements,
            registry=self.registry,
        )
        with dropouts("min_clients=") as lost:
            courier = Courier(grid, prepared, agreed.params, self.registry, lost, self.poll)
            reports.open()
            at_once(reports.collect(place, prepared.own, courier, timeout))
            result = asyncio.run(_opened(reports, agreed, seconds, place))
        return Sum(result, prepared.layout, courier.errors)

    def params(
        self, clients: int, length: int, session: bytes, helpers: Sequence[tuple[bytes, bytes]]
    ) -> OneShotParams:
        """Return the parameters of a sum."""
        return OneShotParams.suggest(
            clients,
            length,
            self.encoding,
            helpers=helpers,
            security="semi-honest" if self.registry is None else "active",
            max_weight=self.max_weight,
            threshold=self.threshold,
            min_clients=self.min_clients,
            session=session,
        )


async def _opened(
    reports: Batch, agreed: Endorsed, seconds: float, place: Place
) -> OneShotResult:
    """Return the sum of the reports, after the helpers checked and opened it."""
    async with AsyncExitStack() as stack:
        helpers = reached(agreed.params, agreed.helpers, place, stack)
        return await reports.finish(helpers, seconds)
