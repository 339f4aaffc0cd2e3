"""Runs of a session's sums: the attempts at a round, and at the single list of a one-shot sum.

`Series` numbers the sums, and calls a run for each attempt.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from secagg._check import check_integer
from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.graph import SEED_BYTES
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.oneshot.policy import listed
from secagg.protocol import ClientPolicy, CohortLedger, Registry, RoundParams
from secagg.protocol.client_ids import ClientKey
from secagg.protocol.identities import check_registry
from secagg.server import RoundResult
from secagg.session.batch import Batch
from secagg.session.events import Place
from secagg.session.exclusion import convicted
from secagg.session.helpers import HelperLink, Helpers, by_number
from secagg.session.presence import pool_of
from secagg.session.rounds import Attempt, Deadlines, fresh_params
from secagg.session.series import Series
from secagg.session.store import Begun, program
from secagg.session.wire import FRAME, answer_limit, check_bound


def _new_seed() -> bytes:
    return os.urandom(SEED_BYTES)


@dataclass(eq=False, kw_only=True)
class Runs:
    """Runs of the sums of a session; `Session` documents what a sum takes and raises.

    Attributes
    ----------
    series : Series
        Numbers, desk, folder and expenses of the sums.
    deadlines : Deadlines
    registry : Registry or None
        Keys of the members, for active sums.
    ledger : CohortLedger or None
        Cohorts of earlier sums.
    policy : ClientPolicy or None
        Policy of the members, for verdicts.
    convicted : set of int
        Ids of the clients that verdicts of this session name; later sums leave them out.
    """

    series: Series
    deadlines: Deadlines
    registry: Registry | None
    ledger: CohortLedger | None
    policy: ClientPolicy | None = None
    convicted: set[int] = field(default_factory=set)
    _graph_seed: bytes = field(default_factory=_new_seed, repr=False)

    async def round(
        self,
        params: RoundParams,
        message: bytes,
        cohort: int | Collection[ClientKey] | None,
        min_clients: int | None,
    ) -> RoundResult:
        """Run the next sum by the four exchanges; see `Session.round`."""
        registry = self.registry if params.active else None
        check_registry(params, registry)
        series = self.series
        desk, least, gather = series.desk, int(params.min_survivors), self.deadlines.gather
        if min_clients is not None:
            check_integer("min_clients", min_clients, 2, params.n_clients)
            min_clients = int(min_clients)
            least = max(least, min_clients)
        pool, size = pool_of(cohort, desk.members, least, params.n_clients)
        if cohort is None:  # members with the default policy reject smaller cohorts
            least = max(least, ClientPolicy().smallest_cohort(params))
        left_out = set(self.convicted)

        async def run(place: Place, begun: Begun | None) -> RoundResult:
            # also of attempts in an earlier process
            left_out.update(convicted(series.proofs))
            if begun is None:
                series.expenses.check(params)
                ids = await desk.choose(place, pool - left_out, size, least, gather)
                fresh = fresh_params(params, series.name, series.id, place, message)
                await series.keep_attempt(place, fresh, ids, answer_limit(fresh))
            else:
                fresh = RoundParams.from_bytes(begun.params, params.encoding)
                ids = begun.cohort
            series.announce(place, params, ids, least, resumed=begun is not None)
            attempt = Attempt(
                place=place,
                params=fresh,
                message=message,
                cohort=ids,
                registry=registry,
                ledger=self.ledger,
                policy=self.policy,
                store=series.store,
                graph_seed=self._graph_seed,
                min_clients=min_clients or 0,
                spend=lambda: series.expenses.spend(place, fresh),
            )
            try:
                return await attempt.run(desk, self.deadlines)
            except (TooFewSurvivors, RemoteProtocolError):
                self._graph_seed = _new_seed()  # or it could fail in the same way
                raise
            finally:
                left_out.update(attempt.left_out)
                rest = pool - left_out - attempt.in_doubt
                # as many may stay away again, and then enough must be left
                if min(size, len(rest)) - attempt.absent >= least:
                    left_out.update(attempt.in_doubt)

        wanted = program(params.to_bytes(), message, min_clients)
        try:
            return await series.next(params, wanted, left_out, run)
        finally:  # also after another error than that of an attempt
            self.convicted |= convicted(series.proofs)

    async def one_shot(
        self,
        params: OneShotParams,
        message: bytes,
        helpers: Iterable[HelperLink],
        endorsements: Iterable[bytes],
        cohort: int | Collection[ClientKey] | None,
    ) -> OneShotResult:
        """Run the next sum of one report of each client; see `Session.one_shot`."""
        links, series = by_number(helpers), self.series
        registry = self.registry if params.active else None
        check_registry(params, registry)
        check_bound(params, message)
        desk, least, gather = series.desk, params.min_clients, self.deadlines.gather
        pool, size = pool_of(cohort, desk.members, least, params.n_clients)
        batch = Batch(
            number=series.rounds,
            params=params,
            message=message,
            endorsements=listed(endorsements),
            registry=registry,
            ledger=self.ledger,
            store=series.store,
            thread=desk.thread,
            # helpers open one list of reports, in however many attempts
            spend=lambda: series.expenses.spend(Place(series.name, series.rounds, 0), params),
        )

        async def run(place: Place, begun: Begun | None) -> OneShotResult:
            if not batch.opened:
                await desk.thread.run(batch.open)
            if not batch.fixed:
                series.expenses.check(params)
            ids = () if begun is None else begun.cohort
            if batch.needed and begun is None:  # else only the helpers failed before
                left_out = batch.left_out | self.convicted
                absent = (pool - left_out).difference(batch.accumulator.ids)
                room = size - len(batch.accumulator)
                ids = await desk.choose(place, absent, room, batch.needed, gather)
                await series.keep_attempt(place, params, ids, FRAME + params.layout.report)
            series.announce(place, params, ids, least, resumed=begun is not None)
            if ids and not batch.fixed:
                await batch.collect(place, ids, desk, self.deadlines.reports)
            reached = Helpers(links, len(params.helpers), place, series.hooks, series.clock)
            return await batch.finish(reached, self.deadlines.unmask)

        try:
            wanted = program(params.to_bytes(), message)
            result = await series.next(params, wanted, batch.left_out, run)
        finally:
            batch.close()
        assert isinstance(result, OneShotResult), "as its parameters are"  # noqa: S101
        return result
