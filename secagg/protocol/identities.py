"""Identities of the active variant: signing keys of clients, and a registry of public keys.

Signatures are Ed25519 (RFC 8032). The application gives every client its `Identity`, and all
parties the same `Registry`. Without a registry a lying server could invent the other clients
(Bonawitz 2017, §6.2: the malicious model needs a PKI).
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from secagg._check import check_kind
from secagg._records import Records
from secagg._secrets import Confined, without_frames
from secagg.encoding import Entropy
from secagg.errors import ParameterError
from secagg.protocol.client_ids import ByClient, ClientKey, Names, called, client_id
from secagg.protocol.key_files import registry_from_json
from secagg.protocol.keys import PublicKeys
from secagg.protocol.params import RoundParams
from secagg.protocol.shape import Shape

SIGNATURE_BYTES = 64
_P = 2**255 - 19
_SMALL_ORDER = frozenset(
    int.from_bytes(bytes.fromhex(y), "little")
    for y in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
    )
)
"""The y coordinates of the points with an order that divides 8; a test computes them."""


class Identity(Confined):
    """Long-lived signing key of a client, who stores the seed.

    An identity cannot be pickled. A copy of an identity is the identity itself.

    Parameters
    ----------
    seed : bytes
        Private key of RFC 8032, 32 bytes. Keep it as secret as a password.

    Attributes
    ----------
    public : bytes
        Public key for the `Registry`, 32 bytes.

    Raises
    ------
    ParameterError
        The seed is not 32 bytes.
    """

    __slots__ = ("_hedging", "_private", "public")
    _remedy = "store Identity.to_pem(), and make it again with Identity.from_pem"

    @without_frames
    def __init__(self, seed: bytes) -> None:
        if not isinstance(seed, bytes) or len(seed) != 32:
            raise ParameterError("an identity's seed must be 32 bytes, and this one is not")
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._private.public_key().public_bytes_raw()
        self._hedging = b""

    def __repr__(self) -> str:
        return f"Identity(public={self.public.hex()})"

    @classmethod
    def generate(cls, entropy: Entropy = os.urandom) -> Identity:
        """Draw a new identity; `to_pem` stores it."""
        return cls(entropy(32))

    @classmethod
    @without_frames
    def from_pem(cls, data: bytes) -> Identity:
        """Return the identity of a key file, such as ``secagg identity keygen`` makes.

        Parameters
        ----------
        data : bytes
            Ed25519 private key in PEM of PKCS #8 (RFC 8410), not encrypted.

        Raises
        ------
        ParameterError
            The bytes are not such a key.
        """
        try:
            key = load_pem_private_key(data, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise ParameterError(
                "this is no Ed25519 private key in PEM, without a password; make one with "
                "secagg identity keygen or Identity.to_pem"
            )
        return cls(key.private_bytes_raw())

    def to_pem(self) -> bytes:
        """Return the private key in PEM of PKCS #8 (RFC 8410), not encrypted."""
        return self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, content: bytes) -> bytes:
        """Return the signature of `content`, 64 bytes."""
        return self._private.sign(content)


class Registry(Mapping[int, bytes]):
    """Public keys of all clients that may take part, by id.

    Parameters
    ----------
    keys : mapping of id to bytes
        ``Identity.public`` of each client, 32 bytes. Clients that take no part in a round may
        be among them. A name stands for its `client_id`.

    Attributes
    ----------
    names : mapping of int to str
        Names by id, of the clients that were given by name; without names of decimal digits.

    Raises
    ------
    ParameterError
        An id is not an int in [0, 2^64) or a name, two clients have the same id or key, or a
        key is not 32 bytes. Or a key is of low order, so that anybody could sign under that
        key, or is not written in the canonical way.
    """

    def __init__(self, keys: ByClient[bytes]) -> None:
        if not isinstance(keys, Mapping):
            raise ParameterError(
                f"keys must be a mapping of client id to key, not {type(keys).__name__}"
            )
        names = Names()
        clients = names.keys(keys)
        self.names: Mapping[int, str] = names.shown
        joined = bytearray()
        for client in clients.values():
            key = cast("Mapping[ClientKey, bytes]", keys)[client]
            if not isinstance(key, bytes) or len(key) != 32:
                raise ParameterError(f"client {client!r}'s identity key is not 32 bytes")
            if not _is_strong(key):
                raise ParameterError(
                    f"client {client!r}'s identity key {key.hex()} is not canonical or of low "
                    "order, so its signatures can be forged; register Identity.public or "
                    "leave the client out"
                )
            joined += key
        ids = np.fromiter(clients, np.uint64, len(clients))
        self._keys = Records.of(ids, np.frombuffer(joined, np.uint8).reshape(-1, 32))
        _check_distinct(self._keys, clients)

    @classmethod
    def from_json(cls, text: str | bytes) -> Registry:
        """Return the registry of a file, such as ``secagg identity register`` makes.

        Parameters
        ----------
        text : str or bytes
            JSON object of public keys in hexadecimal, by the names or ids of clients. Decimal
            digits stand for an id.

        Raises
        ------
        ParameterError
            The text is not such an object; the message has the line or the entry. Or `Registry`
            raises the error.
        """
        return cls(registry_from_json(text))

    def __getitem__(self, client: ClientKey) -> bytes:
        return self._keys[client_id(client) if isinstance(client, str) else client]

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"Registry(<{len(self)} clients>)"

    def called(self, client_id: int) -> str:
        """Return the name of a client, with control characters escaped, or the id."""
        return called(client_id, self.names)

    def verifies(self, client_id: int, content: bytes, signature: bytes) -> bool:
        """Return True if a known client signed `content`; False also for an unknown client."""
        key = self._keys.get(client_id)
        if key is None:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, content)
        except (InvalidSignature, ValueError):
            return False
        return True


