"""Generation of Paillier keys: two random primes and the base h of the noise."""

from __future__ import annotations

import os
from typing import Literal

from secagg._check import check_kind
from secagg._printable import in_short
from secagg._secrets import without_frames
from secagg.encoding import Entropy
from secagg.errors import ParameterError
from secagg.paillier.gmp import gmpy2
from secagg.paillier.primes import StructuredPrime, random_prime, uniform_below
from secagg.paillier.private_key import PrivateKey
from secagg.paillier.public_key import MAX_BITS, MIN_BITS, checked_bits, short_exponent

Blinding = Literal["half-length", "textbook", "short-exponent"]


@without_frames
def generate_keypair(
    bits: int = 3072, *, noise: Blinding = "half-length", entropy: Entropy = os.urandom
) -> PrivateKey:
    """Generate a private key. Give the attribute `public_key` to all parties.

    Parameters
    ----------
    bits : int
        Length of n, a multiple of 64 from 2048 to 8192. 3072 bits give the 128-bit level of
        NIST SP 800-57.
    noise : str
        Noise that hides a message. "half-length": (h^n)^e with e of bits / 2 bits, as secure as
        factoring is hard. "textbook": r^n, Paillier's own noise, a hundred times slower.
        "short-exponent": e of 448 bits (512 for n above 2048 bits), faster still. This kind
        assumes that discrete logarithms with such short exponents are hard in the group of h.
    entropy : callable
        Source of random bytes for the primes and h.

    Raises
    ------
    ParameterError
        `bits` or `noise` is invalid.
    """
    return _generate(checked_bits(bits, MIN_BITS, MAX_BITS), noise, entropy)


@without_frames
def generate_insecure_keypair(
    bits: int = 1024, *, noise: Blinding = "half-length", entropy: Entropy = os.urandom
) -> PrivateKey:
    """Generate a short key that can be broken, for tests only; 256 ≤ bits < 2048."""
    return _generate(checked_bits(bits, 256, MIN_BITS - 1), noise, entropy)


def _generate(bits: int, noise: Blinding, entropy: Entropy) -> PrivateKey:
    check_kind("noise", noise, str, "a str")
    lengths = {
        "half-length": bits // 2,
        "textbook": None,
        "short-exponent": short_exponent(bits),
    }
    if noise not in lengths:
        raise ParameterError(
            f"noise must be one of {', '.join(lengths)}, not {in_short(noise)}"
        )
    exponent_bits = lengths[noise]
    while True:
        p, q = (random_prime(bits // 2, entropy) for _ in range(2))
        # with a gcd of 2 the squares modulo n are cyclic, so that powers of one h reach all
        if p.p != q.p and gmpy2.gcd(p.p - 1, q.p - 1) == 2:
            break
    h = None if exponent_bits is None else _base(p, q, entropy)
    return PrivateKey(p.p, q.p, h, exponent_bits, allow_insecure=bits < MIN_BITS)


def _base(p: StructuredPrime, q: StructuredPrime, entropy: Entropy) -> int:
    """Return h = −x² mod n, x uniform, that generates all elements of Jacobi symbol 1."""
    n = p.p * q.p
    while True:
        x = uniform_below(n, entropy)
        # an h of smaller order would leave part of the residues out of the noise
        if x % p.p and x % q.p and p.generates_squares(x) and q.generates_squares(x):
            return int(-x * x % n)
