"""Bytes of the parameters for one-shot sums.

The layout is canonical: equal parameters have equal bytes, and other bytes are of other
parameters. Noise is ``u64(256 σ)`` after the keys, and empty without noise. `unpack` validates
the layout only. ``OneShotParams.from_bytes`` validates the values, too.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import NamedTuple

from secagg.errors import ParameterError
from secagg.oneshot.suites import KEY_BYTES
from secagg.protocol.noise import STEPS, Noise
from secagg.protocol.params_bytes import SAME_RELEASE, malformed, prefixed
from secagg.protocol.shape import Security, Shape
from secagg.protocol.suites import NAMES, SuiteName

VERSION = 1
_HEAD = struct.Struct("<BBBBBIIQQQ")
_NOISE = struct.Struct("<Q")
_SECURITY: tuple[Security, ...] = ("semi-honest", "active")
_IDENTITY_BYTES = 32


class Fields(NamedTuple):
    """Fields of the parameters, in the order of the bytes but for the helpers' number.

    The fields are as in `OneShotParams`, but `encoding` is the encoding's canonical bytes.
    """

    security: Security
    suite: SuiteName
    threshold: int
    n_clients: int
    min_clients: int
    length: int
    max_weight: int | None
    modulus: int
    encoding: bytes
    session: bytes
    helpers: tuple[tuple[bytes, bytes], ...]
    noise: Noise | None


def pack(
    shape: Shape,
    suite: SuiteName,
    threshold: int,
    min_clients: int,
    helpers: tuple[tuple[bytes, bytes], ...],
    noise: Noise | None,
) -> bytes:
    """Return valid parameters as bytes."""
    head = _HEAD.pack(
        VERSION,
        _SECURITY.index(shape.security),
        NAMES.index(suite),
        threshold,
        len(helpers),
        shape.n_clients,
        min_clients,
        shape.length,
        shape.max_weight or 0,
        shape.ring.modulus - 1,  # 2^64 itself has no place in 8 bytes
    )
    texts = shape.encoding.canonical(), shape.session
    named = b"".join(bytes([len(part)]) + part for part in texts)
    keys = b"".join(box + identity for box, identity in helpers)
    return head + named + keys + (b"" if noise is None else _NOISE.pack(noise.scaled))


def unpack(data: bytes) -> Fields:
    """Return the fields of `data`, which may be out of range.

    Raises
    ------
    RemoteProtocolError
        "version", "length" or "parameters": these are not the bytes of parameters.
    """
    if data and data[0] != VERSION:
        why = f"version {data[0]} of one-shot sums; this side speaks only version {VERSION}"
        raise malformed("version", f"{why}: {SAME_RELEASE}")
    if len(data) <= _HEAD.size:
        raise malformed("length", f"{len(data)} bytes end before the encoding")
    _, security, suite, t, helpers, n, least, length, weight, top = _HEAD.unpack_from(data)
    if security >= len(_SECURITY) or suite >= len(NAMES):
        raise malformed("parameters", f"security {security} or suite {suite} is unknown")
    encoding, rest = prefixed(data[_HEAD.size :])
    session, rest = prefixed(rest)
    box = KEY_BYTES[NAMES[suite]]
    each = box + _IDENTITY_BYTES
    keys, noise = rest[: helpers * each], rest[helpers * each :]
    if len(keys) != helpers * each or len(noise) not in (0, _NOISE.size):
        raise malformed("length", f"{len(rest)} bytes of keys and noise for {helpers} helpers")
    return Fields(
        _SECURITY[security],
        NAMES[suite],
        t,
        n,
        least,
        length,
        weight or None,
        top + 1,
        encoding,
        session,
        tuple(
            (keys[at : at + box], keys[at + box : at + each])
            for at in range(0, len(keys), each)
        ),
        _noise(noise),
    )


def _noise(data: bytes) -> Noise | None:
    if not data:
        return None
    (scaled,) = _NOISE.unpack(data)
    try:
        return Noise(Fraction(scaled, STEPS))
    except ParameterError as error:
        raise malformed("parameters", str(error)) from None
