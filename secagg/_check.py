"""Validation of arguments before their first use, with clear error messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeGuard

import numpy as np

from secagg._printable import in_short
from secagg.errors import ParameterError


def check_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Raise `ParameterError` unless `value` is a `kind`, which the message calls `wanted`."""
    if isinstance(value, kind):
        return
    # a class, passed in place of an instance
    given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    raise ParameterError(f"{name} must be {wanted}, not {given}")


def is_integer(value: object) -> bool:
    """Return whether a value is an int of Python or numpy; False for a bool and a duration."""
    # numpy derives its durations from its integers
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_real(value: object) -> TypeGuard[int | float]:
    """Return whether a value is an int or a float of Python or numpy; False for a bool."""
    return is_integer(value) or isinstance(value, float | np.floating)


def check_flag(name: str, value: object) -> None:
    """Raise `ParameterError` unless `value` is True or False; 1, "no" or None is neither."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be True or False, not {in_short(value)}")


def check_seconds(**times: float) -> None:
    """Raise `ParameterError` unless all arguments are numbers of seconds above 0."""
    for name, value in times.items():
        if not is_real(value) or not value > 0:  # NaN is not above 0
            raise ParameterError(
                f"{name} is {in_short(value)}; it must be a number of seconds above 0"
            )


def check_integer(name: str, value: int, low: int, high: int) -> None:
    """Raise `ParameterError` unless `value` is an int with low ≤ value ≤ high."""
    if not is_integer(value):
        raise ParameterError(f"{name} must be an int, not {in_short(value)}")
    value = int(value)
    if not low <= value <= high:
        raise ParameterError(
            f"{name} is {in_short(value)}; it must lie between {in_short(low)} and "
            f"{in_short(high)}"
        )


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def as_bytes(data: bytes | bytearray | memoryview, name: str = "a message") -> bytes:
    """Return bytes-like data as bytes; raise `ParameterError` for anything else."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise ParameterError(f"{name} must be bytes, not {type(data).__name__}")


def check_session(session: bytes) -> None:
    """Raise `ParameterError` for anything but at most 64 bytes."""
    check_kind("session", session, bytes, "bytes (encode text)")
    if len(session) > 64:
        raise ParameterError(
            f"session has {len(session)} bytes, more than 64; take a shorter name, or its hash"
        )
