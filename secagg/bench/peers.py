"""Systems with the package phe: Paillier with a ciphertext per float, as in the FedMF paper.

The second system encrypts packed integers with phe, so the two show the gain of packing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice, pairwise
from typing import Any, TypeAlias

import numpy as np
from phe import paillier

from secagg.bench.cases import ENCODING, F64
from secagg.bench.he import PUBLIC, packing
from secagg.bench.keyed import Keyed, Opened
from secagg.bench.per_float import ADD, DECRYPT, ENCRYPT, Work, sample

# phe has no types
PublicKey: TypeAlias = Any
PrivateKey: TypeAlias = Any
Number: TypeAlias = Any

FLOATS = replace(PUBLIC, name="phe-float", label="phe, per float")
PACKED = replace(PUBLIC, name="phe-packed", label="phe, packed")


def generate(bits: int) -> tuple[PublicKey, PrivateKey]:
    """Generate a key pair of `bits` bits."""
    public, private = paillier.generate_paillier_keypair(n_length=bits)
    return public, private


class FloatParty:
    """Client or aggregator with a ciphertext per float, sent together with the exponent."""

    def __init__(self, public: PublicKey) -> None:
        self._public = public
        self._format = struct.Struct(f">{-(-2 * public.n.bit_length() // 8)}si")
        self._total: list[Number] = []

    def encrypt(self, vector: F64) -> bytes:
        """Return one ciphertext for each float, as bytes."""
        return self._write(self._public.encrypt(x) for x in vector.tolist())

    def add(self, message: bytes, length: int) -> None:
        """Add the ciphertexts of a message to the total."""
        numbers = list(self.read(message))
        pairs = zip(self._total, numbers, strict=True) if self._total else ()
        self._total = [a + b for a, b in pairs] or numbers

    def total(self) -> bytes:
        """Return the total, not blinded again because the key holder reads it; clear it."""
        total, self._total = self._total, []
        return self._write(total)

    def _write(self, numbers: Iterable[Number]) -> bytes:
        width = self._format.size - 4
        return b"".join(
            self._format.pack(one.ciphertext(be_secure=False).to_bytes(width), one.exponent)
            for one in numbers
        )

    def read(self, message: bytes) -> Iterator[Number]:
        """Yield the encrypted numbers of a message."""
        for ciphertext, exponent in self._format.iter_unpack(message):
            yield paillier.EncryptedNumber(self._public, int.from_bytes(ciphertext), exponent)


class FloatHolder(FloatParty):
    """Key holder with a ciphertext per float."""

    def __init__(self, public: PublicKey, private: PrivateKey) -> None:
        super().__init__(public)
        self._private = private

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Return the sum, decrypted float by float."""
        floats = [self._private.decrypt(number) for number in self.read(total)]
        return Opened.clear(np.array(floats))


class PackedParty(FloatHolder):
    """Any party with this library's packing; only the key holder has `private`, others None."""

    def __init__(self, public: PublicKey, clients: int, private: PrivateKey = None) -> None:
        super().__init__(public, private)
        self._bits, self._clients = public.n.bit_length(), clients

    def encrypt(self, vector: F64) -> bytes:
        """Return the packed vector, encrypted integer by integer."""
        packed, public = packing(vector.size, self._clients), self._public
        plaintexts = packed.pack(packed.encode(vector)[0], self._bits)
        ciphertexts = (public.raw_encrypt(int(m) % public.n) for m in plaintexts)
        return self._write(paillier.EncryptedNumber(public, c) for c in ciphertexts)

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Return the sum, decrypted integer by integer and unpacked."""
        n = self._public.n
        numbers = (number.ciphertext(be_secure=False) for number in self.read(total))
        found = (self._private.raw_decrypt(c) for c in numbers)
        signed = [m - n if 2 * m > n else m for m in found]
        integers = packing(length, self._clients).unpack(signed, self._bits)
        return Opened.clear(integers[:-1] / ENCODING.scale)


def floats(public: PublicKey, private: PrivateKey) -> Keyed:
    """Return the system of phe with one ciphertext per float."""
    party = partial(FloatParty, public)
    holder = partial(FloatHolder, public, private)
    return Keyed(FLOATS, f"{public.n.bit_length()} bits", party, party, holder, slots=1)


def packed(public: PublicKey, private: PrivateKey, clients: int) -> Keyed:
    """Return the system of phe with packed integers."""
    bits, one = public.n.bit_length(), packing(1, clients)
    setting = f"{bits} bits, {one.slots(bits)} slots of {one.slot_bits} bits"
    party = partial(PackedParty, public, clients)
    holder = partial(party, private)
    return Keyed(PACKED, setting, party, party, holder, slots=one.slots(bits), reserved=1)


def works(public: PublicKey, private: PrivateKey) -> dict[str, Work]:
    """Return phe's operations on floats by name, for `per_float`."""
    some = [public.encrypt(x) for x in sample(8)]
    pairs = list(islice(pairwise(cycle(some)), 100))
    return {
        ENCRYPT: Work(lambda: [public.encrypt(x) for x in sample(3)], 3),
        DECRYPT: Work(lambda: [private.decrypt(number) for number in some], 8),
        ADD: Work(lambda: [a + b for a, b in pairs], 100),
    }
