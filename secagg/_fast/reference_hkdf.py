"""SHA-256 of many rows, and HKDF of many secrets, over hashlib; specifies ``src/hkdf.c``."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays

U8 = NDArray[np.uint8]

_BLOCK = 64  # bytes that SHA-256 takes at a time
_DIGEST = 32
_MOST = 255 * _DIGEST
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


def sha256(rows: U8, out: U8) -> None:
    """Write the SHA-256 (FIPS 180-4) of each row to `out`.

    Parameters
    ----------
    rows : uint8[n, any]
    out : uint8[n, 32]
        Array that is overwritten with the digests; not `rows`.

    Raises
    ------
    ValueError
        A shape or dtype differs from the above, or an array is not C-contiguous.
    """
    check_arrays(np.uint8, 2, rows, out)
    if out.shape != (len(rows), _DIGEST):
        raise ValueError(f"rows and digests have shapes {rows.shape, out.shape}")
    count, width = rows.shape
    data = rows.tobytes()
    each = [
        hashlib.sha256(data[at * width : at * width + width]).digest() for at in range(count)
    ]
    out[:] = np.frombuffer(b"".join(each), np.uint8).reshape(out.shape)


def hkdf(secrets: U8, salt: bytes, infos: U8, out: U8) -> None:
    """Write HKDF-SHA256 (RFC 5869) of each secret and the row's info to `out`.

    Parameters
    ----------
    secrets : uint8[n, any]
        Input keying material, a row each.
    salt : bytes, at most 64
        Salt of all rows.
    infos : uint8[n, any]
        Context, a row each.
    out : uint8[n, L], L <= 8160
        Array that is overwritten with the output keying material; not one of the inputs.

    Raises
    ------
    ValueError
        A shape, dtype or length differs from the above, or an array is not C-contiguous.
    """
    check_arrays(np.uint8, 2, secrets, infos, out)
    rows = (len(secrets), len(infos), len(out))
    if len(set(rows)) != 1:
        raise ValueError(f"secrets, infos and results have {rows} rows")
    if len(salt) > _BLOCK:
        raise ValueError(f"a salt of {len(salt)} bytes; at most {_BLOCK}")
    length = out.shape[1]
    if length > _MOST:
        raise ValueError(f"results of {length} bytes; at most {_MOST}")
    salted = _pads(salt)
    for secret, info, result in zip(secrets, infos, out, strict=True):
        pads = _pads(_hmac(salted, secret.tobytes()))
        made = block = b""
        for counter in range(1, -(-length // _DIGEST) + 1):
            block = _hmac(pads, block + info.tobytes() + bytes([counter]))
            made += block
        result[:] = np.frombuffer(made[:length], np.uint8)


def _pads(key: bytes) -> tuple[bytes, bytes]:
    """Return the inner and the outer block of an HMAC key of at most 64 bytes (RFC 2104)."""
    padded = key.ljust(_BLOCK, b"\0")
    return padded.translate(_INNER), padded.translate(_OUTER)


def _hmac(pads: tuple[bytes, bytes], message: bytes) -> bytes:
    """Return HMAC-SHA256; over hashlib in half the time of ``cryptography`` or `hmac`."""
    inner, outer = pads
    return hashlib.sha256(outer + hashlib.sha256(inner + message).digest()).digest()
