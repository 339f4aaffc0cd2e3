"""Signatures of requests: HTTP Message Signatures, RFC 9421, by the sender's `Identity`.

A signature covers the method, the path with the session's name, the query and the digest of the
body (RFC 9530), and is valid for five minutes. Host and scheme are not covered, so a proxy may
end TLS.

The key also signs statements of the protocol. They cannot be confused: what RFC 9421 signs
begins with a quotation mark (§2.5, the first line is ``"@method": …``), and every statement of
the protocol begins with the letters "secagg/". A test compares all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
)
from http_message_signatures.algorithms import ED25519

from secagg.http.problems import Problem
from secagg.http.quick import key_of, verified
from secagg.protocol import Identity

COVERED = ("@method", "@path", "@query", "content-digest")
"""Components of every signature, in this order."""
TAG = "secagg-http/1"
VALID = timedelta(minutes=5)
CLOCK_SKEW = timedelta(minutes=1)

_HEADERS = ("content-digest", "signature-input", "signature")
_LONGEST = 512
"""Characters of a header of `_HEADERS`; those of this package have at most 180."""
_ANY_HOST = "http://host"
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,19})\Z")

Headers = Mapping[str, str]


class Message(NamedTuple):
    """Request, as the library for RFC 9421 reads it."""

    method: str
    url: str
    headers: dict[str, str]


class _Expired(InvalidSignature):
    """The signature is too old, or of the future."""


class _Verifier(HTTPMessageVerifier):
    max_clock_skew = CLOCK_SKEW

    def validate_created_and_expires(
        self, sig_input: Any, max_age: timedelta | None = None
    ) -> None:
        try:
            super().validate_created_and_expires(sig_input, max_age)  # type: ignore[no-untyped-call]
        except InvalidSignature as error:
            raise _Expired(str(error)) from None


class _Keys(HTTPSignatureKeyResolver):
    """Keys of a registry, with a key for ids that are not in it; see `key_of`."""

    def __init__(self, keys: Mapping[int, bytes]) -> None:
        self._keys = keys

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        if not _DECIMAL.match(key_id):
            raise InvalidSignature(key_id)
        return Ed25519PublicKey.from_public_bytes(key_of(self._keys, int(key_id)))

    def resolve_private_key(self, key_id: str) -> NoReturn:
        raise NotImplementedError


_SIGNER = HTTPMessageSigner(signature_algorithm=ED25519)


def sign(
    identity: Identity, client_id: int, method: str, target: str, body: bytes
) -> dict[str, str]:
    """Return the headers that sign a request.

    Parameters
    ----------
    identity : Identity
    client_id : int
        Id under which the server has the identity's public key.
    method : str
    target : str
        Path and query as they are sent, percent-encoded.
    body : bytes
        Content, b"" for none.
    """
    message = Message(method, _ANY_HOST + target, {})
    now = datetime.now(UTC)
    prepared = _SIGNER.prepare(
        message,
        key_id=str(client_id),
        created=now,
        expires=now + VALID,
        label="secagg",
        tag=TAG,
        covered_component_ids=COVERED,
        body=body,
    )
    _SIGNER.apply(message, prepared, identity.sign(prepared.signature_base))
    return message.headers


def verify(
    keys: Mapping[int, bytes], method: str, target: str, headers: Iterable[tuple[str, str]]
) -> tuple[int, str]:
    """Return the id of the client that signed a request, and its signed Content-Digest.

    The body is not needed yet, so nobody else can make the server read one.

    Raises
    ------
    Problem
        Status 401. "unsigned": a header is missing. "signature": malformed, of other components
        wrong, or of a client that the registry lacks. "clock": too old, or of the future.
    """
    known = _headers(headers)
    if "#" in target:  # what follows a fragment's mark would not be covered
        raise _wrong("the request's target has a fragment")
    quick = verified(keys, method, target, known, VALID.total_seconds())
    if quick is not None:
        return quick
    verifier = _Verifier(signature_algorithm=ED25519, key_resolver=_Keys(keys))
    message = Message(method, _ANY_HOST + target, known)
    try:
        found = verifier.verify(message, max_age=VALID, expect_tag=TAG)
    except _Expired:
        why = "the signature is too old or of the future; set this machine's clock"
        raise Problem(401, "clock", why) from None
    except Exception:
        why = "the registry lacks the client, or has another key for it"
        raise _wrong(f"{why}; register its public key") from None
    if len(found) != 1 or "expires" not in found[0].parameters:
        raise _wrong("take one signature with created and expires")
    covered = found[0].covered_components
    if list(covered) != [*(f'"{name}"' for name in COVERED), '"@signature-params"']:
        raise _wrong(f"it must cover {', '.join(COVERED)}, in this order")
    return int(found[0].parameters["keyid"]), covered['"content-digest"']


def _headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers that carry a signature; parse none that is longer than they can be."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name in _HEADERS:
            if name in found or len(value) > _LONGEST:
                raise _wrong(f"the header {name} is repeated or too long")
            found[name] = value
    for name in _HEADERS:
        if name not in found:
            why = f"the header {name} is missing; sign requests as RFC 9421 states"
            raise Problem(401, "unsigned", why)
    return found


def _wrong(why: str) -> Problem:
    return Problem(401, "signature", f"the signature is invalid: {why}")
