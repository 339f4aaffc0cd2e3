"""Replies of helpers: a reservation, which is signed, and an answer, which has the masks.

The body is ``u16(helper) ‖ D``, then the signature or the packed masks by ascending index of S.
"""

from __future__ import annotations

from collections.abc import Iterable

from secagg._check import as_bytes
from secagg.oneshot import messages
from secagg.oneshot.layout import DIGEST_BYTES, START_BYTES
from secagg.oneshot.messages import PLACE, Kind, violation
from secagg.oneshot.params import OneShotParams


def reserved(digest: bytes) -> bytes:
    """Return the bytes that a helper signs for a reserved list; `digest` is D of the list."""
    return b"secagg/1 one-shot reserved" + digest


def start(kind: Kind, params: OneShotParams, helper: int, digest: bytes) -> bytes:
    """Return a helper's reservation or answer up to the content; `digest` is D of the list."""
    return messages.start(kind, params) + PLACE.pack(helper) + digest


def size(kind: Kind, params: OneShotParams, helper: int) -> int:
    """Return the bytes of a helper's reservation or answer."""
    return START_BYTES + PLACE.size + DIGEST_BYTES + _content(kind, params, helper)


def _content(kind: Kind, params: OneShotParams, helper: int) -> int:
    if kind is Kind.ANSWER:
        return params.layout.packed * len(params.held_by(helper))
    return params.layout.signature


def read(
    data: bytes, kind: Kind, params: OneShotParams, digest: bytes, phase: str
) -> tuple[int, memoryview]:
    """Return helper and content of a reply about the list with this D.

    Raises
    ------
    RemoteProtocolError
        "length", "helper" or "list", or as `body`.
    """
    rest = messages.body(data, kind, params, phase)
    if len(rest) < PLACE.size + DIGEST_BYTES:
        raise violation(phase, "length", "the reply ends before its content")
    (j,) = PLACE.unpack_from(rest)
    if not 1 <= j <= len(params.helpers):
        raise violation(phase, "helper", f"helper {j}; there are {len(params.helpers)}")
    if rest[PLACE.size : PLACE.size + DIGEST_BYTES] != digest:
        why = f"helper {j} has another list than this aggregator"
        raise violation(phase, "list", why, helpers=[j])
    content = rest[PLACE.size + DIGEST_BYTES :]
    wanted = _content(kind, params, j)
    if len(content) != wanted:
        why = f"helper {j} sent {len(content)} bytes of content instead of {wanted}"
        raise violation(phase, "length", why, helpers=[j])
    return j, content


def signatures(
    reservations: Iterable[bytes], params: OneShotParams, digest: bytes
) -> dict[int, bytes]:
    """Return the signatures of a list with this D, by helper; empty if none are needed.

    Raises
    ------
    RemoteProtocolError
        As `read`. "signature": a signature is not the helper's over this list.
    """
    found: dict[int, bytes] = {}
    for data in reservations:
        j, content = read(as_bytes(data), Kind.RESERVATION, params, digest, "reserve")
        found[j] = bytes(content)
        if params.active:
            check_signature(j, found[j], params, digest, "reserve")
    return found


def check_signature(
    helper: int, signature: bytes, params: OneShotParams, digest: bytes, phase: str
) -> None:
    """Raise RemoteProtocolError ("signature") unless the helper signed the list with this D."""
    if not params.identities.verifies(helper, reserved(digest), signature):
        why = f"the signature is not of helper {helper} over this list"
        raise violation(phase, "signature", why, helpers=[helper])
