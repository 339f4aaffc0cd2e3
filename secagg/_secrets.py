"""Confinement of secrets: no pickled keys, no frames of errors, no forks, no second thread.

A logger that records the variables of an error's frames would record private vectors, weights
and keys. So public functions that take or have secrets raise errors without the frames of this
package. A pickle would write a key into a file or a queue that the owner never chose.

A page of memory has the generation of the process. Linux empties the page in a fork, also in a
fork by C code, and the fork begins the next generation. Elsewhere a hook of Python's forks
empties the page, and the process id tells forks by C code apart. A process that shares the
parent's memory, as after vfork, stays unnoticed.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, iscoroutinefunction
from types import TracebackType
from typing import ClassVar, NoReturn, ParamSpec, Self, TypeVar, cast

from secagg.errors import LocalProtocolError, SecAggError

P = ParamSpec("P")
R = TypeVar("R")

_DROPPED = ("secagg", "numpy")
"""Packages with dropped frames; numpy's functions in Python take the same arrays."""

_RESUMABLE = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR
"""Flags of code whose frame can run on after an error that it raised."""


class Confined:
    """Base of immutable secrets: pickling raises an error, and a copy is the object itself."""

    __slots__ = ()
    _remedy: ClassVar[str]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise LocalProtocolError(
            f"this {type(self).__name__} is secret and cannot be pickled; {self._remedy}"
        )


def without_frames(function: Callable[P, R]) -> Callable[P, R]:
    """Raise the errors of `function` without the frames of secagg and numpy.

    Frames of the caller's code, such as an application's encoding, remain. An error of another
    class than secagg's gets a note with the lines of the dropped frames. A coroutine function
    raises errors when the coroutine is awaited, so the coroutine is wrapped.
    """
    if iscoroutinefunction(function):
        return cast("Callable[P, R]", _without_frames_in_coroutine(function))

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        handled = sys.exception()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            _confine(error, handled)
            del args, kwargs  # a kept frame of the caller's code leads back to this frame
            raise  # adds no frame: the traceback of a raise without argument is the error's own

    return call


def _without_frames_in_coroutine(
    function: Callable[P, Coroutine[object, object, R]],
) -> Callable[P, Coroutine[object, object, R]]:
    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        handled = sys.exception()
        try:
            return await function(*args, **kwargs)
        except BaseException as error:
            _confine(error, handled)
            del args, kwargs
            raise

    return call


def _confine(error: BaseException, handled: BaseException | None) -> None:
    """Drop frames from an error and from the errors behind it.

    `handled` is the error that the caller was handling, which stays unchanged, with all causes.
    """
    seen: set[int] = {id(handled)}
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        dropped: list[str] = []
        one.__traceback__ = _kept(one.__traceback__, dropped)
        if dropped and not isinstance(one, SecAggError):
            one.add_note("raised in secagg, without its frames: " + ", ".join(dropped))
        todo += [one.__context__, one.__cause__]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions


def _kept(first: TracebackType | None, dropped: list[str]) -> TracebackType | None:
    """Return a traceback without the frames to drop; append the dropped lines to `dropped`."""
    entries = []
    entry = first
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        frame = entry.tb_frame
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _DROPPED:
            kept = TracebackType(kept, frame, entry.tb_lasti, entry.tb_lineno)
            continue
        # `f_back` of a kept frame leads to frames of this package, whose variables go. A
        # coroutine or generator may have caught the error, and would end
        if not frame.f_code.co_flags & _RESUMABLE:
            with suppress(RuntimeError):  # a frame that still runs
                frame.clear()
        if frame.f_globals.get("__name__") != __name__:
            dropped.insert(0, f"{frame.f_code.co_qualname}:{entry.tb_lineno}")
    return kept


_GENERATION = struct.Struct("<Q")
_MADV_WIPEONFORK = 18
"""Advice of madvise(2), from Linux 4.14 on; older versions of Python do not name the advice."""


def _new_page() -> mmap.mmap | bytearray:
    if sys.platform == "win32":  # which cannot fork
        return bytearray(_GENERATION.size)
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux":
        with suppress(OSError):  # an older kernel
            page.madvise(_MADV_WIPEONFORK)
    return page


_page = _new_page()
_latest = 0
"""Generation of this process; in a fork before the first mark, generation of the parent."""


def process() -> tuple[int, int]:
    """Return a mark of this process; in a container, a fork can have the parent's process id.

    Forks of the same process have equal marks in this case, but nothing of each other.
    """
    global _latest  # noqa: PLW0603 - the page is global, too
    # Threads may begin the generation together. Each reads page and number in this order and
    # writes them in the reverse order, so all write the same.
    latest = _latest
    generation: int = _GENERATION.unpack_from(_page)[0]
    if generation == 0:
        generation = latest + 1
        _GENERATION.pack_into(_page, 0, generation)
        _latest = generation
    return os.getpid(), generation


class Exclusive:
    """Context manager for one thread at a time, and for one process; others get an error.

    Clients and servers have no other lock, and the kernels release the GIL. Two threads could
    mask two inputs with the same masks, or lose one of two additions to a total. A fork could
    mask another input, too. The error is a LocalProtocolError.
    """

    def __init__(self) -> None:
        self._token = [True]
        self._process: tuple[int, int] | None = None

    def bind(self) -> None:
        """Raise the error in all forks of this process from now on."""
        self._process = process()

    def __enter__(self) -> None:
        if self._process not in (None, process()):
            raise LocalProtocolError(
                "this client was copied into another process by a fork after it made its keys; "
                "make the client in the process that uses it"
            )
        try:
            self._token.pop()  # atomic: only one of two threads gets the token
        except IndexError:
            raise LocalProtocolError(
                "another call of this machine is under way; call it from one thread at a time"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._token.append(True)


def _empty() -> None:
    _GENERATION.pack_into(_page, 0, 0)


# the first generation: from now on an empty page is a fork's
process()
if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_empty)
