"""Keys as bytes: a header, then numbers of fixed width, little-endian."""

from __future__ import annotations

import struct

from secagg.errors import ParameterError

__all__ = ["check_bits", "decode_key", "encode_key", "fixed", "number"]

HEADER = struct.Struct("<4sBHH")  # magic, version, bits of n, bits of exponents
VERSION = 1


def encode_key(magic: bytes, bits: int, exponent_bits: int | None, *parts: bytes) -> bytes:
    """Return a key of `bits` as bytes: the numbers of its parts after a header."""
    return HEADER.pack(magic, VERSION, bits, exponent_bits or 0) + b"".join(parts)


def fixed(value: int, bits: int) -> bytes:
    """Return a number in the width of `bits`, a multiple of 8."""
    return int(value).to_bytes(bits // 8, "little")


def decode_key(data: bytes, magic: bytes) -> tuple[bytes, bytes, int]:
    """Return the two numbers of a key, n or p and q, then h, and the exponents' bits.

    Raises
    ------
    ParameterError
        Not a key of this kind, version and length.
    """
    if len(data) < HEADER.size:
        raise ParameterError(f"{len(data)} bytes are no key")
    found, version, bits, exponent_bits = HEADER.unpack_from(data)
    if found != magic or version != VERSION:
        raise ParameterError(f"not a key of this kind and version {VERSION}")
    body, width = data[HEADER.size :], bits // 8
    if bits % 64 or len(body) != 2 * width:
        raise ParameterError(f"{len(data)} bytes are no key of {bits} bits")
    return body[:width], body[width:], exponent_bits


def check_bits(bits: int, data: bytes) -> None:
    """Refuse a key whose n is shorter than its header says: it has one spelling, and one id."""
    stated = HEADER.unpack_from(data)[2]
    if bits != stated:
        raise ParameterError(f"n has {bits} bits; the key's header says {stated}")


def number(data: bytes) -> int:
    """Undo `fixed`."""
    return int.from_bytes(data, "little")
