"""System for comparison: CKKS by TenSEAL, with approximate sums and longer messages.

The security of CKKS rests on lattices (learning with errors), not on factoring.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import msgspec
import numpy as np
import tenseal

from secagg.bench.cases import F64
from secagg.bench.he import PUBLIC
from secagg.bench.keyed import Keyed, Opened

Ciphertext: TypeAlias = Any  # TenSEAL has no types

DEGREE, MODULI = 8192, (60, 40)  # bits of primes: the sum's, and the special one
SLOTS = DEGREE // 2

SYSTEM = replace(PUBLIC, name="ckks", label="CKKS")


class Party:
    """Client or aggregator; with a secret key in `context` also the key holder."""

    def __init__(self, context: bytes) -> None:
        # as every party: processor time is measured on one core
        self._context = tenseal.context_from(context, n_threads=1)
        self._total: list[Ciphertext] = []

    def encrypt(self, vector: F64) -> bytes:
        """Return the ciphertexts of a vector, each of up to ``SLOTS`` elements."""
        blocks = (vector[i : i + SLOTS] for i in range(0, vector.size, SLOTS))
        return _write(tenseal.ckks_vector(self._context, block) for block in blocks)

    def add(self, message: bytes, length: int) -> None:
        """Add the ciphertexts of a message to the total."""
        ciphertexts = self._read(message)
        if not self._total:
            self._total = ciphertexts
            return
        for total, ciphertext in zip(self._total, ciphertexts, strict=True):
            total.add_(ciphertext)

    def total(self) -> bytes:
        """Return the total and set it to zero."""
        total, self._total = self._total, []
        return _write(total)

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Return the approximate sum."""
        parts = [ciphertext.decrypt() for ciphertext in self._read(total)]
        return Opened.clear(np.concatenate(parts))

    def _read(self, message: bytes) -> list[Ciphertext]:
        parts = msgspec.msgpack.decode(message, type=list[bytes])
        return [tenseal.ckks_vector_from(self._context, part) for part in parts]


def _write(ciphertexts: Iterable[Ciphertext]) -> bytes:
    return msgspec.msgpack.encode([ciphertext.serialize() for ciphertext in ciphertexts])


def keyed() -> Keyed:
    """Generate a key and return the system with all parties."""
    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=list(MODULI), n_threads=1
    )
    context.global_scale = 2.0**40
    party = partial(Party, context.serialize(save_secret_key=False))
    return Keyed(
        system=SYSTEM,
        setting=f"TenSEAL, degree {DEGREE:,}, primes of {MODULI[0]} and {MODULI[1]} bits",
        sender=party,
        aggregator=party,
        holder=partial(Party, context.serialize(save_secret_key=True)),
        slots=SLOTS,
        tolerance=1e-6,
    )
