"""Thread of a session for cryptography and files: one call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from secagg.errors import LocalProtocolError

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Return the result of a call in any thread.

    Unlike with `asyncio.to_thread`, no frame of an error has the arguments. The frame of a pool
    would hold the call until the thread goes on.
    """

    def caught() -> tuple[T | None, BaseException | None]:
        try:
            return call(), None
        except BaseException as error:  # raised below, in another thread
            return None, error

    result, error = await asyncio.get_running_loop().run_in_executor(None, caught)
    if error is not None:
        raise error
    return cast("T", result)


class Calls:
    """Calls of a driver, made at once in the driver's thread."""

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call, or raise the error of the call."""
        return call()


def at_once(work: Coroutine[object, None, T]) -> T:
    """Return the result of a coroutine that waits for nothing.

    No event loop runs the coroutine, so the thread may have a loop, as in a notebook. A
    coroutine that waits is an error of the caller, and is closed.
    """
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise LocalProtocolError("the coroutine waits for something; run it in an event loop")


class Thread(Calls):
    """Thread that makes calls in the order in which they are passed.

    So the event loop stays free, and a `Server`, which takes one thread at a time, is safe.
    """

    def __init__(self) -> None:
        self._closed = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="secagg-session")

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call, or raise the call's error or LocalProtocolError."""
        if self._closed:
            raise closed()
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        """End the thread after the calls under way."""
        self._closed = True
        self._pool.shutdown(wait=False)


def closed() -> LocalProtocolError:
    """Return the error for a call of a closed session."""
    return LocalProtocolError("the session is closed; make a new one")
