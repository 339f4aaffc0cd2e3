"""Bytes of the parameters of a round, as docs/protocol.md §3.3 specifies them.

The layout is canonical: parameters have the same bytes exactly if they are equal.
`unpack` validates the layout only. ``RoundParams.from_bytes`` validates the values, too.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from secagg.encoding import FixedPoint, from_canonical
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.protocol.noise import Noise
from secagg.protocol.suites import NAMES, SuiteName

VERSION = 4
"""Version of the protocol: the first byte of parameters and of every message."""
SAME_RELEASE = "run releases of secagg with one version on both sides"
"""Remedy for bytes of another version."""
MAX_ENCODING_BYTES = 255
MAX_SESSION_BYTES = 64
MAX_NOISE_BYTES = 13
_HEAD = struct.Struct("<BBBBIIIIQQQ")
MAX_PARAMS_BYTES = _HEAD.size + 3 + MAX_ENCODING_BYTES + MAX_NOISE_BYTES + MAX_SESSION_BYTES
_SECURITY = ("semi-honest", "active")
_SHOWN = 20
"""Bytes of a session or of an unknown encoding that an error shows."""


class Fields(NamedTuple):
    """Fields of the parameters; errors name differences in this order.

    The fields are the same as in `RoundParams`, but `encoding` and `noise` are their
    ``canonical()`` bytes, b"" without noise. `min_survivors` is None for the smallest number
    that the threshold permits.
    """

    security: str
    allow_two_clients: bool
    count_clipped: bool
    suite: SuiteName
    n_clients: int
    threshold: int
    min_survivors: int | None
    neighbours: int | None
    length: int
    max_weight: int | None
    modulus: int
    encoding: bytes
    noise: bytes
    session: bytes


def pack(fields: Fields) -> bytes:
    """Return valid parameters as bytes."""
    head = _HEAD.pack(
        VERSION,
        _SECURITY.index(fields.security),
        bool(fields.allow_two_clients) | bool(fields.count_clipped) << 1,
        NAMES.index(fields.suite),
        fields.n_clients,
        fields.threshold,
        fields.min_survivors or 0,
        fields.neighbours or 0,
        fields.length,
        fields.max_weight or 0,
        fields.modulus - 1,  # 2^64 itself has no place in 8 bytes
    )
    parts = (fields.encoding, fields.noise, fields.session)
    return head + b"".join(bytes([len(part)]) + part for part in parts)


def unpack(data: bytes) -> Fields:
    """Return the fields of `data`, which may be out of range.

    Raises
    ------
    RemoteProtocolError
        "version", "length" or "parameters": these are not the bytes of parameters.
    """
    # before the length: another version may have another layout
    if data and data[0] != VERSION:
        raise malformed("version", other_version(data[0]))
    if len(data) <= _HEAD.size:
        raise malformed("length", f"{len(data)} bytes end before the encoding")
    _, security, flags, suite, n, t, m, k, length, weight, top = _HEAD.unpack_from(data)
    if security >= len(_SECURITY) or flags > 3 or suite >= len(NAMES):
        why = f"security {security}, flags {flags} or suite {suite} are unknown"
        raise malformed("parameters", why)
    encoding, rest = prefixed(data[_HEAD.size :])
    noise, rest = prefixed(rest)
    session, rest = prefixed(rest)
    if rest:
        raise malformed("length", f"{len(rest)} bytes after the session")
    if len(session) > MAX_SESSION_BYTES:
        raise malformed("parameters", f"a session of {len(session)} bytes, more than 64")
    return Fields(
        _SECURITY[security],
        bool(flags & 1),
        bool(flags & 2),
        NAMES[suite],
        n,
        t,
        m or None,
        k or None,
        length,
        weight or None,
        top + 1,
        encoding,
        noise,
        session,
    )


def compare(own: bytes, other: bytes, where: str) -> tuple[bool, str]:
    """Return the difference of valid parameters to others; `where` names the others' place.

    The result is True if only the session differs, and the difference in words, "" for none.
    """
    if own == other:
        return False, ""
    try:
        theirs = unpack(other)
    except RemoteProtocolError as error:
        return False, f"those {where} are malformed ({error.check})"
    mine = unpack(own)
    # the layout is canonical, so different bytes differ in at least one field
    first, *rest = [
        name for name in Fields._fields if getattr(mine, name) != getattr(theirs, name)
    ]
    both = f"{first} is {_shown(first, mine)} here and {_shown(first, theirs)} {where}"
    if first == "session":
        return True, f"it belongs to another session: {both}"
    more = f", and {', '.join(rest)} differ, too" if rest else ""
    return False, both + more


def other_version(first: int) -> str:
    """Return the mistake and the remedy for bytes that begin with another version."""
    known = {1: ", of secagg 0.4", 3: ", of development releases of secagg 0.5"}
    return (
        f"version {first} of the protocol{known.get(first, '')}; this side speaks only version "
        f"{VERSION}: {SAME_RELEASE}"
    )


def malformed(check: str, why: str) -> RemoteProtocolError:
    """Return the error for bytes that are not valid parameters."""
    why = f"these bytes are not valid parameters: {why}"
    return RemoteProtocolError(why, sender=None, phase="parameters", check=check)


def prefixed(data: bytes) -> tuple[bytes, bytes]:
    """Return the bytes behind a one-byte length, and the rest; raise if any is missing."""
    end = 1 + (data[0] if data else 0)
    if len(data) < end:
        raise malformed("length", "they end before their last field does")
    return data[1:end], data[end:]


def _shown(name: str, fields: Fields) -> str:
    value: object = getattr(fields, name)
    if name == "modulus" and fields.modulus & (fields.modulus - 1) == 0:
        return f"2^{fields.modulus.bit_length() - 1}"
    if name == "session":
        return _cut(repr(fields.session[:_SHOWN]), fields.session)
    if name == "min_survivors" and value is None:
        return "the default"
    if name == "noise":
        try:
            return str(Noise.from_canonical(fields.noise)) if fields.noise else "None"
        except ParameterError:
            return _cut(fields.noise[:_SHOWN].hex(), fields.noise)
    if name == "encoding":
        try:
            known = from_canonical(fields.encoding)
        except ParameterError:
            known = None
        if isinstance(known, FixedPoint):  # without the local choices
            return f"FixedPoint({known.clip}, {known.fractional_bits})"
        return str(known) if known else _cut(fields.encoding[:_SHOWN].hex(), fields.encoding)
    return str(value)


def _cut(text: str, whole: bytes) -> str:
    return text if len(whole) <= _SHOWN else f"{text}…"
