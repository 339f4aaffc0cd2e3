"""Confinement of secrets: keys that do not pickle, and errors without frames.

A logger that records the variables of an error's frames would record private vectors, weights
and keys. So public functions that take or have secrets raise errors without the frames of this
package. A pickle would write a key into a file or a queue that the owner never chose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import iscoroutinefunction
from types import TracebackType
from typing import ClassVar, NoReturn, ParamSpec, Self, TypeVar, cast

from secagg.errors import LocalProtocolError, SecAggError

P = ParamSpec("P")
R = TypeVar("R")

_DROPPED = ("secagg", "numpy")
"""Packages with dropped frames; numpy's functions in Python take the same arrays."""


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
        elif frame.f_globals.get("__name__") != __name__:
            dropped.insert(0, f"{frame.f_code.co_qualname}:{entry.tb_lineno}")
    return kept
