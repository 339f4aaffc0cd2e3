"""Served collections in tests, with a client of HTTP and the operator's port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from collect_faults import Interposed
from collect_parts import Collected
from http_party import HTTP
from secagg.collect.service import serve_collection

NEWEST = "/v1/parameters"
"""Path of the newest parameters."""


class Site:
    """Served collection, and a client of HTTP."""

    def __init__(
        self, collected: Collected, http: httpx.AsyncClient, operator_url: str
    ) -> None:
        self.collected, self.http, self.operator_url = collected, http, operator_url
        self.path = f"/v1/parameters/{collected.made.params.digest.hex()}"

    async def post(self, content: bytes, path: str = "") -> str:
        """Return "" for a report that is acknowledged, or else status and check."""
        response = await self.http.post(path or f"{self.path}/reports", content=content)
        if response.status_code == 204:
            return ""
        return f"{response.status_code} {response.json()['check']}"

    async def look(self, path: str) -> dict[str, str]:
        """Return what the operator's port says."""
        return dict((await self.http.get(f"{self.operator_url}/{path}")).json())

    async def metrics(self) -> dict[str, float]:
        text = (await self.http.get(f"{self.operator_url}/metrics")).text
        lines = (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
        return {name: float(value) for name, _, value in lines}

    async def report(self, *clients: int) -> list[str]:
        sent = self.collected.sent
        sent |= {u: self.collected.made.report(u) for u in clients if u not in sent}
        return list(await asyncio.gather(*(self.post(sent[u]) for u in clients)))


@asynccontextmanager
async def served(
    collected: Collected, before: Callable[[str], None] = lambda _: None, **options: object
) -> AsyncIterator[Site]:
    options = {"registry": collected.registry, "port": 0} | options
    database = Interposed(collected.database, before)
    serving = serve_collection(database, **options)  # type: ignore[arg-type]
    async with serving as at, HTTP(base_url=at.url) as http:
        yield Site(collected, http, at.operator_url)
