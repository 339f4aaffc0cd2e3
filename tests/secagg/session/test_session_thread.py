"""Drivers without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from secagg.errors import LocalProtocolError, ParameterError
from secagg.session.thread import Calls, at_once, in_thread


async def driven(value: object) -> list[object]:
    """Make three calls, as a driver does between two exchanges."""
    calls = Calls()
    return [await calls.run(lambda: (value, threading.get_ident())) for _ in range(3)]


@pytest.mark.parametrize("value", [None, 0, 1, -1.5, "", "text", b"", b"bytes", (), (1, 2)])
def test_calls_are_made_in_the_callers_thread(value: object) -> None:
    expected = [(value, threading.get_ident())] * 3
    assert at_once(driven(value)) == expected

    async def in_a_loop() -> list[object]:
        return at_once(driven(value))

    assert asyncio.run(in_a_loop()) == expected


@pytest.mark.parametrize("kind", [ParameterError, ValueError, KeyError, KeyboardInterrupt])
def test_errors_are_those_of_the_call(kind: type[BaseException]) -> None:
    async def failing() -> None:
        def fail() -> None:
            raise kind("mistake")

        await Calls().run(fail)

    with pytest.raises(kind):
        at_once(failing())


WAITS: dict[str, Callable[[], Awaitable[Any]]] = {
    "sleep": lambda: asyncio.sleep(0),
    "future": lambda: asyncio.get_running_loop().create_future(),
    "event": lambda: asyncio.Event().wait(),
    "thread": lambda: in_thread(int),
    "queue": lambda: asyncio.Queue().get(),
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("calls", range(2))
def test_a_coroutine_that_waits_is_closed(wait: str, calls: int) -> None:
    ended = []

    async def waiting() -> None:
        try:
            for _ in range(calls):
                await Calls().run(int)
            await WAITS[wait]()
        finally:
            ended.append(True)

    async def main() -> None:
        work = waiting()  # with this name it is not closed by the end of its last reference
        with pytest.raises(LocalProtocolError):
            at_once(work)
        assert ended == [True]

    asyncio.run(main())
