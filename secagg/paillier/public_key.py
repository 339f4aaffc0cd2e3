"""Paillier public key, and the encoding of keys: a header, then little-endian numbers."""

from __future__ import annotations

import hashlib
import math
import os
import struct
from typing import Self

from secagg._check import as_bytes, check_flag, check_integer
from secagg._secrets import without_frames
from secagg.encoding import Entropy, Vector
from secagg.errors import ParameterError
from secagg.paillier.ciphertexts import CiphertextGroup, remote
from secagg.paillier.gmp import checked_int, gmpy2
from secagg.paillier.modular import Modulus
from secagg.paillier.noise import FixedBaseNoise, Noise, TextbookNoise
from secagg.paillier.packing import Packing
from secagg.paillier.vectors import EncryptedVector, encrypt_vector, load_vector

MIN_BITS, MAX_BITS = 2048, 8192
MAGIC = b"SAPK"
HEADER = struct.Struct("<4sBHH")  # magic, version, bits of n, bits of exponents
VERSION = 1


class PublicKey(CiphertextGroup):
    """Paillier public key, for encryption.

    Parameters
    ----------
    n : int
        Product of two primes of equal length; n has 2048 to 8192 bits, a multiple of 64.
    h : int, optional
        −x² mod n for a random x, for the noise (h^n)^e (Damgård, Jurik, Nielsen 2010), much
        faster than the textbook's r^n. None: noise r^n, as in keys of other implementations.
    exponent_bits : int, optional
        Length of e, from half the length of n to the full length of n. Required with `h`, an
        error without `h`.
    allow_insecure : bool
        Accept n below 2048 bits, for tests.
    allow_short_exponent : bool
        Accept e shorter than half of n, under the assumption that `generate_keypair` states.

    Raises
    ------
    ParameterError
        n, h or `exponent_bits` is out of range, or n is prime, a square or has a factor below
        2^16. Nobody can check that n is the product of two primes; the maker of n can decrypt
        anyway.
    """

    def __init__(
        self,
        n: int,
        h: int | None = None,
        exponent_bits: int | None = None,
        *,
        allow_insecure: bool = False,
        allow_short_exponent: bool = False,
    ) -> None:
        check_flag("allow_insecure", allow_insecure)
        check_flag("allow_short_exponent", allow_short_exponent)
        n = gmpy2.mpz(checked_int("n", n))
        h = None if h is None else checked_int("h", h)
        _check_modulus(n, 64 if allow_insecure else MIN_BITS)
        bits = n.bit_length()
        if (h is None) != (exponent_bits is None):
            raise ParameterError("give h and exponent_bits together, or neither")
        square = Modulus(n * n)
        noise: Noise = TextbookNoise(n, square)
        if h is not None and exponent_bits is not None:
            check_integer("exponent_bits", exponent_bits, short_exponent(bits), bits)
            exponent_bits = int(exponent_bits)
            if 2 * exponent_bits < bits and not allow_short_exponent:
                raise ParameterError(
                    f"exponents of {exponent_bits} bits, less than half of n's, take a further "
                    "assumption: pass allow_short_exponent=True to accept it"
                )
            # powers of 1 and −1 would blind nothing
            if not 1 < h < n - 1 or gmpy2.jacobi(h, n) != 1:
                raise ParameterError("h is not of the form −x² modulo n")
            noise = FixedBaseNoise(n, square, h, exponent_bits)
        self.h, self.exponent_bits = h, exponent_bits
        self._bytes = encode_key(MAGIC, bits, exponent_bits, h, n)
        super().__init__(n, hashlib.sha256(self._bytes).digest(), square, noise)

    def __repr__(self) -> str:
        short = self.exponent_bits is not None and 2 * self.exponent_bits < self.bits
        exponents = f"exponents of {self.exponent_bits} bits, " if short else ""
        return f"PublicKey({self.bits} bits, {exponents}{self.key_id.hex()[:8]})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and other.key_id == self.key_id

    def __hash__(self) -> int:
        return hash(self.key_id)

    @without_frames
    def encrypt_vector(
        self,
        vector: Vector,
        packing: Packing,
        weight: int | None = None,
        entropy: Entropy = os.urandom,
    ) -> EncryptedVector:
        """Encode, pack and encrypt a client's vector.

        A `ClippingWarning` has the number of clipped elements, if there are any.

        Parameters
        ----------
        vector : array, shape (packing.length,)
            Finite floats for a packing with FixedPoint, integers for a packing with Integers.
        packing : Packing
            Packing of all vectors of the sum.
        weight : int, optional
            Factor of the vector, 0 ≤ weight ≤ max_weight, also encrypted. Required if the
            packing has a max_weight, an error otherwise.
        entropy : callable
            Source of random bytes for stochastic rounding and the noise.

        Raises
        ------
        ParameterError
            The vector or weight does not fit the packing, or a slot is longer than the key.
        """
        return encrypt_vector(self, vector, packing, weight, entropy)

    def load_vector(
        self, data: bytes, packing: Packing, summands: int | None = 1
    ) -> EncryptedVector:
        """Decode and validate the output of `EncryptedVector.to_bytes`.

        Parameters
        ----------
        data : bytes
        packing : Packing
            Expected packing.
        summands : int or None
            Expected number of vectors in the sum, none subtracted; 1 for a client's vector.
            None: any number that the packing has room for.

        Raises
        ------
        ParameterError
            An argument is of the wrong type, or `summands` not from 1 to ``packing.summands``.
        RemoteProtocolError
            The bytes are invalid or not as expected. The failed check is "length", "version",
            "key", "packing", "summands" or "ciphertext".
        """
        return load_vector(self, data, packing, summands)

    def to_bytes(self) -> bytes:
        """Return the key as bytes to publish."""
        return self._bytes

    @classmethod
    def from_bytes(
        cls, data: bytes, *, allow_insecure: bool = False, allow_short_exponent: bool = False
    ) -> Self:
        """Decode the output of `to_bytes`; see the class for the parameters.

        Raises
        ------
        RemoteProtocolError
            Check "public_key": the bytes are not a valid key.
        """
        data = as_bytes(data, "a key")
        try:
            (n,), h, exponent_bits = decode_key(data, MAGIC, 1)
            return cls(
                n,
                h,
                exponent_bits,
                allow_insecure=allow_insecure,
                allow_short_exponent=allow_short_exponent,
            )
        except ParameterError as error:
            raise remote("public_key", str(error)) from None


