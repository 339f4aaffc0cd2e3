"""Reports at the aggregator: validation, the masked vector, and the parts for helpers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from secagg.encoding import Lanes
from secagg.oneshot import messages
from secagg.oneshot.layout import START_BYTES
from secagg.oneshot.messages import Head, Kind, violation
from secagg.oneshot.params import OneShotParams
from secagg.protocol import Registry

CHUNK = 1000
"""Clients in a chunk of boxes, at most."""


def read(report: bytes, params: OneShotParams) -> Head:
    """Return the head of a report.

    Raises
    ------
    RemoteProtocolError
        "length", "version", "encoding" or "parameters": not a report under `params`.
    """
    content = messages.body(report, Kind.REPORT, params, "report")
    if len(report) != params.layout.report:
        why = f"{len(report)} bytes; a report of this session has {params.layout.report}"
        raise violation("report", "length", why)
    return messages.read_head(bytes(content[: params.layout.head]), params)


def check_signature(
    head: Head, report: bytes, params: OneShotParams, registry: Registry | None
) -> None:
    """Raise RemoteProtocolError ("signature") unless the client signed; None: nobody signs."""
    if registry is None:
        return
    signature = report[params.layout.boxes[-1] : params.layout.values]
    if not registry.verifies(head.client_id, head.content, signature):
        why = "the client is not in the registry, or the signature is not its own"
        raise violation("report", "signature", why, sender=head.client_id)


def values(client_id: int, report: bytes, params: OneShotParams) -> Lanes:
    """Return the masked vector of a report.

    Raises
    ------
    RemoteProtocolError
        "range": an element is not in [0, R).
    """
    found = messages.unpack(memoryview(report)[params.layout.values :], params)
    if found is None:
        why = "an element is not below R, or a padding bit is set"
        raise violation("report", "range", why, sender=client_id)
    return found


def boxes(reports: Sequence[bytes], helper: int, params: OneShotParams) -> Iterator[bytes]:
    """Yield a helper's part of each report, in chunks: head, the helper's box and signature."""
    layout = params.layout
    start = messages.start(Kind.BOXES, params) + helper.to_bytes(2, "little")
    head, box = slice(START_BYTES, START_BYTES + layout.head), layout.box(helper)
    signature = slice(layout.boxes[-1], layout.values)
    for first in range(0, len(reports), CHUNK):
        chunk = reports[first : first + CHUNK]
        yield start + b"".join(part for r in chunk for part in (r[head], r[box], r[signature]))
