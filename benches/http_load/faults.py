"""Transport that sends every request twice, and link of a member with faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from random import Random

import httpx

from benches.http_load.load import DROPS, GARBAGE, SPENT, Fault
from secagg.errors import RemoteProtocolError
from secagg.http import HttpLink
from secagg.session.wire import Declined, Task, encode, read_task

SIGNED = GARBAGE[:4]
_ANY_TIME = {410, 503}
"""Statuses of a post that do not depend on it: the session has ended, the server is busy."""
_PAUSE = 0.5
"""Largest number of seconds that a member polls before it drops out."""


class DroppedOut(Exception):
    """The member drops out, with all that it knows."""

    def __init__(self, fault: Fault, number: int) -> None:
        super().__init__(fault.kind)
        self.fault, self.number = fault, number


class Twice(httpx.AsyncBaseTransport):
    """Transport that sends every request twice, at the same time or one after the other.

    Both copies of a post must be answered alike; `tally` counts pairs, and unequal ones.
    """

    def __init__(
        self, inner: httpx.AsyncBaseTransport, rng: Random, tally: Counter[str]
    ) -> None:
        self._inner, self._rng, self._tally = inner, rng, tally
        self._copies: set[asyncio.Task[None]] = set()
        self.dropping: DroppedOut | None = None
        self.garbage = ""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and its copy; return the response to the first."""
        await request.aread()  # of a stream nothing could be sent twice, or by half
        post = request.method == "POST"
        if post and self.dropping is not None:
            await self._drop(request, self.dropping)
        if post and self.garbage:
            request, self.garbage = spoil(request, self.garbage, self._rng), ""
        first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        at_once = not post or self._rng.random() < 0.5
        copy = asyncio.create_task(self._copy(request, first, at_once=at_once, post=post))
        self._copies.add(copy)
        copy.add_done_callback(self._copies.discard)
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException:
            first.cancel()
            raise
        if not first.done():
            first.set_result(response.status_code)
        self._tally[f"status {response.status_code}"] += 1
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        for copy in self._copies:
            copy.cancel()
        await asyncio.gather(*self._copies, return_exceptions=True)
        await self._inner.aclose()

    async def _copy(
        self, request: httpx.Request, first: asyncio.Future[int], *, at_once: bool, post: bool
    ) -> None:
        with suppress(httpx.TransportError, asyncio.CancelledError):
            if not at_once:
                await asyncio.shield(first)
            again = httpx.Request(
                request.method, request.url, headers=request.headers, content=request.content
            )
            again.extensions = request.extensions
            response = await self._inner.handle_async_request(again)
            await response.aread()
            await response.aclose()
            self._tally[f"status {response.status_code}"] += 1
            status = await first
            if post and not {status, response.status_code} & _ANY_TIME:
                self._tally["pairs"] += 1
                if status != response.status_code:
                    self._tally[f"unequal {status} {response.status_code}"] += 1

    async def _drop(self, request: httpx.Request, dropping: DroppedOut) -> None:
        if dropping.fault.kind == "cut":
            half = request.content[: len(request.content) // 2]

            async def content() -> AsyncIterator[bytes]:
                yield half
                raise dropping

            request = httpx.Request(
                request.method, request.url, headers=request.headers, content=content()
            )
        with suppress(httpx.TransportError):
            await self._inner.handle_async_request(request)
        raise dropping


def spoil(request: httpx.Request, kind: str, rng: Random) -> httpx.Request:
    """Return a request that differs from what its member signed."""
    body, headers = bytearray(request.content), request.headers.copy()
    if kind == "flipped":
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    elif kind == "shortened":
        del body[rng.randrange(len(body)) :]
        headers["Content-Length"] = str(len(body))
    else:
        headers["Content-Type"] = "text/plain"
    found = httpx.Request(request.method, request.url, headers=headers, content=bytes(body))
    found.extensions = request.extensions
    return found


class FaultyLink:
    """Link of a member that drops out, or sends garbage, where `fault_of` has it so.

    `fault_of` is called with every task, and returns the member's fault in that attempt.
    """

    def __init__(
        self,
        link: HttpLink,
        transport: Twice,
        rng: Random,
        tally: Counter[str],
        fault_of: Callable[[Task], Fault | None],
    ) -> None:
        self._link, self._transport, self._rng = link, transport, rng
        self._tally, self._fault_of = tally, fault_of
        self._task: Task | None = None
        self._fault: Fault | None = None

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task; see `secagg.session.Link.next_task`."""
        due = self._due()
        if due is not None and due.fault.kind == "polling":
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rng.random() * _PAUSE):
                    await self._link.next_task(after)
            raise due
        while (data := await self._link.next_task(after)) is not None:
            task = self._task = read_task(data)
            self._fault = self._fault_of(task)
            if self._fault is not SPENT:
                break
            after = task.id
            with suppress(RemoteProtocolError):
                await self._link.send(encode(Declined(after)))
        if data is None:
            return None
        due = self._due()
        if due is not None and due.fault.kind == "fetched":
            raise due
        return data

    async def send(self, answer: bytes) -> None:
        """Send an answer; see `secagg.session.Link.send`."""
        due, fault = self._due(), self._fault
        if due is not None and due.fault.kind in ("cut", "sent"):
            self._transport.dropping = due
        elif self._task is not None and fault is not None and fault.step == self._task.step:
            if fault.kind in SIGNED:
                answer = garbage(answer, fault.kind, self._rng)
            elif fault.kind in GARBAGE:
                self._transport.garbage = fault.kind
            self._tally[f"fault {fault.kind}"] += fault.kind in GARBAGE
        try:
            await self._link.send(answer)
        except RemoteProtocolError as error:
            self._tally[f"rejected {error.check}"] += 1
            raise

    def _due(self) -> DroppedOut | None:
        """Return the drop-out at the present step."""
        task, fault = self._task, self._fault
        if task is None or fault is None or fault.kind not in DROPS or fault.step != task.step:
            return None
        return DroppedOut(fault, task.number)


def garbage(answer: bytes, kind: str, rng: Random) -> bytes:
    """Return what a member signs in place of its answer."""
    if kind == "random":
        return rng.randbytes(rng.randrange(1, len(answer)))
    if kind == "truncated":
        return answer[: rng.randrange(1, len(answer))]
    if kind == "extended":
        return answer + b"\0"
    return bytes([answer[0] ^ 0xFF]) + answer[1:]
