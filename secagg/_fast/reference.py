"""Specification of every kernel of the compiled core, in simple numpy.

Each function has the same signature and result, bit for bit, as the twin in ``_kernels``; tests
compare the twins with Hypothesis. The functions here run without compiled code, or with
``SECAGG_PURE=1``; but ``openssl_x25519`` runs in place of ``x25519`` here. Both twins raise
ValueError for wrong shapes, dtypes and parameters, and leave all other checks to their callers.
Masks are in ``reference_masks``, noise in ``reference_gaussian`` and ``reference_shares``,
rotations in ``reference_rotation``, SHA-256 and HKDF in ``reference_hkdf``, AES-GCM in
``reference_gcm``, GF(2^61 - 1) in ``reference_m61`` and ``reference_decoder``, other fields in
``reference_prime``, large numbers in ``reference_modular``, X25519 in ``reference_x25519``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_lanes
from secagg._fast.reference_decoder import m61_errors
from secagg._fast.reference_gaussian import discrete_gaussian
from secagg._fast.reference_gcm import gcm_open, gcm_seal
from secagg._fast.reference_hkdf import hkdf, sha256
from secagg._fast.reference_m61 import (
    m61_add,
    m61_dot,
    m61_inv,
    m61_lagrange_at_zero,
    m61_matmul,
    m61_mul,
    m61_poly_eval,
    m61_sub,
)
from secagg._fast.reference_masks import keystream as keystream
from secagg._fast.reference_masks import mask_mod, mask_words
from secagg._fast.reference_modular import (
    modular_multiply,
    modular_power,
    modular_power_fixed,
    modular_radix,
    modular_table,
    modular_width,
)
from secagg._fast.reference_prime import (
    prime_lagrange_at_zero,
    prime_matmul,
    prime_poly_eval,
)
from secagg._fast.reference_rotation import rotate, widen
from secagg._fast.reference_shares import gaussian_shares
from secagg._fast.reference_x25519 import x25519

__all__ = [
    "decode",
    "discrete_gaussian",
    "encode",
    "gaussian_shares",
    "gcm_open",
    "gcm_seal",
    "hkdf",
    "m61_add",
    "m61_dot",
    "m61_errors",
    "m61_inv",
    "m61_lagrange_at_zero",
    "m61_matmul",
    "m61_mul",
    "m61_poly_eval",
    "m61_sub",
    "mask_mod",
    "mask_words",
    "modular_multiply",
    "modular_power",
    "modular_power_fixed",
    "modular_radix",
    "modular_table",
    "modular_width",
    "pack_bits",
    "pack_into",
    "prime_lagrange_at_zero",
    "prime_matmul",
    "prime_poly_eval",
    "rotate",
    "sha256",
    "unpack_bits",
    "widen",
    "x25519",
]

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def encode(
    x: F32 | F64,
    out: U32 | U64,
    clip: float,
    scale: float,
    weight: int,
    modulus: int,
    random: U64 | None,
) -> tuple[int, int]:
    """Encode floats as fixed-point integers mod R: out = weight · round(clipped x · scale).

    Parameters
    ----------
    x : float32[d] or float64[d]
        Vector to encode. Subnormal elements are taken as zero: elements below the least normal
        number of the dtype in absolute value.
    out : uint32[d] or uint64[d]
        Overwritten with elements of [0, R).
    clip, scale : float, > 0
        y = min(max(x, -clip), clip) · scale.
    weight : int, >= 0
        Factor with clip · scale · max(weight, 1) <= 2^62, and with ⌈clip · scale⌉ · weight < R
        unless R is a power of two.
    modulus : int
        R = 2^b, where b is at most the bits of a lane of ``out``, 32 or 64. For uint64 also any
        R with 2 <= R <= 2^62.
    random : uint64[d] or None
        None rounds y to nearest, ties to even. Otherwise y is rounded up if
        (random >> 11) < (y - floor(y)) · 2^53, which is unbiased to 2^-53.

    Returns
    -------
    clipped : int
        Number of elements above clip in absolute value.
    bad : int
        Index of the first element that is not finite, or -1. If an element is not finite, the
        content of ``out`` is unspecified.
    """
    check_lanes(out)
    _check_vector(x, np.float32 if x.dtype == np.float32 else np.float64, out.size)
    _check_modulus(modulus, out.itemsize)
    _check_encoding(clip, scale, weight, modulus)
    if random is not None:
        _check_vector(random, np.uint64, out.size)
    # subnormals to zero, because a CPU takes other time for them, which an observer could see
    x = np.where(np.abs(x) < np.finfo(x.dtype).tiny, 0, x).astype(np.float64)
    clipped = int(np.count_nonzero(np.abs(x) > clip))
    finite = np.isfinite(x)
    if not finite.all():
        return clipped, int(np.argmin(finite))
    y = np.clip(x, -clip, clip) * scale
    if random is None:
        value = np.rint(y).astype(np.int64)
    else:
        down = np.floor(y)
        # 53 bits are exact as float64; all 64 would round, and rounding would be biased
        up = (random >> 11).astype(np.float64) < (y - down) * 2.0**53
        value = down.astype(np.int64) + up
    value *= weight
    if modulus & (modulus - 1):
        out[:] = value % modulus
    else:  # the low bits of two's complement are the residue mod 2^b
        out[:] = (value.astype(np.uint64) & (modulus - 1)).astype(out.dtype)
    return clipped, -1


def decode(values: U32 | U64, out: F64, modulus: int, inverse_scale: float) -> None:
    """Lift residues to integers in [-R/2, R/2) and scale them: the inverse of ``encode``.

    Parameters
    ----------
    values : uint32[d] or uint64[d], 0 <= v < R
    out : float64[d]
        Overwritten with float(v if v <= (R - 1) // 2 else v - R) · inverse_scale.
    modulus : int
        R; see ``encode``.
    inverse_scale : float
        1 / scale.
    """
    check_lanes(values)
    _check_vector(out, np.float64, values.size)
    _check_modulus(modulus, values.itemsize)
    wide = values.astype(np.uint64)
    below = wide - (modulus % 2**64)  # v - R in two's complement
    lifted = np.where(wide <= (modulus - 1) // 2, wide, below).view(np.int64)
    np.multiply(lifted.astype(np.float64), inverse_scale, out=out)


def pack_bits(values: U32 | U64, bits: int) -> bytes:
    """Concatenate the low b bits of every value, least significant bit first.

    Parameters
    ----------
    values : uint32[d] or uint64[d]
        Value i goes to bits [i b, (i + 1) b) of a little-endian bit string; higher bits of the
        value are dropped.
    bits : int
        b, 1 <= b <= 32 for uint32 and 1 <= b <= 64 for uint64.

    Returns
    -------
    bytes of length ceil(d b / 8), zero after the last value
    """
    check_lanes(values)
    _check_bits(bits, values.itemsize)
    octets = values.astype(f"<u{values.itemsize}").view(np.uint8)
    octets = octets.reshape(values.size, values.itemsize)
    table = np.unpackbits(octets, axis=1, bitorder="little")
    return np.packbits(table[:, :bits], bitorder="little").tobytes()


def pack_into(values: U32 | U64, bits: int, packed: NDArray[np.uint8]) -> None:
    """Overwrite `packed`, uint8[ceil(d b / 8)], with the bytes of ``pack_bits``."""
    found = np.frombuffer(pack_bits(values, bits), np.uint8)
    _check_vector(packed, np.uint8, found.size)
    packed[:] = found


def unpack_bits(data: bytes | bytearray | memoryview, bits: int, out: U32 | U64) -> None:
    """Undo ``pack_bits`` into `out`; raise ValueError if a bit after the last value is set."""
    check_lanes(out)
    _check_bits(bits, out.itemsize)
    octets = np.frombuffer(data, np.uint8)
    if octets.size != (out.size * bits + 7) // 8:
        raise ValueError(f"{octets.size} bytes are not {out.size} values of {bits} bits")
    string = np.unpackbits(octets, bitorder="little")
    # a vector has one form as bytes: padding must not carry anything
    if string[out.size * bits :].any():
        raise ValueError("a padding bit is set")
    table = np.zeros((out.size, 8 * out.itemsize), np.uint8)
    table[:, :bits] = string[: out.size * bits].reshape(out.size, bits)
    out[:] = np.packbits(table, axis=1, bitorder="little").view(f"<u{out.itemsize}")[:, 0]


def _check_vector(
    array: NDArray[Any], dtype: type[np.float32 | np.float64 | np.uint64 | np.uint8], size: int
) -> None:
    if array.dtype != dtype or array.shape != (size,) or not array.flags.c_contiguous:
        raise ValueError(f"expected a contiguous vector of {size} {dtype.__name__}")


def _check_modulus(modulus: int, width: int) -> None:
    power_of_two = modulus & (modulus - 1) == 0
    largest = 2 ** (8 * width) if power_of_two else 2**62
    if not 2 <= modulus <= largest or (width == 4 and not power_of_two):
        raise ValueError(f"modulus {modulus} does not fit lanes of {8 * width} bits")


def _check_encoding(clip: float, scale: float, weight: int, modulus: int) -> None:
    if min(clip, scale) <= 0 or weight < 0:
        raise ValueError("clip and scale must be positive, weight not negative")
    # max(weight, 1) would branch on the weight
    if not (clip * scale <= 2.0**62 and clip * scale * weight <= 2.0**62):
        raise ValueError("clip · scale · weight exceeds 2^62")
    if modulus & (modulus - 1) and math.ceil(clip * scale) * weight >= modulus:
        raise ValueError("weight · ⌈clip · scale⌉ is not below the modulus")


def _check_bits(bits: int, width: int) -> None:
    if not 1 <= bits <= 8 * width:
        raise ValueError(f"{bits} bits do not fit lanes of {8 * width} bits")
