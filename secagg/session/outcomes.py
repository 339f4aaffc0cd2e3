"""Outcomes of rounds as bytes: a sum, or the error of the last attempt."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import msgspec
import numpy as np
from msgspec import Struct

from secagg import _fast
from secagg.encoding import Lanes
from secagg.errors import Dispute, RemoteProtocolError, TooFewSurvivors
from secagg.journal.lock import spoilt
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.oneshot.result import decode
from secagg.protocol import RoundParams
from secagg.protocol.messages import pack_ids, unpack_ids
from secagg.server import RoundResult
from secagg.server.result import decode_sum

Params = RoundParams | OneShotParams
_DIGEST_BYTES = 32


class _Sum(Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """Sum modulo R, packed at ⌈log2 R⌉ bits an element, and its survivors, packed."""

    total: bytes
    survivors: bytes
    disputes: tuple[tuple[int, int], ...]
    outvoted: tuple[int, ...]


class _Error(Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """Error of a failed round; without a `check` it is TooFewSurvivors."""

    why: str
    phase: str
    check: str
    survivors: int
    needed: int
    sender: int | None
    disputes: tuple[tuple[int, int], ...]
    helpers: tuple[int, ...]


def write_result(result: RoundResult, params: Params) -> bytes:
    """Return a result as bytes."""
    ring = params.ring
    more = [] if result.weight is None else [result.weight]
    more += [] if result.clipped is None else [result.clipped]
    integers = np.concatenate([result.integers, np.array(more, dtype=np.int64)])
    total: Lanes = ring.zeros(integers.size)
    if ring.is_power_of_two:
        total[:] = integers.view(np.uint64).astype(ring.dtype)
        ring.reduce(total)
    else:
        total[:] = np.mod(integers, ring.modulus)
    outvoted = result.outvoted if isinstance(result, OneShotResult) else ()
    packed = _fast.pack_bits(total, ring.bits)
    disputes = tuple((dealer, holder) for dealer, holder in result.disputes)
    return _write(_Sum(packed, pack_ids(result.survivors), disputes, outvoted))


def read_result(data: bytes, params: Params) -> RoundResult | None:
    """Return the result that `write_result` wrote, or None for an error.

    `JournalError` is raised if the bytes were altered.
    """
    found = _read(data)
    if isinstance(found, _Error):
        return None
    total = params.ring.zeros(params.elements)
    ids = unpack_ids(found.survivors)
    with suppress(ValueError, RemoteProtocolError):
        _fast.unpack_bits(found.total, params.ring.bits, total)
        if ids is not None and isinstance(params, OneShotParams):
            return decode(total, ids, found.outvoted, params)
        if ids is not None and isinstance(params, RoundParams):
            disputes = tuple(Dispute(*pair) for pair in found.disputes)
            return decode_sum(total, ids, disputes, params)
    raise spoilt("a stored result was altered")


def reason(error: TooFewSurvivors | RemoteProtocolError) -> str:
    """Return the text of an error without sender, phase and check, which it states first."""
    return str(error).partition(": ")[2]


def write_error(error: TooFewSurvivors | RemoteProtocolError) -> bytes:
    """Return the error of a failed round as bytes."""
    why = reason(error)
    if isinstance(error, TooFewSurvivors):
        counts = error.survivors, error.needed
        return _write(_Error(why, error.phase, "", *counts, None, (), ()))
    disputes = tuple((dealer, holder) for dealer, holder in error.disputes)
    who = error.sender
    return _write(_Error(why, error.phase, error.check, 0, 0, who, disputes, error.helpers))


def read_error(data: bytes) -> TooFewSurvivors | RemoteProtocolError | None:
    """Return the error that `write_error` wrote, or None for a result."""
    found = _read(data)
    if isinstance(found, _Sum):
        return None
    if not found.check:
        return TooFewSurvivors(
            found.why, phase=found.phase, survivors=found.survivors, needed=found.needed
        )
    return RemoteProtocolError(
        found.why,
        sender=found.sender,
        phase=found.phase,
        check=found.check,
        disputes=tuple(Dispute(*pair) for pair in found.disputes),
        helpers=found.helpers,
    )


def _write(outcome: Struct) -> bytes:
    body = msgspec.msgpack.encode(outcome)
    return hashlib.sha256(body).digest() + body


def _read(data: bytes) -> _Sum | _Error:
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() == digest:
        with suppress(msgspec.MsgspecError):
            return _DECODER.decode(body)
    raise spoilt("a stored result was altered")


_DECODER: msgspec.msgpack.Decoder[_Sum | _Error] = msgspec.msgpack.Decoder(_Sum | _Error)