def _check_distinct(keys: Records, clients: Mapping[int, ClientKey]) -> None:
    """Raise `ParameterError` if two clients have the same key."""
    words = keys.rows.view(np.uint64)
    order = np.lexsort(words.T)  # stable, so the two ids ascend
    same = (words[order[1:]] == words[order[:-1]]).all(axis=1)
    for at in np.flatnonzero(same)[:1].tolist():
        u, v = keys.ids[order[at : at + 2]].tolist()
        raise ParameterError(
            f"clients {clients[u]!r} and {clients[v]!r} have the same identity key; register "
            "different ones"
        )


def _is_strong(key: bytes) -> bool:
    y = int.from_bytes(key, "little") & ((1 << 255) - 1)  # the top bit is the sign of x
    return y < _P and y not in _SMALL_ORDER


def check_registry(params: Shape, registry: Registry | None) -> None:
    """Raise `ParameterError` unless a registry is given exactly in the active variant."""
    if registry is not None:
        check_kind(
            "registry", registry, Registry, "a secagg.Registry({id: identity.public, …})"
        )
    if params.active and registry is None:
        raise ParameterError(
            "security 'active' needs registry=secagg.Registry({id: identity.public, …})"
        )
    if not params.active and registry is not None:
        raise ParameterError(
            f"a registry was given, but security {params.security!r} has no signatures; leave "
            "the registry out, or take security='active'"
        )


def check_identity(
    client_id: int, params: RoundParams, identity: Identity | None, registry: Registry | None
) -> None:
    """Raise `ParameterError` unless identity and registry fit the variant and the client.

    Both must be given in the active variant only, with the client's public key in the registry.
    """
    check_registry(params, registry)
    if identity is not None:
        check_kind("identity", identity, Identity, "a secagg.Identity")
    if not params.active and identity is not None:
        raise ParameterError(
            f"an identity was given, but security {params.security!r} has no signatures; leave "
            "the identity out, or take security='active'"
        )
    if registry is None:
        return
    if identity is None:
        raise ParameterError("security 'active' needs identity=secagg.Identity(seed)")
    # peers verify under the registry's key, so they would reject this client's signatures
    if registry.get(client_id) != identity.public:
        raise ParameterError(
            f"the registry has no entry or another key for client {client_id}; register "
            "identity.public under its id"
        )


def hedging_secret(identity: Identity | None) -> bytes:
    """Return the secret that hedges a client's new keys; no bytes without an identity.

    The secret is the SHA-256 of a signature that is never sent (RFC 8937, §3). It is made once
    and kept in the identity, because it is as secret as the identity.
    """
    if identity is None:
        return b""
    if not identity._hedging:
        signature = identity.sign(b"secagg/2 hedged identity")
        identity._hedging = hashlib.sha256(signature).digest()
    return identity._hedging


def signed_keys(params_digest: bytes, sender: int, publics: PublicKeys) -> bytes:
    """Return the bytes that a client signs in round 0 (Bonawitz 2017, Figure 4: c_u ‖ s_u).

    The session identifier does not exist yet. The digest covers ``RoundParams.session``.
    """
    head = b"secagg/4 signed keys" + params_digest + struct.pack("<QB", sender, 0)
    return head + publics.bound


def signed_survivors(session: bytes, sender: int, survivors: bytes) -> bytes:
    """Return the bytes that a client signs in round 3; `survivors` are the packed ids of U3."""
    return b"secagg/2 signed survivors" + session + struct.pack("<QB", sender, 3) + survivors
