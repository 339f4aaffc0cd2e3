"""The door of helpers: `serve_helper` over HTTP, with a registry, and a lying aggregator."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import numpy as np

from harness import registry_of
from lying.door import CLIENTS, VICTIM, Door, Outcome, Settings
from lying.liar import Liar
from lying.sessions import one_shot_params
from lying.walk import Unbuildable
from secagg import Identity, RemoteProtocolError, SecAggError
from secagg.http import reach_helper, serve_helper
from secagg.oneshot import Accumulator, OneShotParams, OneShotPolicy, report
from secagg.testing import make_identity

MESSAGE = b"model of all"
INVENTED = range(1000, 1003)
"""Clients that the aggregator invents beside a victim."""


class HelperDoor(Door):
    """Helpers over HTTP whose registry has all clients.

    An honest aggregator adds a report of each client. A lying one adds that of the victim and
    those of its inventions, if the helpers let it. The helpers are lied to under the names of
    clients, the first helper under that of the first.
    """

    repeats = ("twice",)

    def __init__(self) -> None:
        super().__init__("serve_helper", frozenset(), keyed=True, one_shot=True)
        self._registry = registry_of(CLIENTS)
        self._aggregator = Identity.generate()
        self._runner = asyncio.Runner()  # in whose loop the helpers and the aggregator are
        self._services = AsyncExitStack()
        self._urls = self._runner.run(self._served())

    async def _served(self) -> list[str]:
        public, registry = self._aggregator.public, self._registry
        return [
            await self._services.enter_async_context(
                serve_helper(journal, public, registry=registry, port=0)
            )
            for journal in self.journals
        ]

    def sum(self, settings: Settings, liar: Liar) -> Outcome:
        outcome = self.training.outcome = Outcome()
        try:
            self._runner.run(self._sum(settings, liar, outcome))
        except SecAggError as error:
            outcome.failed = type(error).__name__
        return outcome

    async def _sum(self, settings: Settings, liar: Liar, outcome: Outcome) -> None:
        active = settings.active is not False
        params = one_shot_params(settings, active, MESSAGE, self.journals)
        lies = bool(liar.lies) or not active
        async with AsyncExitStack() as stack:
            links = []
            for u, url in zip(CLIENTS, self._urls, strict=True):
                told = _params(liar.tell(u, "begin", params.to_bytes()))
                reach = reach_helper(url, told, identity=self._aggregator)
                try:
                    links.append((u, await stack.enter_async_context(reach)))
                except SecAggError as error:
                    outcome.note(u, "begin", "error", type(error).__name__)
                else:
                    outcome.note(u, "begin", "answer")
            # told the same by all, the clients have the parameters that the helpers endorsed
            if liar.to >= set(CLIENTS):
                params = told
            reports = self._reports(params, [link.endorsement for _, link in links], lies)
            accumulator = Accumulator(
                params, registry=self._registry if params.active else None
            )
            for one in reports:
                accumulator.add(one)
            outcome.opened = await self._opened(accumulator, links, liar, outcome)
        world = self.training.world
        outcome.trained = {u: world[u].summed for u in ([VICTIM] if lies else CLIENTS)}

    def _reports(
        self, params: OneShotParams, endorsements: list[bytes], lies: bool
    ) -> list[bytes]:
        policy = OneShotPolicy(helpers=self.trusted)
        trust: Any = {"policy": policy, "endorsements": endorsements}
        made = []
        for u in [VICTIM] if lies else CLIENTS:
            identity = make_identity(u) if params.active else None
            private = self.training.world[u]
            given = private.trained, params, u, private.weight
            made.append(report(*given, identity=identity, **trust))
        lenient = OneShotPolicy(min_threshold=1, min_clients=2)
        zeros = np.zeros(params.length)
        for u in INVENTED if lies else ():
            identity = make_identity(u) if params.active else None
            made.append(report(zeros, params, u, 0, identity=identity, policy=lenient))
        return made

    async def _opened(
        self, accumulator: Accumulator, links: Any, liar: Liar, outcome: Outcome
    ) -> np.ndarray:
        for u, link in links:
            for boxes in accumulator.boxes(link.number):
                told = liar.tell(u, "check", boxes)
                rejected = await link.check(told)
                if liar.repeats:
                    await link.check(told)
                outcome.note(u, "check", "answer", len(rejected))
                accumulator.drop(rejected)
        request = accumulator.request()
        if accumulator.params.quorum:
            signed = []
            for u, link in links:
                signed.append(await link.reserve(liar.tell(u, "reserve", request)))
                outcome.note(u, "reserve", "answer", len(signed[-1]))
            request = accumulator.request(signed)
        answers = []
        for u, link in links:
            told = liar.tell(u, "open", request)
            if liar.repeats:
                await link.open(told)
            answers.append(await link.open(told))
            outcome.note(u, "open", "answer", len(answers[-1]))
        result = accumulator.result(answers)
        return np.asarray(result.sum, float)

    def close(self) -> None:
        self._runner.run(self._services.aclose())
        self._runner.close()
        super().close()


def _params(told: bytes) -> OneShotParams:
    """Return parameters that the aggregator's own link can send."""
    try:
        return OneShotParams.from_bytes(told)
    except RemoteProtocolError:
        raise Unbuildable("parameters") from None
