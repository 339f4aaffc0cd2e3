"""Health, readiness and metrics of a collection, for the operator, served on loopback."""

from __future__ import annotations

import asyncio
import logging

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from secagg.collect import overview
from secagg.collect.database import Database
from secagg.collect.metrics import Metrics, is_ready
from secagg.collect.overview import Overview
from secagg.errors import DatabaseError
from secagg.http import asgi
from secagg.http.operator import metrics_response, private
from secagg.http.problems import Problem
from secagg.session.exchange import Thread

logger = logging.getLogger("secagg.collect")

_SECONDS = 2.0
"""Longest wait for the database, less than a probe's."""


class Operator:
    """Operator's side of a process that takes reports.

    Parameters
    ----------
    database : Database
    metrics : Metrics
    """

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self._database, self._metrics = database, metrics
        # not the thread of the reports: their transactions wait for a database that is away
        self._thread = Thread()
        self._look: asyncio.Task[Overview | None] | None = None

    def application(self) -> Starlette:
        """Return the ASGI application."""
        return private(
            [asgi.HEALTH, Route("/ready", self.ready), Route("/metrics", self.metrics)]
        )

    async def ready(self, _: Request) -> Response:
        """Respond with 200 if this process can take reports, else with 503."""
        found = await self._overview()
        if found is None:
            raise Problem(503, "database", "the database is away; see the log")
        if not is_ready(found):
            raise Problem(503, "parameters", "no batch is open; begin a session")
        return JSONResponse({"status": "ready"})

    async def metrics(self, _: Request) -> Response:
        """Respond with the metrics, as Prometheus reads them."""
        return metrics_response(self._metrics.text(await self._overview()))

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    async def _overview(self) -> Overview | None:
        """Return the batches of the database; None if the database is away.

        Requests at the same time share a look, so a database that hangs holds no queue.
        """
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(self._read())
        done, _ = await asyncio.wait([self._look], timeout=_SECONDS)
        return self._look.result() if done else None

    async def _read(self) -> Overview | None:
        def read() -> Overview:
            with self._database.transaction() as tx:
                return overview.look(tx)

        try:
            return await self._thread.run(read)
        except DatabaseError as error:
            logger.error("%s", error)
            return None
