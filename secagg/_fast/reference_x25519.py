"""X25519 of RFC 7748 in Python integers: the twin of ``src/x25519_ifma.c``.

This twin serves the tests. ``openssl_x25519`` runs where the kernel cannot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays

U8 = NDArray[np.uint8]

_BYTES = 32
_P = 2**255 - 19
_A24 = 121665


def x25519(scalars: U8, points: U8, out: U8) -> None:
    """Write X25519 of each scalar and point to `out`.

    The function of RFC 7748, section 5, clamps the scalars, ignores the top bit of a point, and
    takes points from 2^255 - 19 on modulo that number. The result is zero for points of low
    order; the caller decides on the meaning of zero.

    Parameters
    ----------
    scalars : uint8[n, 32] or uint8[1, 32]
        Scalars before clamping, little-endian; a single scalar serves all points.
    points : uint8[n, 32]
        u-coordinates, little-endian.
    out : uint8[n, 32]
        Array that is overwritten with the results in [0, 2^255 - 19); not one of the inputs.

    Raises
    ------
    ValueError
        A shape or dtype differs from the above, or an array is not C-contiguous.
    """
    check_rows(scalars, points, out)
    for i, point in enumerate(points):
        scalar = _number(scalars[i if len(scalars) > 1 else 0])
        # a multiple of 8 removes parts of small order; bit 254 fixes the length of the ladder
        scalar = (scalar & (2**254 - 8)) | 2**254
        result = _ladder(scalar, _number(point) & (2**255 - 1))
        out[i] = np.frombuffer(result.to_bytes(_BYTES, "little"), np.uint8)


def check_rows(scalars: U8, points: U8, out: U8) -> None:
    """Raise ValueError if the arguments of `x25519` do not fit."""
    check_arrays(np.uint8, 2, scalars, points, out)
    rows = (len(points), _BYTES)
    if (points.shape, out.shape) != (rows, rows) or scalars.shape not in (rows, (1, _BYTES)):
        shapes = f"{scalars.shape}, {points.shape} and {out.shape}"
        raise ValueError(f"shapes {shapes} are not n scalars, or one, n points and n results")


def _ladder(k: int, u: int) -> int:
    """Return the u-coordinate of k times a point, by RFC 7748's ladder and names."""
    x2, z2, x3, z3 = 1, 0, u, 1
    for t in reversed(range(255)):
        if k >> t & 1:
            (x2, z2), (x3, z3) = _step(u, x3, z3, x2, z2)[::-1]
        else:
            (x2, z2), (x3, z3) = _step(u, x2, z2, x3, z3)
    return x2 * pow(z2, _P - 2, _P) % _P


def _step(
    u: int, x2: int, z2: int, x3: int, z3: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return twice the first point, and the sum of both; u is their difference's coordinate."""
    a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
    aa, bb, da, cb = a * a % _P, b * b % _P, d * a, c * b
    e = aa - bb
    doubled = aa * bb % _P, e * (aa + _A24 * e) % _P
    return doubled, ((da + cb) ** 2 % _P, u * (da - cb) ** 2 % _P)


def _number(row: U8) -> int:
    return int.from_bytes(row.tobytes(), "little")
