"""Verification of signatures in the form in which this package writes them.

General parsing of structured fields takes most of the time of a verification, and a server
verifies every request. So requests of this package's own members are read by one pattern. It
accepts only what the general verification accepts, and rejects nothing itself.
"""

from __future__ import annotations

import binascii
import re
import time
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

_TARGET = re.compile(r"(/[A-Za-z0-9/._~%-]*)(?:\?([A-Za-z0-9=&]*))?")
_INPUT = re.compile(
    r'secagg=(\("@method" "@path" "@query" "content-digest"\)'
    r";created=([1-9][0-9]{0,10})"
    r';keyid="(0|[1-9][0-9]{0,19})"'
    r';alg="ed25519"'
    r";expires=([1-9][0-9]{0,10})"
    r';tag="secagg-http/1")'
)
_DIGEST = re.compile(r"sha-256=:[A-Za-z0-9+/]{43}=:")
_SIGNATURE = re.compile(r"secagg=:([A-Za-z0-9+/]{85}[AQgw]==):")  # no bits beyond 64 bytes
_METHODS = ("GET", "POST")
_NOBODY = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
"""Key whose private half is forgotten."""


def key_of(keys: Mapping[int, bytes], client: int) -> bytes:
    """Return a client's public key, or for an unknown client a key under which nobody signs.

    So a stranger, who cannot sign, gets the same answer for every id after the same work, and
    does not learn who is registered.
    """
    return keys.get(client, _NOBODY)


def verified(
    keys: Mapping[int, bytes], method: str, target: str, headers: Mapping[str, str], age: float
) -> tuple[int, str] | None:
    """Return the id of the client that signed a request, and its signed Content-Digest.

    None stands for a request that the general verification must judge.

    Parameters
    ----------
    keys : mapping of int to bytes
        Public keys by client.
    method, target : str
        Method, and path with query as they were sent.
    headers : mapping
        Content-Digest, Signature-Input and Signature, by their names in lower case.
    age : float
        Largest age of a signature in seconds.
    """
    place, digest = _TARGET.fullmatch(target), headers["content-digest"]
    stated = _INPUT.fullmatch(headers["signature-input"])
    signature = _SIGNATURE.fullmatch(headers["signature"])
    known = method in _METHODS and _DIGEST.fullmatch(digest)
    if not (known and place and stated and signature):
        return None
    created, client, expires = map(int, stated.group(2, 3, 4))
    if not created <= time.time() <= min(expires, created + age):
        return None
    base = (  # RFC 9421, §2.5
        f'"@method": {method}\n"@path": {place[1]}\n"@query": ?{place[2] or ""}\n'
        f'"content-digest": {digest}\n"@signature-params": {stated[1]}'
    )
    try:
        public = Ed25519PublicKey.from_public_bytes(key_of(keys, client))
        public.verify(binascii.a2b_base64(signature[1]), base.encode())
    except InvalidSignature:
        return None
    return client, digest
