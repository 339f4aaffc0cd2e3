"""Plain code for the tasks of secagg, with ``cryptography``, numpy and Python integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

CLIP, SCALE = 8.0, 65536.0


def keystream(key: bytes, size: int) -> bytes:
    """Return the first `size` bytes of the AES-CTR stream of a key."""
    return Cipher(AES(key), CTR(bytes(16))).encryptor().update(bytes(size))


def split(coefficients: Sequence[int], points: Sequence[int], p: int) -> list[int]:
    """Return the values of a polynomial modulo p at some points, by Horner's rule."""
    shares = []
    for x in points:
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * x + coefficient) % p
        shares.append(value)
    return shares


def lagrange(points: Sequence[int], p: int) -> list[int]:
    """Return the weight of each point for the interpolation at zero, by Lagrange's formula."""
    weights = []
    for i, x in enumerate(points):
        above = below = 1
        for j, other in enumerate(points):
            if i != j:
                above, below = above * other % p, below * (other - x) % p
        weights.append(above * pow(below, -1, p) % p)
    return weights


def reconstruct(shares: Sequence[int], weights: Sequence[int], p: int) -> int:
    """Return the value at zero of the polynomial with these values, given its weights."""
    return sum(weight * share for weight, share in zip(weights, shares, strict=True)) % p


def encode(x: F64, random: U64 | None) -> U32:
    """Encode a vector with numpy: clip, check, scale, and round by the given random words."""
    if not np.isfinite(x).all():
        raise ValueError("the vector has NaN or infinity")
    y = np.clip(x, -CLIP, CLIP) * SCALE
    if random is None:
        return np.rint(y).astype(np.int64).astype(np.uint32)
    down = np.floor(y)
    up = (random >> 11) < (y - down) * 2.0**53
    return (down.astype(np.int64) + up).astype(np.uint32)
