"""Session over HTTP on loopback, its members, and single requests made by hand."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from secagg import FixedPoint, Identity, Registry, RoundParams
from secagg.http import Serving, join, serve, server
from secagg.http.signatures import sign
from secagg.oneshot import HelperJournal, OneShotParams
from secagg.session import Event, PhaseOpened, Session, bind
from secagg.session.wire import Answer, encode
from secagg.testing import make_identity

MEMBERS = 4
PARAMS = RoundParams(
    n_clients=MEMBERS, threshold=3, length=6, encoding=FixedPoint(clip=8.0), session=b"app"
)
REGISTRY = Registry({u: make_identity(u).public for u in range(MEMBERS)})
HTTP = partial(httpx.AsyncClient, verify=ssl.create_default_context())
"""A client of HTTP; each would read the authorities anew, 25 ms."""
GARBAGE = encode(Answer(bytes(16), b"garbage"))


def one_shot_params(journals: Sequence[HelperJournal], **changes: Any) -> OneShotParams:
    """Return the parameters of a sum with these helpers."""
    shape = {"n_clients": MEMBERS, "length": 6, "encoding": FixedPoint(clip=8.0)}
    shape |= {"threshold": 2, "min_clients": 3, "suite": "x25519", "session": bind(b"app", b"")}
    return OneShotParams(**shape | {"helpers": [one.public for one in journals]} | changes)


class Party:
    """Session that is served, and a client for requests by hand."""

    def __init__(self, session: Session, serving: Serving, http: httpx.AsyncClient) -> None:
        self.session, self.serving, self.http = session, serving, http
        self.opened = asyncio.Event()
        self.running: list[asyncio.Task[Any]] = []
        session.watch(self._note)

    def join(self, u: int, **options: Any) -> asyncio.Task[int]:
        """Start member u, whose vector is u / 4 everywhere."""
        train = options.pop("train", lambda _, params: vector_of(u, params.length))
        options = {"identity": make_identity(u)} | options
        return asyncio.create_task(join(self.serving.url, u, train, **options))

    def join_all(self, **options: Any) -> list[asyncio.Task[int]]:
        """Start all members."""
        return [self.join(u, **options) for u in range(MEMBERS)]

    async def begin(self, params: RoundParams = PARAMS) -> None:
        """Begin a round with members that never answer."""
        polls = [asyncio.create_task(self._first_task(u)) for u in range(MEMBERS)]
        self.running.append(asyncio.create_task(self.session.round(params)))
        await self.opened.wait()
        for poll in polls:
            assert (await poll).status_code == 200

    async def task(self, u: int, **options: Any) -> httpx.Response:
        """Poll for the task of member u."""
        return await self.request("GET", "/task", u, **options)

    async def _first_task(self, u: int) -> httpx.Response:
        """Poll until there is a task: polls of some tests end before the round begins."""
        while (response := await self.task(u)).status_code == 204:
            pass
        return response

    async def answer(self, u: int, body: bytes, **options: Any) -> httpx.Response:
        """Post an answer of member u."""
        return await self.request("POST", "/answer", u, body, **options)

    async def operator(self, path: str) -> httpx.Response:
        """Get a page of the operator's side."""
        async with HTTP(base_url=self.serving.operator_url) as http:
            return await http.get(path)

    async def until_polls(self, count: int) -> None:
        """Wait until so many requests wait for a task."""
        while f"secagg_http_polls {count}.0" not in (await self.operator("/metrics")).text:
            pass

    async def request(
        self,
        method: str,
        path: str,
        u: int,
        body: bytes = b"",
        *,
        identity: Identity | None = None,
        session: str | None = None,
        headers: dict[str, str] | None = None,
        sent: bytes | None = None,
    ) -> httpx.Response:
        """Send a request that is signed for `body`, with the body `sent`."""
        name = quote(self.session.name if session is None else session, safe="")
        target = f"/v1/sessions/{name}{path}"
        signed = sign(identity or make_identity(u), u, method, target, body)
        content = (body or None) if sent is None else sent
        return await self.http.request(
            method, target, content=content, headers=signed | (headers or {})
        )

    def _note(self, event: Event) -> None:
        if isinstance(event, PhaseOpened):
            self.opened.set()


def vector_of(u: int, length: int) -> np.ndarray:
    """Return the vector of a member, exact in 16 fractional bits."""
    return np.full(length, u / 4)


@asynccontextmanager
async def party_of(session: Session | None = None, **options: Any) -> AsyncIterator[Party]:
    """Yield a session that is served on loopback, over plain HTTP by default."""
    session = session or Session(REGISTRY)
    options = {"port": 0} | options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_FAREWELL", 0.0)  # requests by hand do not ask again
        async with (
            serve(session, REGISTRY, **options) as serving,
            HTTP(base_url=serving.url, timeout=30) as http,
        ):
            party = Party(session, serving, http)
            yield party
            await session.close()
            for one in party.running:
                one.cancel()
            await asyncio.gather(*party.running, return_exceptions=True)
