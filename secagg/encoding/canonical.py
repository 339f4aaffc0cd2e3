"""Encodings from the bytes that identify them."""

from __future__ import annotations

import struct

from secagg.encoding.fixed_point import FixedPoint
from secagg.encoding.integers import Integers

_FIXED_POINT, _INTEGERS = b"fixed point", b"integers"


def from_canonical(data: bytes) -> FixedPoint | Integers | None:
    """Return the encoding with the ``canonical()`` bytes `data`, or None for another class.

    Rounding and the treatment of elements beyond the clip are the defaults.

    Raises
    ------
    ParameterError
        A value is out of range.
    """
    if data.startswith(_FIXED_POINT) and len(data) == len(_FIXED_POINT) + 16:
        clip, fractional_bits = struct.unpack("<dQ", data[len(_FIXED_POINT) :])
        return FixedPoint(clip, fractional_bits)
    if data.startswith(_INTEGERS) and len(data) == len(_INTEGERS) + 8:
        return Integers(int.from_bytes(data[len(_INTEGERS) :], "little"))
    return None
