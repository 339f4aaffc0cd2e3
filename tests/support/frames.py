"""Search of an error's frames for secrets, as a logger that records variables finds them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from itertools import takewhile
from types import CellType, FrameType, FunctionType, MethodType, ModuleType

import numpy as np


def errors_behind(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and, by way of contexts, causes and groups, all errors behind it."""
    todo, seen = [error], set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        todo += [one.__context__, one.__cause__, *getattr(one, "exceptions", ())]


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """Yield the frames of an error and of all errors behind it."""
    for one in errors_behind(error):
        entry = one.__traceback__
        while entry is not None:
            yield entry.tb_frame
            entry = entry.tb_next


def calls(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, the frame's caller, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def leaks(error: BaseException, secrets: list[bytes], own: str) -> list[str]:
    """Return the places in frames of modules other than `own` from which a secret is reached.

    Secrets are searched in bytes, in arrays, and in ints as their little-endian bytes. Callers
    of the frames are searched, too, up to frames that still run.
    """
    running = {id(frame) for frame in calls(sys._getframe())}
    return [
        f"{frame.f_code.co_qualname}: {name}"
        for last in frames_of(error)
        for frame in takewhile(lambda one: id(one) not in running, calls(last))
        if frame.f_globals.get("__name__") != own
        for name, value in frame.f_locals.items()
        if any(secret in data for data in bytes_in(value) for secret in secrets)
    ]


def bytes_in(root: object) -> Iterator[bytes]:
    """Yield the bytes of all that is reached from an object; also of arrays and ints."""
    todo, seen = [root], set()
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, ModuleType | type):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            yield one.tobytes()
            todo.append(one.base)
        elif isinstance(one, bytes | bytearray):
            yield bytes(one)
        elif isinstance(one, int):
            yield one.to_bytes(one.bit_length() // 8 + 1, "little", signed=True)
        elif type(one).__name__ == "mpz":
            yield int(one).to_bytes(int(one).bit_length() // 8 + 1, "little", signed=True)
        elif isinstance(one, FunctionType):
            todo += one.__closure__ or ()
        elif isinstance(one, CellType):
            todo += gc.get_referents(one)
        elif isinstance(one, MethodType):
            todo.append(one.__self__)
        elif not isinstance(one, FrameType):
            todo += gc.get_referents(one)
            todo += [
                getattr(one, slot)
                for slot in getattr(type(one), "__slots__", ())
                if isinstance(slot, str) and hasattr(one, slot)
            ]
