"""Paillier private key, which decrypts sums, and any single client's vector."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import Literal, Self

from secagg._check import as_bytes
from secagg._secrets import Confined, without_frames
from secagg.encoding import Entropy, Vector
from secagg.errors import ParameterError
from secagg.paillier.ciphertexts import CiphertextGroup, Ciphertexts, signed
from secagg.paillier.gmp import checked_int, gmpy2
from secagg.paillier.modular import Modulus
from secagg.paillier.noise import OwnerNoise
from secagg.paillier.packing import Packing
from secagg.paillier.public_key import PublicKey, decode_key, encode_key
from secagg.paillier.vectors import (
    DecryptedSum,
    EncryptedVector,
    checked_sum,
    decode_sum,
    encrypt_vector,
)

MAGIC = b"SASK"


class PrivateKey(Confined):
    """Paillier private key. It decrypts sums, and any single client's vector.

    Parameters
    ----------
    p, q : int
        Two different primes of equal length; their product n has exactly twice that length.
    h, exponent_bits, allow_insecure
        See `PublicKey`. With `h`, p and q must be 3 modulo 4 and gcd(p − 1, q − 1) = 2.

    Raises
    ------
    ParameterError
        A value is invalid. The message does not contain p or q.

    Notes
    -----
    Not constant-time: gmpy2's arithmetic and table lookups depend on secret values. Do not
    decrypt on a machine that others can time.

    A private key cannot be pickled. Export the key by `to_bytes`. Copies are the key itself.
    """

    _remedy = "export it explicitly with to_bytes() and load that with PrivateKey.from_bytes"

    @without_frames
    def __init__(
        self,
        p: int,
        q: int,
        h: int | None = None,
        exponent_bits: int | None = None,
        *,
        allow_insecure: bool = False,
    ) -> None:
        p, q = gmpy2.mpz(checked_int("p", p)), gmpy2.mpz(checked_int("q", q))
        self.public_key = PublicKey(
            int(p * q),
            h,
            exponent_bits,
            allow_insecure=allow_insecure,
            allow_short_exponent=True,  # chosen explicitly at generation
        )
        _check_primes(p, q, structured=h is not None)
        group = self.public_key
        self._p, self._q = _Prime(p, group.n), _Prime(q, group.n)
        self._p_inverse: int = gmpy2.invert(p, q)
        noise = OwnerNoise(p, q, group.modulus)
        self._own = CiphertextGroup(group.n, group.key_id, group.modulus, noise)

    def __repr__(self) -> str:
        return f"PrivateKey({self.public_key.bits} bits, {self.public_key.key_id.hex()[:8]})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrivateKey) and other.public_key == self.public_key

    def __hash__(self) -> int:
        return hash(self.public_key)

    @property
    def primes(self) -> tuple[int, int]:
        """The secret primes p and q, for use in another implementation."""
        return int(self._p.value), int(self._q.value)

    @without_frames
    def encrypt_vector(
        self,
        vector: Vector,
        packing: Packing,
        weight: int | None = None,
        entropy: Entropy = os.urandom,
    ) -> EncryptedVector:
        """Encrypt like `PublicKey.encrypt_vector`, but faster, with p and q; see there."""
        own = encrypt_vector(self._own, vector, packing, weight, entropy)
        # the owner's group has p and q, so the result gets the public group instead
        return replace(own, ciphertexts=replace(own.ciphertexts, group=self.public_key))

    @without_frames
    def decrypt(self, ciphertexts: Ciphertexts) -> list[int]:
        """Return the messages as signed integers, |m| < n / 2 (Paillier 1999, §7, with CRT).

        Raises
        ------
        ParameterError
            The ciphertexts are under another key.
        """
        group = self.public_key
        group.check_own(ciphertexts)
        values = group.modulus.unpack(ciphertexts.batch)
        p, q = self._p.value, self._q.value
        messages = []
        for a, b in zip(self._p.decrypt(values), self._q.decrypt(values), strict=True):
            messages.append(signed(a + p * ((b - a) * self._p_inverse % q), group.n))
        return messages

    @without_frames
    def decrypt_vector(self, vector: EncryptedVector | Literal[0]) -> DecryptedSum:
        """Return the decrypted sum, in the units of the vectors and as exact integers.

        Raises
        ------
        ParameterError
            The vector is under another key, or `vector` is the 0 of an empty ``sum``.
        RemoteProtocolError
            Check "sum", "summands" or "weight": the decrypted values are not the sum of as
            many vectors as the header states.
        """
        total = checked_sum(vector)
        return decode_sum(total, self.decrypt(total.ciphertexts))

    def to_bytes(self) -> bytes:
        """Return the secret key as bytes; store them in a file that only the owner can read."""
        key = self.public_key
        data = encode_key(MAGIC, key.bits, key.exponent_bits, key.h, *self.primes)
        return data + hashlib.sha256(data).digest()

    @classmethod
    @without_frames
    def from_bytes(cls, data: bytes, *, allow_insecure: bool = False) -> Self:
        """Decode the output of `to_bytes`.

        Raises
        ------
        ParameterError
            The bytes, which the message omits, are damaged or are not a private key.
        """
        data = as_bytes(data, "a key")
        if data[: len(MAGIC)] != MAGIC:
            raise ParameterError("these bytes are not a private key, or their start is damaged")
        if hashlib.sha256(data[:-32]).digest() != data[-32:]:
            raise ParameterError(
                "the private key is damaged: its checksum differs; restore it from a copy"
            )
        (p, q), h, exponent_bits = decode_key(data[:-32], MAGIC, 2)
        return cls(p, q, h, exponent_bits, allow_insecure=allow_insecure)


class _Prime:
    """Decryption modulo p², where p is one of the key's two primes."""

    def __init__(self, p: int, n: int) -> None:
        self.value = p
        self._square = Modulus(p * p)
        # the divisor of every decryption: the logarithm of the ciphertext 1 + n of 1
        one = self._logarithm(gmpy2.powmod(1 + n, p - 1, p * p))
        self._scale: int = gmpy2.invert(one, p)

    def decrypt(self, ciphertexts: list[int]) -> list[int]:
        """Return the messages modulo p."""
        p, square = self.value, self._square
        batch = square.pack(c % square.value for c in ciphertexts)
        powers = square.unpack(square.power(batch, p - 1))
        return [self._logarithm(x) * self._scale % p for x in powers]

    def _logarithm(self, x: int) -> int:
        return (x - 1) // self.value  # L of Paillier 1999, §3


def _check_primes(p: int, q: int, *, structured: bool) -> None:
    """Raise for primes that would make the scheme or the fixed-base noise insecure."""
    if p == q or p < 2 or not (gmpy2.is_prime(p) and gmpy2.is_prime(q)):
        raise ParameterError("p and q must be two different primes")
    # the product has twice that size: `PublicKey` takes no length that is odd
    if p.bit_length() != q.bit_length():
        raise ParameterError(
            f"p and q have {p.bit_length()} and {q.bit_length()} bits, their product "
            f"{(p * q).bit_length()}; they must be of one size, the product of twice that"
        )
    # primes of one size do not divide p − 1 or q − 1, so that (m, r) → E(m, r) is a bijection
    if structured and (p % 4 != 3 or q % 4 != 3 or gmpy2.gcd(p - 1, q - 1) != 2):
        raise ParameterError("with h, p and q must be 3 modulo 4 and gcd(p − 1, q − 1) = 2")
