"""Fields of messages and contexts, found by walking them, and altered values for each.

A value is *opened* into named parts and a function that makes the value again of parts. Bytes
are opened, too, if they are parameters, a frame or any other MessagePack array. So a field that
a later release adds is found without a change here.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from secagg import Noise, RoundParams, SecAggError
from secagg.oneshot import OneShotParams
from secagg.session.wire import AttemptName, encode, read_name, read_task, write_name

Path = tuple[str, ...]
Parts = dict[str, Any]
Opened = tuple[Parts, Callable[[Parts], Any]]
Opener = Callable[[Any, str], Opened | None]

INSERTED = "lying"
"""Key that is inserted where a mapping is open."""
_NAME_BYTES = 54


class Unbuildable(Exception):
    """A lie that not even a lying server can send: its value has no form on the wire."""


OPENERS: list[Opener] = []
"""Functions that open values, the last one first; a door adds those of its messages."""


def opener(function: Opener) -> Opener:
    OPENERS.append(function)
    return function


def opened(value: Any, name: str = "") -> Opened | None:
    """Return the parts of a value and the way back, or None if the value is a leaf."""
    for one in reversed(OPENERS):
        found = one(value, name)
        if found is not None:
            return found
    return None


@opener
def _sequence(value: Any, _: str) -> Opened | None:
    if type(value) not in (list, tuple):
        return None
    kind = type(value)
    return {str(i): one for i, one in enumerate(value)}, lambda parts: kind(parts.values())


@opener
def _mapping(value: Any, _: str) -> Opened | None:
    if type(value) is not dict:
        return None
    keys = {str(key): key for key in value}
    parts = {name: value[key] for name, key in keys.items()}
    return parts, lambda new: {keys.get(name, name): one for name, one in new.items()}


@opener
def _named(value: Any, _: str) -> Opened | None:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value._asdict(), lambda parts: type(value)(**parts)
    if isinstance(value, msgspec.Struct):
        parts = {f: getattr(value, f) for f in value.__struct_fields__}
        return parts, lambda new: type(value)(**new)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return parts, lambda new: type(value)(**new)
    return None


@opener
def _bytes(value: Any, name: str) -> Opened | None:
    """Open bytes that are the same after they were read and written."""
    if type(value) is not bytes or len(value) < 3:
        return None
    if name == "session" and len(value) >= _NAME_BYTES:
        read = read_name(value)
        assert isinstance(read, AttemptName)
        prefix = value[:-_NAME_BYTES]
        return (
            {"prefix": prefix, **read._asdict()},
            lambda parts: write_name(parts.pop("prefix"), AttemptName(**parts)),
        )
    for decode, write in _FORMATS:
        with suppress(SecAggError, msgspec.MsgspecError, ValueError, RecursionError):
            found = decode(value)
            if write(found) == value and (parts := opened(found)) is not None:
                return parts[0], lambda new, write=write, whole=parts[1]: write(whole(new))
    return None


def _packed(data: bytes) -> Any:
    found = msgspec.msgpack.decode(data)
    if type(found) not in (list, dict) or not found:
        raise ValueError("a leaf")
    return found


_FORMATS: list[tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = [
    (read_task, encode),
    (RoundParams.from_bytes, RoundParams.to_bytes),
    (OneShotParams.from_bytes, OneShotParams.to_bytes),
    (_packed, msgspec.msgpack.encode),
    # the protocol's messages and the session's frames have the byte of a version before them
    (lambda data: _packed(data[1:]), lambda found: b"\2" + msgspec.msgpack.encode(found)),
    (lambda data: _packed(data[1:]), lambda found: b"\1" + msgspec.msgpack.encode(found)),
]


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield all places in a value, containers before what is in them, with their values."""
    yield path, value
    found = opened(value, path[-1] if path else "")
    for name, part in (found[0] if found else {}).items():
        yield from walk(part, (*path, name))


def leaves(value: Any) -> dict[str, str]:
    """Return leaves and empty containers of a value by their places, each as a short text."""
    found = {}
    for path, one in walk(value):
        parts = opened(one, path[-1] if path else "")
        if parts is None or not parts[0]:
            found[".".join(path)] = _text(one)
    return found


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = (str(value.dtype), value.shape, value.tobytes())
    text = repr(value)
    return text if len(text) < 40 else hashlib.sha256(text.encode()).hexdigest()[:16]


def at(value: Any, path: Path) -> Any:
    """Return the value at a place; raise KeyError if there is none."""
    name = ""
    for step in path:
        found = opened(value, name)
        if found is None:
            raise KeyError(step)
        value, name = found[0][step], step
    return value


def replaced(value: Any, path: Path, new: Any, name: str = "") -> Any:
    """Return a value with another one at a place.

    Raises
    ------
    KeyError
        There is no such place.
    Unbuildable
        The whole has no form with the new value.
    """
    if not path:
        return new
    found = opened(value, name)
    if found is None:
        raise KeyError(path[0])
    parts, whole = found
    parts = {**parts, path[0]: replaced(parts[path[0]], path[1:], new, path[0])}
    try:
        return whole(parts)
    except Unbuildable:
        raise
    except Exception as error:
        raise Unbuildable(f"{path[0]}: {type(error).__name__}") from None


def substituted(value: Any, old: bytes, new: bytes) -> Any:
    """Return a value with other bytes wherever `old` is in it."""
    if isinstance(value, bytes):
        return value.replace(old, new)
    found = opened(value)
    if found is None:
        return value
    parts, whole = found
    return whole({name: substituted(one, old, new) for name, one in parts.items()})


def mutations(value: Any) -> dict[str, Any]:
    """Return altered values by the names of the alterations, of the same type or None."""
    found: dict[str, Any] = {}
    match value:
        case bool():
            found = {"not": not value}
        case int():
            found = {"more": value + 1, "zero": 0, "negative": -value - 1, "huge": 1 << 62}
        case float():
            found = {"double": 2 * value, "zero": 0.0, "negative": -value, "huge": 1e300}
            found["tiny"] = 1e-309
        case Fraction():
            found = {"double": 2 * value, "half": value / 2, "tiny": Fraction(1)}
        case Noise():
            found = {"none": None}
        case str():
            swapped = {"active": "semi-honest", "hybrid": "x25519"}
            swapped |= {other: one for one, other in swapped.items()}
            found = {"other": swapped.get(value, value + "x"), "empty": ""}
        case bytes():
            flipped = value[:-1] + bytes([value[-1] ^ 1]) if value else b"\1"
            found = {"flipped": flipped, "zeros": bytes(len(value)), "empty": b""}
        case None:
            found = {"one": 1}
        case np.ndarray():
            found = {"more": value + 1, "zeros": np.zeros_like(value)}
        case list() | tuple():
            found = {"shorter": value[:-1], "reversed": value[::-1], "repeated": value + value}
        case Mapping():
            found = _mapping_mutations(value)
    return {label: new for label, new in found.items() if not _same(new, value)}


def _mapping_mutations(value: Mapping[str, Any]) -> dict[str, Any]:
    like = next(iter(value.values()), 1.5)
    try:
        inserted = type(value)({**value, INSERTED: like})  # type: ignore[call-arg]
        shorter = type(value)(dict(list(value.items())[:-1]))  # type: ignore[call-arg]
    except (TypeError, ValueError):
        return {}
    return {"inserted": inserted, "shorter": shorter} if value else {"inserted": inserted}


def _same(one: Any, other: Any) -> bool:
    with suppress(Exception):
        return bool(np.all(one == other)) and type(one) is type(other)
    return False
