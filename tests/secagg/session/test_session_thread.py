"""Drivers without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from secagg.errors import LocalProtocolError, ParameterError
from secagg.session.exchange import Calls, Thread, at_once, in_thread


async def driven(value: object) -> list[object]:
    """Make three calls, as a driver does between two exchanges."""
    calls = Calls()
    return [await calls.run(lambda: (value, threading.get_ident())) for _ in range(3)]


@pytest.mark.parametrize("value", [None, 1])
def test_calls_are_made_in_the_callers_thread(value: object) -> None:
    expected = [(value, threading.get_ident())] * 3
    assert at_once(driven(value)) == expected

    async def in_a_loop() -> list[object]:
        return at_once(driven(value))

    assert asyncio.run(in_a_loop()) == expected


@pytest.mark.parametrize("kind", [ParameterError, KeyboardInterrupt])
def test_errors_are_those_of_the_call(kind: type[BaseException]) -> None:
    async def failing() -> None:
        def fail() -> None:
            raise kind("mistake")

        await Calls().run(fail)

    with pytest.raises(kind):
        at_once(failing())


async def test_calls_share_a_thread_that_makes_none_once_closed() -> None:
    thread, gate = Thread(), threading.Event()
    calls = (thread.run(lambda: gate.wait() and threading.get_ident()) for _ in range(2))
    waiting = asyncio.gather(*calls)
    asyncio.get_running_loop().call_soon(gate.set)
    assert len(set(await waiting)) == 1
    assert await thread.run(lambda: 3) == 3
    thread.close()
    with pytest.raises(LocalProtocolError):
        await thread.run(lambda: 3)


@pytest.mark.parametrize("wait", [lambda: asyncio.sleep(0), lambda: in_thread(int)])
async def test_a_coroutine_that_waits_is_closed(wait: Callable[[], Awaitable[Any]]) -> None:
    ended = []

    async def waiting() -> None:
        try:
            await Calls().run(int)
            await wait()
        finally:
            ended.append(True)

    work = waiting()  # with this name it is not closed by the end of its last reference
    with pytest.raises(LocalProtocolError):
        at_once(work)
    assert ended == [True]


def test_error_of_a_call_has_no_frame_of_the_pool_that_ran_it() -> None:
    """The pool's frame holds the call, and with it the vector, until its thread goes on."""
    with pytest.raises(ValueError, match="no vector") as caught:
        asyncio.run(in_thread(lambda: int("no vector")))
    modules = {entry.frame.f_globals["__name__"] for entry in caught.traceback}
    assert not any(name.startswith("concurrent") for name in modules)
