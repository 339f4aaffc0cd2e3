"""Signatures of requests: HTTP Message Signatures, RFC 9421, by the sender's `Identity`.

A signature covers the method, the path with the session's name, the query and the digest of the
body (RFC 9530), and is valid for five minutes. Host and scheme are not covered, so a proxy may
end TLS. The RFC allows many forms; a server accepts the form of `sign`, byte by byte, and so
needs no parser of structured fields.

The key also signs statements of the protocol. The two kinds cannot be confused. Bytes that RFC
9421 signs begin with a quotation mark (§2.5, the first line is ``"@method": …``), and every
statement of the protocol begins with the letters "secagg/". A test compares all statements.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterable, Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from secagg.http.problems import Problem
from secagg.protocol import Identity

COVERED = ("@method", "@path", "@query", "content-digest")
"""Components of every signature, in this order."""
TAG = "secagg-http/1"
VALID = 300
"""Seconds from `created` to `expires`."""
CLOCK_SKEW = 60
"""Seconds that the clocks of client and server may differ."""

_HEADERS = ("content-digest", "signature-input", "signature")
_METHODS = ("GET", "POST")
_LIST = " ".join(f'"{name}"' for name in COVERED)
_TARGET = re.compile(r"(/[A-Za-z0-9/._~%-]*)(?:\?([A-Za-z0-9=&]*))?")
_INPUT = re.compile(
    rf"secagg=(\({_LIST}\)"
    r";created=([1-9][0-9]{0,10})"
    r';keyid="(0|[1-9][0-9]{0,19})"'
    r';alg="ed25519"'
    r";expires=([1-9][0-9]{0,10})"
    rf';tag="{TAG}")'
)
_DIGEST = re.compile(r"sha-256=:[A-Za-z0-9+/]{43}=:")
_SIGNATURE = re.compile(r"secagg=:([A-Za-z0-9+/]{85}[AQgw]==):")  # no bits beyond 64 bytes
_NOBODY = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
"""Public key of a forgotten private key."""


def content_digest(body: bytes) -> str:
    """Return the Content-Digest of a body (RFC 9530, §2)."""
    return f"sha-256=:{_base64(hashlib.sha256(body).digest())}:"


def signature_base(components: Iterable[tuple[str, str]], parameters: str) -> bytes:
    """Return the bytes that a signature signs (RFC 9421, §2.5).

    Parameters
    ----------
    components : iterable of (str, str)
        Names and values of the covered components, in order.
    parameters : str
        Inner list of the components with the signature's parameters (§2.3).
    """
    lines = [*components, ("@signature-params", parameters)]
    return "\n".join(f'"{name}": {value}' for name, value in lines).encode()


def sign(
    identity: Identity, client_id: int, method: str, target: str, body: bytes
) -> dict[str, str]:
    """Return the headers that sign a request.

    Parameters
    ----------
    identity : Identity
    client_id : int
        Id of the identity's public key at the server.
    method : str
        "GET" or "POST".
    target : str
        Path and query as sent, percent-encoded.
    body : bytes
        Content, b"" for none.
    """
    now, digest = int(time.time()), content_digest(body)
    parameters = (
        f'({_LIST});created={now};keyid="{client_id}";alg="ed25519"'
        f';expires={now + VALID};tag="{TAG}"'
    )
    path, _, query = target.partition("?")
    signature = identity.sign(_base(method, path, query, digest, parameters))
    return {
        "Content-Digest": digest,
        "Signature-Input": f"secagg={parameters}",
        "Signature": f"secagg=:{_base64(signature)}:",
    }


def verify(
    keys: Mapping[int, bytes], method: str, target: str, headers: Iterable[tuple[str, str]]
) -> tuple[int, str]:
    """Return the id of the client that signed a request, and the signed Content-Digest.

    The body is not needed yet, so nobody else can make the server read a body.

    Parameters
    ----------
    keys : mapping of int to bytes
        Public keys by client.
    method, target : str
        Method, and path with query as sent.
    headers : iterable of (str, str)
        Names in lower case, and values.

    Raises
    ------
    Problem
        Status 401. "unsigned": a header is missing. "signature": the signature has another
        form, is wrong, or is of a client that the registry lacks. "clock": the signature is too
        old, or of the future.
    """
    known = _headers(headers)
    digest = known["content-digest"]
    place, stated = _TARGET.fullmatch(target), _INPUT.fullmatch(known["signature-input"])
    signature = _SIGNATURE.fullmatch(known["signature"])
    common = method in _METHODS and _DIGEST.fullmatch(digest)
    if not (common and place and stated and signature):
        why = "it has another form than docs/http-binding.md states"
        raise _wrong(f"{why}; run one release of secagg on both sides")
    created, client, expires = map(int, stated.group(2, 3, 4))
    now = time.time()
    # before the registry is read, so a stranger gets the answer of a member
    if not created - CLOCK_SKEW <= now <= min(expires, created + VALID) + CLOCK_SKEW:
        why = "the signature is too old or of the future; set this machine's clock"
        raise Problem(401, "clock", why)
    # An unknown client has a key under which nobody signs, so a stranger gets the same answer
    # for every id after the same work, and does not learn who is registered.
    public = Ed25519PublicKey.from_public_bytes(keys.get(client, _NOBODY))
    base = _base(method, place[1], place[2] or "", digest, stated[1])
    try:
        public.verify(base64.b64decode(signature[1]), base)
    except InvalidSignature:
        why = "the registry lacks the client, or has another key for it"
        raise _wrong(f"{why}; register its public key") from None
    return client, digest


def _base(method: str, path: str, query: str, digest: str, parameters: str) -> bytes:
    values = (method, path, f"?{query}", digest)
    return signature_base(zip(COVERED, values, strict=True), parameters)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers that carry a signature."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name in _HEADERS:
            # a proxy could read another of two values than this server
            if name in found:
                raise _wrong(f"the header {name} is repeated")
            found[name] = value
    for name in _HEADERS:
        if name not in found:
            why = f"the header {name} is missing; sign requests as RFC 9421 states"
            raise Problem(401, "unsigned", why)
    return found


def _wrong(why: str) -> Problem:
    return Problem(401, "signature", f"the signature is invalid: {why}")
