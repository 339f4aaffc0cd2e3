"""Bytes of an accumulator: sum, ids with the digests of their reports, and unsettled reports.

The body is ``u64(batch) ‖ u8(fixed) ‖ u64(count) ‖ u64(unsettled) ‖ sum``, then ``u64(id) ‖
SHA-256(head)`` of each report and the unsettled reports themselves, both by ascending ids.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from secagg._records import Records
from secagg.encoding import Lanes
from secagg.oneshot import messages
from secagg.oneshot.layout import DIGEST_BYTES, ID_BYTES
from secagg.oneshot.messages import Kind, violation
from secagg.oneshot.params import OneShotParams

_COUNTS = struct.Struct("<QBQQ")
_RECORD = ID_BYTES + DIGEST_BYTES


class State(NamedTuple):
    """Content of an accumulator; `fixed` is true for a fixed list."""

    batch: int
    fixed: bool
    total: Lanes
    digests: Records
    reports: Mapping[int, bytes]


def pack(state: State, params: OneShotParams) -> bytes:
    """Return a state as bytes; the total must be reduced to [0, R)."""
    counts = (state.batch, state.fixed, len(state.digests), len(state.reports))
    data = bytearray(messages.start(Kind.ACCUMULATOR, params) + _COUNTS.pack(*counts))
    data += messages.pack(state.total, params.ring)
    data += messages.named(state.digests.ids, state.digests.rows)
    for u in sorted(state.reports):
        data += state.reports[u]
    return bytes(data)


def unpack(data: bytes, params: OneShotParams) -> State:
    """Return the state of an accumulator.

    Raises
    ------
    RemoteProtocolError
        "length", "version", "encoding", "parameters", "ids", "count" or "range".
    """
    body = messages.body(data, Kind.ACCUMULATOR, params, "accumulator")
    if len(body) < _COUNTS.size:
        raise violation("accumulator", "length", "it ends before its sum")
    batch, fixed, count, unsettled = _COUNTS.unpack_from(body)
    # the counts are the sender's: compared with n and the length before they size anything
    if fixed > 1 or not unsettled <= count <= params.n_clients:
        why = f"{unsettled} unsettled reports of {count}, fixed {fixed}, n {params.n_clients}"
        raise violation("accumulator", "count", why)
    if fixed and count < params.min_clients:
        why = f"a fixed list of {count} reports; it has {params.min_clients} or more"
        raise violation("accumulator", "count", why)
    packed, each = params.layout.packed, params.layout.report
    first = _COUNTS.size + packed
    last = first + _RECORD * count
    if len(body) != last + each * unsettled:
        why = f"{len(body)} bytes for {count} reports, {unsettled} of them unsettled"
        raise violation("accumulator", "length", why)
    total = messages.unpack(body[_COUNTS.size : first], params)
    if total is None:
        raise violation("accumulator", "range", "an element of the sum is not below R")
    records = np.frombuffer(body[first:last], np.uint8).reshape(count, _RECORD)
    ids = records[:, :ID_BYTES].copy().view("<u8").ravel().astype(np.uint64, copy=False)
    waiting = {
        messages.reporter(body[at : at + each]): bytes(body[at : at + each])
        for at in range(last, len(body), each)
    }
    unsorted = (ids[1:] <= ids[:-1]).any() or any(u >= v for u, v in pairwise(waiting))
    if unsorted or len(waiting) != unsettled:
        raise violation("accumulator", "ids", "its ids are not strictly ascending")
    digests = Records.of(ids, records[:, ID_BYTES:].copy())
    return State(batch, bool(fixed), total.copy(), digests, waiting)
