"""Byte strings with a long part that is written in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import TypeVar

T = TypeVar("T")


def filled(
    parts: Iterable[bytes], size: int, fill: Callable[[memoryview], T]
) -> tuple[bytes, T]:
    """Return `parts` and `size` ≥ 1 more bytes as one string, and the result of `fill`.

    `fill` overwrites the memory of these bytes, which is zero before, and must not keep the
    memory. A ``join`` would copy the bytes, which takes longer than writing them.
    """
    made = BytesIO()
    made.writelines(parts)
    start = made.tell()
    # one byte at the end makes all memory before it, as zeros
    made.seek(start + size - 1)
    made.write(b"\0")
    result = fill(made.getbuffer()[start:])
    return made.getvalue(), result  # a copy only if a thread still has the view
