"""Batches of Paillier ciphertexts, and the group that contains them (Paillier 1999).

E(m, r) = (1 + n)^m · r^n mod n². The product of ciphertexts encrypts the sum of their messages,
and a power the multiple. Messages are integers modulo n, read as signed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import gmpy2
import numpy as np

from secagg._check import as_bytes, check_kind, is_integer
from secagg.encoding import Entropy
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.paillier.modular import Batch, Modulus
from secagg.paillier.noise import Noise
from secagg.paillier.threads import in_slices

__all__ = ["CiphertextGroup", "Ciphertexts", "remote"]

PHASE = "paillier"


def remote(check: str, message: str) -> RemoteProtocolError:
    """Return the error for invalid bytes or ciphertexts of the peer."""
    return RemoteProtocolError(message, sender=None, phase=PHASE, check=check)


class CiphertextGroup:
    """Group Z*_{n²} of a public key, and the operations that need no secret.

    Attributes
    ----------
    n, bits : int
        The key's modulus and its length.
    key_id : bytes
        32 bytes that identify the public key in every header.
    modulus : Modulus
        n².
    """

    def __init__(self, n: int, key_id: bytes, modulus: Modulus, noise: Noise) -> None:
        self.n: int = gmpy2.mpz(n)
        self.bits = int(n).bit_length()
        self.key_id = key_id
        self.modulus = modulus
        self._noise = noise

    def encrypt(self, messages: Iterable[int], entropy: Entropy = os.urandom) -> Ciphertexts:
        """Encrypt integers, |m| < n / 2, each under fresh noise from `entropy`.

        Raises
        ------
        ParameterError
            A message is not an int or too large.
        """
        messages = list(messages)
        for position, message in enumerate(messages):
            if not is_integer(message):
                raise ParameterError(
                    f"message {position} must be an int, not {type(message).__name__}"
                )
            if abs(2 * int(message)) >= self.n:
                raise ParameterError(
                    f"message {position} has {int(message).bit_length()} bits; its absolute "
                    f"value must be below n / 2, of {self.bits} bits: take a larger key"
                )
        n, modulus = self.n, self.modulus
        return self._blinded(
            lambda rows: modulus.pack((1 + int(m) * n) % modulus.value for m in messages[rows]),
            len(messages),
            entropy,
        )

    def rerandomise(
        self, ciphertexts: Ciphertexts, entropy: Entropy = os.urandom
    ) -> Ciphertexts:
        """Return fresh ciphertexts of the same messages; without the key they cannot be linked.

        Raises
        ------
        ParameterError
            The ciphertexts are under another key.
        """
        self.check_own(ciphertexts)
        batch = ciphertexts.batch
        return self._blinded(lambda rows: batch[rows], len(batch), entropy)

    def check_own(self, ciphertexts: Ciphertexts) -> None:
        """Raise `ParameterError` for ciphertexts under another key."""
        kind = "Ciphertexts, a vector's .ciphertexts"
        check_kind("ciphertexts", ciphertexts, Ciphertexts, kind)
        if ciphertexts.group.key_id != self.key_id:
            raise ParameterError(
                f"the ciphertexts are under the key {ciphertexts.group.key_id.hex()[:8]}, not "
                f"{self.key_id.hex()[:8]}"
            )

    def _blinded(
        self, batch: Callable[[slice], Batch], count: int, entropy: Entropy
    ) -> Ciphertexts:
        """Multiply a batch, of which each thread makes its rows, by fresh noise."""
        modulus = self.modulus
        seeds = self._noise.draw(count, entropy)
        out = np.empty((count, modulus.limbs), dtype=np.uint64)

        def part(rows: slice) -> None:
            out[rows] = modulus.multiply(batch(rows), self._noise.residues(seeds[rows]))

        in_slices(part, count)
        return Ciphertexts(self, out, fresh=True)

    def load_ints(self, values: Sequence[int]) -> Ciphertexts:
        """Decode ciphertexts of another implementation, e.g. phe's.

        Raises
        ------
        ParameterError
            A ciphertext is not an int.
        RemoteProtocolError
            "ciphertext": one lies outside (0, n²) or has a factor in common with n.
        """
        for position, value in enumerate(values):
            if not is_integer(value):
                raise ParameterError(
                    f"ciphertext {position} must be an int, not {type(value).__name__}"
                )
            if not 0 < value < self.modulus.value:
                raise remote("ciphertext", f"ciphertext {position} is outside (0, n²)")
        return self._checked(self.modulus.pack(values))

    def load(self, data: bytes, count: int) -> Ciphertexts:
        """Decode `count` ciphertexts as `Ciphertexts.to_bytes` wrote them.

        Raises
        ------
        RemoteProtocolError
            "length", or "ciphertext" as in `load_ints`.
        """
        data = as_bytes(data)
        if len(data) != count * self.modulus.width:
            raise remote(
                "length",
                f"{len(data)} bytes; {count} ciphertexts take {count * self.modulus.width}",
            )
        return self._checked(self.modulus.unwrap(data))

    def _checked(self, batch: Batch) -> Ciphertexts:
        """Validate that all are in the group: another number could give the key away."""
        highest = np.uint64(self.modulus.value >> 64 * (self.modulus.limbs - 1))
        for row in np.flatnonzero((batch[:, -1] >= highest) | ~batch.any(axis=1)):
            if not 0 < self.modulus.unpack(batch[row : row + 1])[0] < self.modulus.value:
                raise remote("ciphertext", f"ciphertext {row} is outside (0, n²)")
        if gmpy2.gcd(self.modulus.product(batch), self.n) != 1:
            values = enumerate(self.modulus.unpack(batch))
            bad = next(row for row, value in values if gmpy2.gcd(value, self.n) != 1)
            raise remote("ciphertext", f"ciphertext {bad} has a factor in common with n")
        return Ciphertexts(self, batch, fresh=True)


@dataclass(frozen=True, eq=False)
class Ciphertexts:
    """Batch of ciphertexts under one key, made by its group.

    Parameters
    ----------
    group : CiphertextGroup
    batch : uint64 array, shape (count, limbs)
    fresh : bool
        True for new or received ciphertexts. A sum depends on its summands, so it is blinded
        again before it is sent.
    """

    group: CiphertextGroup
    batch: Batch
    fresh: bool

    def __len__(self) -> int:
        return len(self.batch)

    def __repr__(self) -> str:
        return f"Ciphertexts({len(self)} under {self.group.key_id.hex()[:8]})"

    def __add__(self, other: Ciphertexts) -> Self:
        """Add message by message; raise `ParameterError` for another key or length."""
        self._check_alike(other)
        return self._derived(self.group.modulus.multiply(self.batch, other.batch))

    def __neg__(self) -> Self:
        """Negate every message."""
        modulus = self.group.modulus
        inverses = (gmpy2.invert(c, modulus.value) for c in modulus.unpack(self.batch))
        return self._derived(modulus.pack(inverses))

    def __sub__(self, other: Ciphertexts) -> Self:
        """Subtract message by message; raise `ParameterError` for another key or length."""
        self._check_alike(other)
        return self + -other

    def __mul__(self, factor: int) -> Self:
        """Multiply by a public int, |factor| < n / 2; raise `ParameterError` for any other."""
        if not is_integer(factor) or 2 * abs(int(factor)) >= self.group.n:
            raise ParameterError("the factor must be an int below n / 2 in absolute value")
        base = -self if factor < 0 else self
        return self._derived(self.group.modulus.power(base.batch, abs(int(factor))))

    __rmul__ = __mul__

    def to_ints(self, entropy: Entropy = os.urandom) -> list[int]:
        """Return the ciphertexts as integers of (0, n²), blinded as by `to_bytes`."""
        return [int(c) for c in self.group.modulus.unpack(self._shown(entropy).batch)]

    def to_bytes(self, entropy: Entropy = os.urandom) -> bytes:
        """Return the ciphertexts in the fixed width of n²; computed ones are blinded again."""
        return self.group.modulus.wrap(self._shown(entropy).batch)

    def digest(self) -> bytes:
        """Return SHA-256 of the batch as it is, its identifier."""
        return hashlib.sha256(self.group.modulus.wrap(self.batch)).digest()

    def _shown(self, entropy: Entropy) -> Ciphertexts:
        return self if self.fresh else self.group.rerandomise(self, entropy)

    def _derived(self, batch: Batch) -> Self:
        return type(self)(self.group, batch, fresh=False)

    def _check_alike(self, other: Ciphertexts) -> None:
        check_kind("the other summand", other, Ciphertexts, "Ciphertexts")
        if other.group.key_id != self.group.key_id:
            raise ParameterError(
                f"the ciphertexts are under the keys {self.group.key_id.hex()[:8]} and "
                f"{other.group.key_id.hex()[:8]}; only those under one key can be added"
            )
        if len(other) != len(self):
            raise ParameterError(
                f"{len(self)} and {len(other)} ciphertexts cannot be added; their numbers "
                "must be equal"
            )
