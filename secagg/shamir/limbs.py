"""Cutting of byte strings into elements of GF(p), and joining them again.

A limb has w = ⌊(b − 1) / 8⌋ bytes, little-endian, for a prime of b bits, so that a limb is
below p: seven bytes in GF(2^61 − 1).
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

from secagg.errors import ParameterError
from secagg.shamir import arithmetic
from secagg.shamir.arithmetic import Elements
from secagg.shamir.field import Field

LIMB_BYTES = 7

PROTOCOL_FIELD = Field()
"""GF(2^61 − 1), the default field."""


def limb_count(length: int, field: Field = PROTOCOL_FIELD) -> int:
    """Return the number of limbs of a secret of `length` bytes."""
    return -(-length // _limb_bytes(field))


@overload
def to_limbs(secret: bytes) -> NDArray[np.uint64]: ...


@overload
def to_limbs(secret: bytes, field: Field) -> Elements: ...


def to_limbs(secret: bytes, field: Field = PROTOCOL_FIELD) -> Elements:
    """Cut a secret into little-endian limbs, of seven bytes in GF(2^61 − 1)."""
    width = _limb_bytes(field)
    if field.modulus >= 1 << 63:
        cuts = (secret[i : i + width] for i in range(0, len(secret), width))
        return arithmetic.objects([int.from_bytes(cut, "little") for cut in cuts])
    rows = np.zeros((limb_count(len(secret), field), 8), dtype=np.uint8)
    padded = secret.ljust(len(rows) * width, b"\x00")
    rows[:, :width] = np.frombuffer(padded, dtype=np.uint8).reshape(-1, width)
    return rows.view("<u8").ravel().astype(np.uint64)


def from_limbs(limbs: Elements, length: int, field: Field = PROTOCOL_FIELD) -> bytes | None:
    """Return the secret of `length` bytes, or None if no such secret has these limbs."""
    width = _limb_bytes(field)
    if field.modulus >= 1 << 63:
        wide = b"".join(limb.to_bytes(width + 1, "little") for limb in limbs.tolist())
        joined = np.frombuffer(wide, np.uint8).reshape(-1, width + 1)
    else:
        joined = limbs.astype("<u8").view(np.uint8).reshape(-1, 8)
    secret = joined[:, :width].tobytes()
    # elements rebuilt from wrong shares mostly exceed a limb, or have bytes beyond the secret
    if joined[:, width:].any() or any(secret[length:]):
        return None
    return secret[:length]


def _limb_bytes(field: Field) -> int:
    width = (field.modulus.bit_length() - 1) // 8
    if width == 0:
        raise ParameterError(
            f"the field of {field.modulus} elements is too small for bytes; take a prime above "
            "256, or share integers"
        )
    return width
