"""The door of a collection: clients that `send_report` to a collector who lies.

The collector is the helpers' aggregator, so helpers also endorse what the collector made up, as
far as their policies let them. Clients train on what the collector offers.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import AsyncExitStack, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from harness import registry_of
from lying.door import CLIENTS, LENGTH, Door, Outcome, Settings
from lying.liar import Liar
from lying.sessions import one_shot_params, one_shot_sum, settled, show
from lying.worlds import WEIGHTED
from secagg import Bounds, FixedPoint, SecAggError
from secagg.http import asgi, get_offer, send_report
from secagg.http.problems import Problem
from secagg.http.server import listening
from secagg.oneshot import Accumulator, Helper, OneShotParams, OneShotPolicy
from secagg.session.wire import REPORT, endorsements_of
from secagg.testing import make_identity

MESSAGE = b"model of all"
OWN = Settings()
"""Bounds of the clients' own applications."""


class CollectorDoor(Door):
    """Clients of a collection, each with a policy that has helpers and bounds.

    Parameters
    ----------
    keyed : bool
        Give the clients identities.
    """

    repeats = ("twice",)
    budgeted = True
    what = "send_report"
    """Function that the clients call."""

    def __init__(self, *, keyed: bool) -> None:
        # a training that raises calls no `send_report`: its application sees to that
        pairs = WEIGHTED - {"raises"}
        super().__init__(self.what, pairs, keyed=keyed, one_shot=True)
        self._registry = registry_of(CLIENTS)
        bounds = Bounds(FixedPoint(OWN.clip, OWN.bits), OWN.max_weight)
        self._policy = OneShotPolicy(helpers=self.trusted, bounds=bounds)
        self._offer: dict[str, Any] = {}
        self._seen: list[tuple[str, bytes]] = []
        self._failing = 0
        self._runner = asyncio.Runner()
        self._services = AsyncExitStack()
        self._url = self._runner.run(self._served())

    async def _served(self) -> str:
        routes = [
            Route("/v1/parameters", self._parameters),
            Route("/v1/parameters/{digest}/reports", self._report, methods=["POST"]),
        ]
        serving = listening(asgi.build(routes), "127.0.0.1", 0, None)
        return await self._services.enter_async_context(serving)

    async def _parameters(self, _: Request) -> Response:
        return JSONResponse(self._offer)

    async def _report(self, request: Request) -> Response:
        self._seen.append((request.path_params["digest"], await request.body()))
        if len(self._seen) <= self._failing:
            raise Problem(503, "database", "it is away")
        return Response(status_code=204)

    def sum(self, settings: Settings, liar: Liar) -> Outcome:
        outcome = self.training.outcome = Outcome()
        self._failing = 1 if liar.repeats else 0
        try:
            self._runner.run(self._sum(settings, liar, outcome))
        except SecAggError as error:
            outcome.failed = type(error).__name__
        return outcome

    async def _sum(self, settings: Settings, liar: Liar, outcome: Outcome) -> None:
        active = settings.is_active(keyed=self.keyed)
        params = one_shot_params(settings, active, MESSAGE, self.journals)
        sums: dict[str, tuple[list[Helper], Accumulator]] = {}
        for u in CLIENTS:
            helpers, accumulator, signed = self._begun(params)
            sums.setdefault(params.digest.hex(), (helpers, accumulator))
            honest = {
                "parameters": params.to_bytes(),
                "endorsements": endorsements_of(signed),
                "message": MESSAGE,
            }
            told = liar.tell(u, REPORT, honest)
            with suppress(SecAggError):
                other = OneShotParams.from_bytes(told["parameters"])
                if other.digest != params.digest:
                    *begun, signed = self._begun(other)
                    sums.setdefault(other.digest.hex(), (begun[0], begun[1]))
                    if told["endorsements"] == honest["endorsements"]:
                        told = {**told, "endorsements": endorsements_of(signed)}
            self._offer = {
                name: _text(one) if isinstance(one, bytes) else list(map(_text, one))
                for name, one in told.items()
                if name in honest
            }
            self._seen = []
            for _ in range(settings.asked):
                await self._ask(u)
            for digest, content in self._seen:
                self.leaves(u, content, sums[digest][1].params)
            self._note(u, outcome, sums)
        if settings.sigma is not None:
            return
        for helpers, accumulator in sums.values():
            if len(accumulator) and accumulator.params.length == LENGTH:
                show(settled(accumulator, helpers), outcome)

    def _begun(self, params: OneShotParams) -> tuple[list[Helper], Accumulator, bytes]:
        return one_shot_sum(params, self.journals, self._registry if params.active else None)

    async def _ask(self, u: int) -> None:
        """Let a client report; only what it sends is the collector's to see."""
        identity = make_identity(u) if self.keyed else None
        with suppress(Exception):
            offer = await get_offer(self._url, policy=self._policy, patience=5.0)
            read = {"message": offer.message, "params": offer.params}
            private = self.training.train(u, read)
            await send_report(
                self._url,
                private.trained,
                u,
                private.told_weight,  # type: ignore[arg-type]
                policy=self._policy,
                identity=identity,
                spending=self.ledgers.get(u),
                offer=offer,
                patience=5.0,
            )

    def _note(
        self, u: int, outcome: Outcome, sums: dict[str, tuple[list[Helper], Accumulator]]
    ) -> None:
        if not self._seen:
            outcome.note(u, REPORT, "nothing")
            outcome.trained.pop(u, None)
            return
        kind = "answer" if len(set(self._seen)) == 1 else "two answers"
        digest, content = self._seen[-1]
        outcome.note(u, REPORT, kind, len(self._seen), len(content))
        outcome.masked[u] = content
        if digest in sums:
            outcome.take(u, REPORT, sums[digest][1].add, content)

    def close(self) -> None:
        self._runner.run(self._services.aclose())
        self._runner.close()
        super().close()


def _text(data: bytes) -> str:
    return b64encode(data).decode()
