"""Outcomes of rounds as bytes: a sum, or the error of the last attempt."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import msgspec
import numpy as np
from msgspec import Struct

from secagg import _fast
from secagg.encoding import Lanes
from secagg.errors import Dispute, RemoteProtocolError, TooFewSurvivors, Verdict
from secagg.journal.lock import spoilt
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.oneshot.result import decode
from secagg.protocol import RoundParams
from secagg.protocol.messages import pack_ids, unpack_ids
from secagg.server import RoundResult
from secagg.server.result import decode_sum

Params = RoundParams | OneShotParams
_DIGEST_BYTES = 32


class _Result(Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """Sum modulo R, packed at ⌈log2 R⌉ bits an element, and the survivors, packed."""

    total: bytes
    survivors: bytes
    disputes: tuple[Dispute, ...]
    outvoted: tuple[int, ...]


class _Error(Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """Error of a failed round; an error without a `check` is TooFewSurvivors."""

    why: str
    phase: str
    check: str
    survivors: int
    needed: int
    sender: int | None
    disputes: tuple[Dispute, ...]
    helpers: tuple[int, ...]


def write_result(result: RoundResult, params: Params) -> bytes:
    """Return a result as bytes, without the verdicts."""
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
    packed, survivors = _fast.pack_bits(total, ring.bits), pack_ids(result.survivors)
    return _write(_Result(packed, survivors, result.disputes, outvoted))


def read(data: bytes, params: Params) -> RoundResult | TooFewSurvivors | RemoteProtocolError:
    """Return the result or error that `write_result` or `write_error` wrote.

    `JournalError` is raised if the bytes were altered.
    """
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() == digest:
        with suppress(msgspec.MsgspecError):
            found = _DECODER.decode(body)
            return (
                _read_error(found) if isinstance(found, _Error) else _read_result(found, params)
            )
    raise _altered()


def _read_result(found: _Result, params: Params) -> RoundResult:
    total = params.ring.zeros(params.elements)
    ids = unpack_ids(found.survivors)
    with suppress(ValueError, RemoteProtocolError):
        _fast.unpack_bits(found.total, params.ring.bits, total)
        if ids is not None and isinstance(params, OneShotParams):
            return decode(total, ids, found.outvoted, params)
        if ids is not None and isinstance(params, RoundParams):
            return decode_sum(total, ids, found.disputes, params)
    raise _altered()


def write_verdict(verdict: Verdict) -> bytes:
    """Return a verdict as bytes."""
    return _write(verdict)


def read_verdict(data: bytes) -> Verdict:
    """Return the verdict that `write_verdict` wrote.

    `JournalError` is raised if the bytes were altered.
    """
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() == digest:
        with suppress(msgspec.MsgspecError):
            return msgspec.msgpack.decode(body, type=Verdict)
    raise _altered()


def reason(error: TooFewSurvivors | RemoteProtocolError) -> str:
    """Return the text of an error after sender, phase and check."""
    return str(error).partition(": ")[2]


def write_error(error: TooFewSurvivors | RemoteProtocolError) -> bytes:
    """Return the error of a failed round as bytes, without the verdicts."""
    why, phase, disputes = reason(error), error.phase, error.disputes
    if isinstance(error, TooFewSurvivors):
        counts = error.survivors, error.needed
        return _write(_Error(why, phase, "", *counts, None, disputes, ()))
    who = error.sender, disputes, error.helpers
    return _write(_Error(why, phase, error.check, 0, 0, *who))


def _read_error(found: _Error) -> TooFewSurvivors | RemoteProtocolError:
    if not found.check:
        return TooFewSurvivors(
            found.why,
            phase=found.phase,
            survivors=found.survivors,
            needed=found.needed,
            disputes=found.disputes,
        )
    return RemoteProtocolError(
        found.why,
        sender=found.sender,
        phase=found.phase,
        check=found.check,
        disputes=found.disputes,
        helpers=found.helpers,
    )


def _write(outcome: Struct | Verdict) -> bytes:
    body = msgspec.msgpack.encode(outcome)
    return hashlib.sha256(body).digest() + body


def _altered() -> Exception:
    return spoilt("a stored result was altered")


_DECODER: msgspec.msgpack.Decoder[_Result | _Error] = msgspec.msgpack.Decoder(_Result | _Error)
