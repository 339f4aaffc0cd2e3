"""Text to print and to log: texts of other parties made safe, and keys made short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MOST_BITS, _MOST_CHARACTERS = 256, 100
"""Lengths of values that a message shows: numbers of 64 bits and 2^256, a line of others."""


def printable(text: str) -> str:
    r"""Return a text with control characters, and all others that do not print, escaped.

    A server chooses the text of its errors. Without escapes, the text could move the cursor of
    a terminal, forge lines of a log or reverse the order of letters. ``ESC`` becomes ``\x1b``,
    a line feed ``\n``, and a lone surrogate ``\ud800``.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )


def short_repr(instance: DataclassInstance, **short: str) -> str:
    """Return the ``repr`` of a dataclass, with texts in place of the values of some fields."""
    shown = {
        f.name: repr(getattr(instance, f.name)) for f in fields(instance) if f.repr
    } | short
    values = ", ".join(f"{name}={value}" for name, value in shown.items())
    return f"{type(instance).__qualname__}({values})"


def in_short(value: object) -> str:
    """Return the ``repr`` of a value for a message; a long value is named by its type."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:  # str raises beyond 14,000
        return f"an int of {value.bit_length()} bits"
    shown = repr(value)
    return shown if len(shown) <= _MOST_CHARACTERS else f"a long {type(value).__name__}"


def at_least(value: float) -> str:
    """Return a number ≥ 0 with three digits, rounded up: an argument, or a bound."""
    rounded = Context(prec=3, rounding=ROUND_CEILING).create_decimal(value)
    return f"{float(rounded):.3g}"


def fingerprints(keys: Iterable[bytes]) -> str:
    """Return the first eight hexadecimal digits of each public key, as in ``repr`` of a key."""
    return f"<{', '.join(key.hex()[:8] for key in keys)}>"