def checked_bits(bits: int, low: int, high: int) -> int:
    """Return the length of a new key's n as an int, or raise `ParameterError`."""
    check_integer("bits", bits, low, high)
    if bits % 64:
        raise ParameterError(f"bits is {bits}; it must be a multiple of 64")
    return int(bits)


def short_exponent(bits: int) -> int:
    """Return the length of short exponents for n of `bits` bits."""
    return min(bits // 2, 448 if bits <= MIN_BITS else 512)


def _check_modulus(n: int, low: int) -> None:
    bits = int(n).bit_length()
    if not low <= bits <= MAX_BITS or bits % 64 or n < 0 or n % 2 == 0:
        raise ParameterError(
            f"n has {bits} bits; it must be positive and odd, its length a multiple of 64 "
            f"between {low} and {MAX_BITS}"
            + (" (allow_insecure=True accepts less, for tests)" if low == MIN_BITS else "")
        )
    small = gmpy2.gcd(n, gmpy2.primorial((1 << 16) - 1)) != 1
    if small or gmpy2.is_square(n) or gmpy2.is_prime(n):
        raise ParameterError(
            "n is prime, a square or divisible by a prime below 2^16; it must be the product "
            "of two large primes"
        )


def encode_key(
    magic: bytes, bits: int, exponent_bits: int | None, h: int | None, *factors: int
) -> bytes:
    """Return a key with n of `bits` bits as bytes: a header, then little-endian numbers.

    The numbers are n, or the primes p and q, and h.
    """
    size = bits // 8
    numbers = [int(x).to_bytes(size // len(factors), "little") for x in factors]
    numbers.append(int(h or 0).to_bytes(size, "little"))
    return HEADER.pack(magic, VERSION, bits, exponent_bits or 0) + b"".join(numbers)


def decode_key(
    data: bytes, magic: bytes, factors: int
) -> tuple[list[int], int | None, int | None]:
    """Return n (or p and q), h and the length of exponents of an encoded key.

    A key without h has None for both. `ParameterError` is raised for invalid bytes.
    """
    if len(data) < HEADER.size:
        raise ParameterError(f"{len(data)} bytes are not a key")
    found, version, bits, exponent_bits = HEADER.unpack_from(data)
    if found != magic or version != VERSION:
        raise ParameterError(f"not a key of this kind and version {VERSION}")
    body, size = data[HEADER.size :], bits // 8
    if not bits or bits % 64 or len(body) != 2 * size:
        raise ParameterError(f"{len(data)} bytes are not a key of {bits} bits")
    width = size // factors
    parts = [body[at : at + width] for at in range(0, size, width)]
    *numbers, h = (int.from_bytes(part, "little") for part in (*parts, body[size:]))
    found_bits = math.prod(numbers).bit_length()
    if found_bits != bits:  # so that a key has one encoding and one id
        raise ParameterError(f"n has {found_bits} bits; the key's header says {bits}")
    return numbers, h or None, exponent_bits or None
