"""Validation of arguments before their first use, with clear error messages."""

from __future__ import annotations

import numpy as np

from secagg.errors import ParameterError


def check_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Raise `ParameterError` unless `value` is a `kind`, which the message calls `wanted`."""
    if isinstance(value, kind):
        return
    # a class, passed in place of an instance
    given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    raise ParameterError(f"{name} must be {wanted}, not {given}")


def is_integer(value: object) -> bool:
    """Return True if a value is an int of Python or numpy, but not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_integer(name: str, value: int, low: int, high: int) -> None:
    """Raise `ParameterError` unless `value` is an int with low ≤ value ≤ high."""
    if not is_integer(value):
        raise ParameterError(f"{name} must be an int, not {value!r}")
    value = int(value)
    if not low <= value <= high:
        # Python refuses to print very long ints, which a caller may pass by mistake
        shown = str(value) if value.bit_length() <= 256 else f"of {value.bit_length()} bits"
        raise ParameterError(f"{name} is {shown}; it must lie between {low} and {high}")


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
