"""Intake of answers into the session's thread: many of them share one write to the disk.

An answer is acknowledged when it is on the disk, which takes milliseconds. Answers that come
meanwhile wait for the next write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from secagg.errors import RemoteProtocolError
from secagg.session.exchange import Exchange
from secagg.session.thread import Calls

_TOGETHER = 64
"""Answers in one write, at most; they are in memory until then."""


class _Waiting(NamedTuple):
    """Answer that waits: its client and content, the call after its write, and its outcome."""

    client: int
    data: bytes
    accepted: Callable[[], None]
    done: asyncio.Future[None]


class Intake:
    """Intake of the answers of one exchange."""

    def __init__(self, exchange: Exchange, thread: Calls) -> None:
        self._exchange, self._thread = exchange, thread
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def put(self, client: int, data: bytes, accepted: Callable[[], None]) -> None:
        """Validate and store an answer, then call `accepted`, also if this call is cancelled.

        Raises
        ------
        RemoteProtocolError
            The answer failed a check.
        Exception
            The server has ended; the exchange has this error as its `failure`, too.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(client, data, accepted, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        await done

    async def join(self) -> None:
        """Wait until all answers are taken or rejected."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _drain(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            errors: list[Exception | None]
            try:
                errors = await self._thread.run(partial(self._take, some))
            except Exception as failure:  # the server has ended, and nothing more is stored
                self._exchange.failure = self._exchange.failure or failure
                self._exchange.settle()
                errors = [failure] * len(some)
            for one, error in zip(some, errors, strict=True):
                if error is None:
                    one.accepted()
                if one.done.done():  # cancelled by its transport
                    continue
                if error is None:
                    one.done.set_result(None)
                else:
                    one.done.set_exception(error)

    def _take(self, some: list[_Waiting]) -> list[Exception | None]:
        errors: list[Exception | None] = []
        for one in some:
            try:
                self._exchange.receive(one.client, one.data)
                errors.append(None)
            except RemoteProtocolError as error:
                errors.append(error)
        self._exchange.store()
        return errors
