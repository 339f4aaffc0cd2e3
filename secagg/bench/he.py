"""Homomorphic encryption: this library's Paillier, by the public key and by the key's owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from secagg.bench.keyed import F64, Holder, Keyed, Opened
from secagg.bench.rows import ENCODING, System
from secagg.paillier import EncryptedVector, Packing, PrivateKey, PublicKey, set_threads

__all__ = ["Aggregator", "KeyHolder", "Owner", "Sender", "packing", "public", "shared", "under"]

PILOT = 256
"""Ciphertexts: fewer are slower, each of them, as tables grow with the work."""

PUBLIC = System(
    name="he",
    label="HE",
    family="he",
    messages=1,
    dropouts="who has not sent is not in the sum; the key holder must be there",
    decrypts="the key holder",
)
SHARED = System(
    name="he-shared",
    label="HE, shared key",
    family="he",
    messages=1,
    dropouts="who has not sent is not in the sum",
    decrypts="every client",
)


def packing(length: int, clients: int) -> Packing:
    """Return how vectors of so many clients are packed."""
    return Packing(encoding=ENCODING, length=length, summands=clients)


class Sender:
    """A client that has the public key."""

    def __init__(self, key: bytes, clients: int) -> None:
        set_threads(1)
        self._key, self._clients = PublicKey.from_bytes(key, allow_insecure=True), clients

    def encrypt(self, vector: F64) -> bytes:
        """Encode, pack and encrypt."""
        packed = packing(vector.size, self._clients)
        return self._key.encrypt_vector(vector, packed).to_bytes()


class Owner:
    """A client that has the private key."""

    def __init__(self, key: bytes, clients: int) -> None:
        set_threads(1)
        self._key, self._clients = PrivateKey.from_bytes(key, allow_insecure=True), clients

    def encrypt(self, vector: F64) -> bytes:
        """Encode, pack and encrypt modulo the squares of the primes."""
        packed = packing(vector.size, self._clients)
        return self._key.encrypt_vector(vector, packed).to_bytes()


class Aggregator:
    """Checks and adds."""

    def __init__(self, key: bytes, clients: int) -> None:
        set_threads(1)
        self._key, self._clients = PublicKey.from_bytes(key, allow_insecure=True), clients
        self._total: EncryptedVector | None = None

    def add(self, message: bytes, length: int) -> None:
        """Add a client's vector."""
        vector = self._key.load_vector(message, packing(length, self._clients))
        self._total = vector if self._total is None else self._total + vector

    def total(self) -> bytes:
        """Return the total, blinded anew."""
        total, self._total = self._total, None
        return b"" if total is None else total.to_bytes()


class KeyHolder:
    """Has the private key."""

    def __init__(self, key: bytes, clients: int) -> None:
        set_threads(1)
        self._key, self._clients = PrivateKey.from_bytes(key, allow_insecure=True), clients

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Return the sum."""
        packed = packing(length, self._clients)
        vector = self._key.public_key.load_vector(total, packed, summands=None)
        return Opened.clear(np.asarray(self._key.decrypt_vector(vector).sum, dtype=np.float64))


def public(key: PrivateKey, clients: int) -> Keyed:
    """Say how the parties are made when a holder apart from the aggregator has the key."""
    return under(PUBLIC, key.public_key, clients, partial(KeyHolder, key.to_bytes(), clients))


def shared(key: PrivateKey, clients: int) -> Keyed:
    """Say how they are made when all clients have it (Chai et al. 2020)."""
    holder = partial(KeyHolder, key.to_bytes(), clients)
    owner = partial(Owner, key.to_bytes(), clients)
    return replace(under(SHARED, key.public_key, clients, holder), sender=owner, shared=True)


def under(
    system: System,
    key: PublicKey,
    clients: int,
    holder: Callable[[], Holder],
    trustees: int = 1,
) -> Keyed:
    """Say how the parties are made when clients have the public key only."""
    packed = packing(1, clients)
    slots = packed.slots(key.bits)
    return Keyed(
        system=system,
        setting=f"{key.bits} bits, {slots} slots of {packed.slot_bits} bits",
        sender=partial(Sender, key.to_bytes(), clients),
        aggregator=partial(Aggregator, key.to_bytes(), clients),
        holder=holder,
        slots=slots,
        reserved=1,
        pilot=PILOT,
        tables=True,
        trustees=trustees,
    )
