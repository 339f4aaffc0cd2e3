"""Systems with this library's Paillier: a key holder, a key of all clients, or trustees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from secagg.bench.cases import ENCODING, F64, System
from secagg.bench.keyed import Holder, Keyed, Opened
from secagg.paillier import EncryptedVector, Packing, PrivateKey, PublicKey
from secagg.paillier.public_key import MIN_BITS
from secagg.threshold import KeyShare, ThresholdKey, deal, deal_insecure

TRUSTEES, ENOUGH = 3, 2

PILOT = 256  # ciphertexts; each of fewer is slower, as tables grow with the work

_LACK = "the sum lacks dropped-out clients"
PUBLIC = System("he", "HE", "he", 1, f"{_LACK}; the key holder must be there", "the key holder")
SHARED = replace(
    PUBLIC, name="he-shared", label="HE, shared key", dropouts=_LACK, decrypts="every client"
)
THRESHOLD = replace(
    PUBLIC,
    name="he-threshold",
    label=f"HE, {ENOUGH} of {TRUSTEES} trustees",
    dropouts=f"{_LACK}; {ENOUGH} trustees must be there",
    decrypts=f"{ENOUGH} trustees together, and the dealer of their key",
)


def packing(length: int, clients: int) -> Packing:
    """Return the packing for a sum over `clients` vectors of `length` elements."""
    return Packing(encoding=ENCODING, length=length, summands=clients)


class Party:
    """Client or aggregator; with the private key also the key holder."""

    def __init__(self, key: bytes, clients: int, *, private: bool = False) -> None:
        kind: Any = PrivateKey if private else PublicKey
        # the benchmark also takes small keys, since it protects no data
        self._key = kind.from_bytes(key, allow_insecure=True)
        self._public: PublicKey = self._key.public_key if private else self._key
        self._clients = clients
        self._total: EncryptedVector | None = None

    def encrypt(self, vector: F64) -> bytes:
        """Return an encrypted vector as bytes."""
        packed = packing(vector.size, self._clients)
        return bytes(self._key.encrypt_vector(vector, packed).to_bytes())

    def add(self, message: bytes, length: int) -> None:
        """Validate a client's encrypted vector and add the vector to the total."""
        vector = self._public.load_vector(message, packing(length, self._clients))
        self._total = vector if self._total is None else self._total + vector

    def total(self) -> bytes:
        """Return the total, blinded again, and set it to zero."""
        total, self._total = self._total, None
        return b"" if total is None else total.to_bytes()

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Return the decrypted sum."""
        packed = packing(length, self._clients)
        vector = self._public.load_vector(total, packed, summands=None)
        return Opened.clear(np.asarray(self._key.decrypt_vector(vector).sum, dtype=np.float64))


class Trustees:
    """Key holder made of trustees, with the aggregator's combination of their answers."""

    def __init__(self, key: bytes, shares: list[bytes], clients: int) -> None:
        self._key, self._clients = ThresholdKey.from_bytes(key, allow_insecure=True), clients
        self._shares = [KeyShare.from_bytes(share, self._key) for share in shares]

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Decrypt partially by each trustee in turn, combine, and return the sum."""
        packed, public = packing(length, self._clients), self._key.public_key
        answers = []
        # trustees are separate parties, and each of them loads the total
        for share in self._shares:
            asked = public.load_vector(total, packed, summands=None)
            answers.append(share.decrypt_partially(asked.ciphertexts).to_bytes())
        vector = public.load_vector(total, packed, summands=None)
        parts = [self._key.load_partial(answer) for answer in answers]
        opened = self._key.combine_vector(vector, parts).sum
        return Opened(np.asarray(opened, dtype=np.float64), sum(map(len, answers)))


def public(key: PrivateKey, clients: int) -> Keyed:
    """Return the system where a key holder, not the aggregator, has the private key."""
    return _under(PUBLIC, key.public_key, clients, _owner(key, clients))


def shared(key: PrivateKey, clients: int) -> Keyed:
    """Return the system where all clients have the private key (Chai et al. 2020)."""
    sender = _owner(key, clients)
    return replace(public(key, clients), system=SHARED, sender=sender, shared=True)


def _owner(key: PrivateKey, clients: int) -> Callable[[], Party]:
    return partial(Party, key.to_bytes(), clients, private=True)


def deal_key(bits: int) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Deal a threshold key of `bits` bits to the trustees."""
    return (deal if bits >= MIN_BITS else deal_insecure)(TRUSTEES, ENOUGH, bits=bits)


def threshold(key: ThresholdKey, shares: tuple[KeyShare, ...], clients: int) -> Keyed:
    """Return the system where trustees decrypt together."""
    some = [share.to_bytes() for share in shares[:ENOUGH]]
    holder = partial(Trustees, key.to_bytes(), some, clients)
    return replace(_under(THRESHOLD, key.public_key, clients, holder), trustees=ENOUGH)


def _under(system: System, key: PublicKey, clients: int, holder: Callable[[], Holder]) -> Keyed:
    """Return a system with only the public key at the clients and the aggregator."""
    packed, party = packing(1, clients), partial(Party, key.to_bytes(), clients)
    slots = packed.slots(key.bits)
    return Keyed(
        system=system,
        setting=f"{key.bits} bits, {slots} slots of {packed.slot_bits} bits",
        sender=party,
        aggregator=party,
        holder=holder,
        slots=slots,
        reserved=1,
        pilot=PILOT,
        tables=True,
    )
