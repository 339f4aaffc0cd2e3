"""Sums over nodes: the server's side of the four exchanges, for one batch of messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from flwr.app import Message
from flwr.serverapp import Grid

from secagg import ClientPolicy, FixedPoint, Registry, RoundParams, Server, TooFewSurvivors
from secagg.flower.batches import FEWEST, Sum, prepare
from secagg.flower.courier import Courier
from secagg.flower.dropouts import dropouts
from secagg.flower.wire import Plan
from secagg.protocol import Phase
from secagg.protocol.shape import Security
from secagg.session import Deadlines
from secagg.session.rounds import Attempt
from secagg.session.thread import at_once


@dataclass(frozen=True, kw_only=True)
class RoundSums:
    """Sums of a run in the four exchanges; `SecAgg` documents the parameters."""

    encoding: FixedPoint
    max_weight: int
    threshold: int | None
    neighbours: int | None
    security: Security
    registry: Registry | None
    key_timeout: float
    poll: float

    def __call__(
        self, grid: Grid, batch: Sequence[Message], plan: Plan, *, number: int, timeout: float
    ) -> Sum:
        """Return the sum of what the nodes reply to a batch; see `Summing`."""
        least = max(FEWEST, self.threshold or 0, (self.neighbours or 0) + 1)
        phase = Phase.ADVERTISE_KEYS
        prepared = prepare(grid, batch, plan, self.encoding, number, least=least, phase=phase)
        params = self.params(len(batch), prepared.layout.length, prepared.session)
        attempt = _Attempt(
            place=prepared.place,
            params=params,
            message=b"",
            cohort=list(prepared.own),
            registry=self.registry,
        )
        # an exchange has one pull, also without time for another one
        seconds = timeout or sys.float_info.min
        deadlines = replace(Deadlines.of(self.key_timeout), input=seconds)
        with dropouts("threshold=") as lost:
            courier = Courier(grid, prepared, params, self.registry, lost, self.poll)
            result = at_once(attempt.run(courier, deadlines))
        return Sum(result, prepared.layout, courier.errors)

    def params(self, clients: int, length: int, session: bytes) -> RoundParams:
        """Return the parameters of a sum; a threshold without neighbours is of all nodes."""
        return RoundParams.suggest(
            clients,
            length,
            self.encoding,
            security=self.security,
            max_weight=self.max_weight,
            neighbours="auto" if self.threshold is None else self.neighbours,
            threshold=self.threshold,
            session=session,
            count_clipped=True,
        )


class _Attempt(Attempt):
    """Attempt that ends if nodes with the default policy would reject the cohort.

    They would reject it one by one, each in its own log.
    """

    def _close(self, server: Server) -> None:
        super()._close(server)
        params, size = self.params, len(server.outbox)
        needed = ClientPolicy().smallest_cohort(params)
        if server.phase is Phase.SHARE_KEYS and size < needed:
            raise TooFewSurvivors(
                f"{size} of {params.n_clients} nodes sent keys, and on this graph nodes with "
                f"the default policy take part with {needed} or more; for room take a larger "
                f"threshold than {params.threshold}, or more neighbours than "
                f"{params.neighbours}",
                phase=Phase.ADVERTISE_KEYS,
                survivors=size,
                needed=needed,
            )
