"""Hedged randomness (RFC 8937): entropy, extracted under a secret and bound to a statement.

    G'(L) = Expand(Extract(secret, G(32)), SHA-256(statement) ‖ u64le(j), L),  j = 0, 1, …

Extract and Expand are the steps of HKDF with SHA-256 (RFC 5869), and G is the source of
entropy. The output looks uniform to everybody who lacks the entropy or the secret. A repeating
source gives unrelated values for different statements. docs/protocol.md, §5.13, has the uses.
"""

from __future__ import annotations

import hashlib
import struct

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from secagg.encoding import Entropy
from secagg.encoding.encoding import take

FRESH_BYTES = 32
_PIECE = 255 * 32
"""Longest output of a single Expand (RFC 5869, §2.3)."""


class Hedged:
    """Source of random bytes for one statement, made from 32 bytes of `entropy`.

    Parameters
    ----------
    entropy : callable
        Source of fresh bytes.
    secret : bytes
        Secret of a length that the statement's label fixes; no bytes without a secret.
    statement : bytes
        Label of the purpose, then the use of the values, in an unambiguous encoding.

    Raises
    ------
    ParameterError
        The source returns a wrong number of bytes.
    """

    def __init__(self, entropy: Entropy, secret: bytes, statement: bytes) -> None:
        extract = HMAC(secret or bytes(SHA256.digest_size), SHA256())
        extract.update(take(entropy, FRESH_BYTES))
        self._key = extract.finalize()
        # hashed, because Expand hashes the statement again for every 32 bytes
        self._statement = hashlib.sha256(statement).digest()
        self._pieces = 0

    def __call__(self, size: int, /) -> bytes:
        """Return the next `size` bytes."""
        made = bytearray()
        for start in range(0, size, _PIECE):
            info = self._statement + struct.pack("<Q", self._pieces)
            made += HKDFExpand(SHA256(), min(_PIECE, size - start), info).derive(self._key)
            self._pieces += 1
        return bytes(made)
