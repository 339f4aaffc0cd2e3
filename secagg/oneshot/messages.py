"""Messages for one-shot sums: fixed layouts, with sizes that follow from the parameters.

Every message is the version, the kind, the parameters' digest and a body. All integers are
little-endian. A report's body is ``u64(id) ‖ com_1 … com_C ‖ box_1 … box_ℓ ‖ signature ‖ y``,
and y is packed at ⌈log2 R⌉ bits an element. A signature is empty if security is "semi-honest".
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg.encoding import Lanes, Ring
from secagg.errors import RemoteProtocolError
from secagg.oneshot.layout import ID_BYTES, START_BYTES
from secagg.oneshot.params import OneShotParams
from secagg.protocol import Registry
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.protocol.params_bytes import SAME_RELEASE

VERSION = 1
CHUNK = 1000
"""Clients in a chunk of boxes, at most."""
_BLOCK = 1 << 14
PLACE = struct.Struct("<H")
_COUNTS = struct.Struct("<QQ")
_SIGNED = PLACE.size + SIGNATURE_BYTES


class Kind(IntEnum):
    """Second byte of a message."""

    REPORT = 1
    BOXES = 2
    REQUEST = 3
    RESERVATION = 4
    ANSWER = 5
    ACCUMULATOR = 6


class Head(NamedTuple):
    """Signed part of a report: id, commitments, and the SHA-256 that a list names."""

    client_id: int
    content: bytes
    digest: bytes


class Request(NamedTuple):
    """List of a batch, with the signatures of helpers that reserved the list, by number."""

    batch: int
    ids: NDArray[np.uint64]
    signatures: dict[int, bytes]


def start(kind: Kind, params: OneShotParams) -> bytes:
    """Return the first bytes of a message."""
    return bytes([VERSION, kind]) + params.digest


def body(data: bytes, kind: Kind, params: OneShotParams, phase: str) -> memoryview:
    """Return a message's body.

    Raises
    ------
    RemoteProtocolError
        "version", "encoding" or "parameters": `data` is another message, or of other
        parameters.
    """
    if len(data) < START_BYTES:
        raise violation(phase, "length", f"{len(data)} bytes are too few for a message")
    if data[0] != VERSION:
        why = f"first byte {data[0]}; this side reads messages of version {VERSION} only"
        raise violation(phase, "version", f"{why}: {SAME_RELEASE}")
    if data[1] != kind:
        raise violation(phase, "encoding", f"kind {data[1]}; kind {kind} is due here")
    if data[2:START_BYTES] != params.digest:
        raise violation(phase, "parameters", "it has other parameters or another session")
    return memoryview(data)[START_BYTES:]


def violation(
    phase: str, check: str, why: str, *, sender: int | None = None, helpers: Sequence[int] = ()
) -> RemoteProtocolError:
    """Return the error for a message that breaks the protocol."""
    return RemoteProtocolError(
        why, sender=sender, phase=phase, check=check, helpers=tuple(helpers)
    )


def read_head(content: bytes, params: OneShotParams) -> Head:
    """Return the head of `content`, the id and commitments as they are in a message."""
    signed = b"secagg/1 one-shot report" + params.digest + content
    client_id = int.from_bytes(content[:ID_BYTES], "little")
    return Head(client_id, signed, hashlib.sha256(signed).digest())


def box_info(head: Head, helper: int) -> bytes:
    """Return HPKE's info for a helper's box, which binds the box to report and place."""
    place = hashlib.sha256(head.content + PLACE.pack(helper)).digest()
    return b"secagg/1 one-shot box" + place


def pack(values: Lanes, ring: Ring) -> bytes | memoryview:
    """Return elements of [0, R) at ⌈log2 R⌉ bits each; as they are in memory where possible."""
    if ring.bits == 8 * values.itemsize:
        return values.astype(values.dtype.newbyteorder("<"), copy=False).data.cast("B")
    return _fast.pack_bits(values, ring.bits)


def unpack(packed: memoryview, params: OneShotParams) -> Lanes | None:
    """Return the elements that `pack` packed, or None if one is not in [0, R)."""
    ring = params.ring
    if ring.bits == 8 * ring.dtype.itemsize:
        stored = np.frombuffer(packed, ring.dtype.newbyteorder("<"))
        return cast("Lanes", stored.astype(ring.dtype, copy=False))
    values = ring.zeros(params.elements)
    try:
        _fast.unpack_bits(packed, ring.bits, values)
    except ValueError:  # a padding bit is set
        return None
    if not ring.is_power_of_two and int(values.max()) >= ring.modulus:
        return None
    return values


def read_report(report: bytes, params: OneShotParams) -> Head:
    """Return the head of a report.

    Raises
    ------
    RemoteProtocolError
        "length", "version", "encoding" or "parameters": not a report under `params`.
    """
    content = body(report, Kind.REPORT, params, "report")
    if len(report) != params.layout.report:
        why = f"{len(report)} bytes; a report of this session has {params.layout.report}"
        raise violation("report", "length", why)
    return read_head(bytes(content[: params.layout.head]), params)


def reporter(report: bytes | memoryview) -> int:
    """Return the id in a report, which is not validated."""
    return int.from_bytes(report[START_BYTES : START_BYTES + ID_BYTES], "little")


def check_reporter(
    head: Head, report: bytes, params: OneShotParams, registry: Registry | None
) -> None:
    """Raise RemoteProtocolError ("signature") unless the client signed; None: nobody signs."""
    if registry is None:
        return
    signature = report[params.layout.boxes[-1] : params.layout.values]
    if not registry.verifies(head.client_id, head.content, signature):
        why = "the client is not in the registry, or the signature is not its own"
        raise violation("report", "signature", why, sender=head.client_id)


def report_values(client_id: int, report: bytes, params: OneShotParams) -> Lanes:
    """Return the masked vector of a report.

    Raises
    ------
    RemoteProtocolError
        "range": an element is not in [0, R).
    """
    found = unpack(memoryview(report)[params.layout.values :], params)
    if found is None:
        why = "an element is not below R, or a padding bit is set"
        raise violation("report", "range", why, sender=client_id)
    return found


def boxes(reports: Sequence[bytes], helper: int, params: OneShotParams) -> Iterator[bytes]:
    """Yield a helper's part of each report, in chunks: head, the helper's box and signature."""
    layout = params.layout
    first_bytes = start(Kind.BOXES, params) + PLACE.pack(helper)
    head, box = slice(START_BYTES, START_BYTES + layout.head), layout.box(helper)
    signature = slice(layout.boxes[-1], layout.values)
    for first in range(0, len(reports), CHUNK):
        chunk = reports[first : first + CHUNK]
        yield first_bytes + b"".join(
            part for r in chunk for part in (r[head], r[box], r[signature])
        )


def read_request(data: bytes, params: OneShotParams) -> Request:
    """Return the list of a request.

    Raises
    ------
    RemoteProtocolError
        "length", "ids" or "signatures", or as `body`.
    """
    rest = body(data, Kind.REQUEST, params, "reserve")
    if len(rest) < _COUNTS.size:
        raise violation("reserve", "length", "the request ends before its list")
    batch, count = _COUNTS.unpack_from(rest)
    # the sender's count is compared with the length before it sizes any array
    end = _COUNTS.size + ID_BYTES * count
    if len(rest) < end or (len(rest) - end) % _SIGNED:
        raise violation("reserve", "length", f"{len(rest)} bytes for a list of {count} ids")
    ids = np.frombuffer(rest[_COUNTS.size : end], "<u8").astype(np.uint64, copy=False)
    if not (ids[1:] > ids[:-1]).all():
        raise violation("reserve", "ids", "the ids of the list are not strictly ascending")
    signatures: dict[int, bytes] = {}
    for at in range(end, len(rest), _SIGNED):
        (j,) = PLACE.unpack_from(rest, at)
        # strictly ascending: a helper's signature must not count twice for the quorum
        if j <= max(signatures, default=0) or j > len(params.helpers):
            why = "the signers of the list are not strictly ascending helpers"
            raise violation("reserve", "signatures", why)
        signatures[j] = bytes(rest[at + PLACE.size : at + _SIGNED])
    return Request(batch, ids, signatures)


def request_bytes(clients: int, signers: int = 0) -> int:
    """Return the bytes of a request with a list of clients and the signatures of helpers."""
    return START_BYTES + _COUNTS.size + ID_BYTES * clients + _SIGNED * signers


def write_request(request: Request, params: OneShotParams) -> bytes:
    """Return a request as bytes."""
    ids = request.ids.astype("<u8", copy=False).tobytes()
    signed = b"".join(PLACE.pack(j) + s for j, s in sorted(request.signatures.items()))
    counts = _COUNTS.pack(request.batch, request.ids.size)
    return start(Kind.REQUEST, params) + counts + ids + signed


def list_digest(
    params: OneShotParams, batch: int, ids: NDArray[np.uint64], digests: NDArray[np.uint8]
) -> bytes:
    """Return D, the digest of a list: parameters, batch, ids and each id's report.

    Parameters
    ----------
    params : OneShotParams
    batch : int
        Number of the batch, 0 ≤ batch < 2^64.
    ids : uint64 array, strictly ascending
    digests : uint8 array, shape (number of ids, 32)
        SHA-256 of the head of each id's report.
    """
    total = hashlib.sha256(b"secagg/1 one-shot batch" + params.digest)
    total.update(_COUNTS.pack(batch, ids.size))
    # in blocks: 2^20 clients would otherwise take a second copy of all digests
    for first in range(0, ids.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        total.update(named(ids[block], digests[block]))
    return total.digest()


def named(ids: NDArray[np.uint64], digests: NDArray[np.uint8]) -> bytes:
    """Return ``u64(id) ‖ digest`` of each report, joined."""
    little = ids.astype("<u8", copy=False).view(np.uint8).reshape(-1, ID_BYTES)
    return np.hstack((little, digests)).tobytes()
