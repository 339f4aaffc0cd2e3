"""Noise that hides the message of a ciphertext: random n-th residues of Z*_{n²}.

Noise is never drawn in advance, so a forked process cannot reuse the noise of its parent.
"""

from __future__ import annotations

from functools import cached_property
from itertools import count as naturals
from typing import Protocol

from secagg.encoding import Entropy
from secagg.encoding.encoding import take
from secagg.paillier.gmp import gmpy2
from secagg.paillier.modular import Batch, FixedBase, Modulus
from secagg.paillier.primes import random_bits, recover, uniform_below, uniform_unit

Seed = tuple[int, ...]
"""Random exponents or roots that determine one residue; as secret as the residue."""


class Noise(Protocol):
    """Source of n-th residues modulo n²: cheap random seeds first, then costly residues."""

    def draw(self, count: int, entropy: Entropy) -> list[Seed]:
        """Return random seeds for `count` residues."""

    def residues(self, seeds: list[Seed]) -> Batch:
        """Return the residue of each seed, as a batch modulo n²; any thread may call it."""


class TextbookNoise:
    """Noise r^n mod n², r uniform in Z*_n (Paillier 1999, §4, scheme 1); `square` is n²."""

    def __init__(self, n: int, square: Modulus) -> None:
        self._n = n
        self._square = square

    def draw(self, count: int, entropy: Entropy) -> list[Seed]:
        """Return `count` random r."""
        return [(uniform_unit(self._n, entropy),) for _ in range(count)]

    def residues(self, seeds: list[Seed]) -> Batch:
        """Return r^n mod n² for each r."""
        return self._square.power(self._square.pack(r for (r,) in seeds), self._n)


class FixedBaseNoise:
    """Noise (h^n)^e · (y^n)^b mod n², e uniform in [0, 2^exponent_bits), b a random bit.

    The powers (h^n)^e follow Damgård, Jurik and Nielsen 2010. For an h of `generate_keypair`
    they are all n-th residues of Jacobi symbol 1. Anybody can compute the symbol, so noise of
    symbol 1 alone would leave a ciphertext's symbol unchanged and link it to the original.
    Hence the factor y^n in half of all noise; y is the least number of symbol −1.

    Exponents of half the length of n are as secure as full ones if factoring is hard (Goldreich
    and Rosen 2003). See `generate_keypair` for the assumption behind shorter exponents. Here
    `square` is n², and h is −x² mod n for a random x.
    """

    def __init__(self, n: int, square: Modulus, h: int, exponent_bits: int) -> None:
        self._n, self._square, self._h = n, square, h
        self._exponent_bits = exponent_bits

    @cached_property
    def _powers(self) -> FixedBase:
        """Powers of h^n. Built lazily: an aggregator never encrypts."""
        residue = gmpy2.powmod(self._h, self._n, self._square.value)
        return FixedBase(self._square, residue, self._exponent_bits)

    @cached_property
    def _symbols(self) -> Batch:
        """The two factors (y^n)^0 = 1 and y^n, as a batch."""
        y = next(y for y in naturals(2) if gmpy2.jacobi(y, self._n) == -1)
        return self._square.pack([1, gmpy2.powmod(y, self._n, self._square.value)])

    def draw(self, count: int, entropy: Entropy) -> list[Seed]:
        """Return `count` random pairs (e, b)."""
        self._powers.expect(count)
        # all exponents first, then a byte for each bit: the order of docs/paillier.md, 3
        exponents = [random_bits(self._exponent_bits, entropy) for _ in range(count)]
        return [(e, b & 1) for e, b in zip(exponents, take(entropy, count), strict=True)]

    def residues(self, seeds: list[Seed]) -> Batch:
        """Return (h^n)^e · (y^n)^b mod n² for each pair."""
        powers = self._powers.power(e for e, _ in seeds)
        return self._square.multiply(powers, self._symbols[[b for _, b in seeds]])


class OwnerNoise:
    """Noise of the key's owner: uniform n-th residues, computed modulo p² and q² separately.

    Modulo p² the n-th residues are the subgroup of order p − 1. For a generator g of Z*_p, g^p
    generates this subgroup. Powers of g^p by uniform exponents below p − 1 are uniform, exactly
    as in the textbook scheme. If no g is known, r^p for a uniform r is used. `square` is n².
    """

    def __init__(self, p: int, q: int, square: Modulus) -> None:
        self._square = square
        self._p_square, self._q_square = Modulus(p * p), Modulus(q * q)
        self._of_p = _noise_modulo(p, self._p_square)
        self._of_q = _noise_modulo(q, self._q_square)
        inverse = gmpy2.invert(self._q_square.value, self._p_square.value)
        self._inverse = self._p_square.pack([inverse])

    def draw(self, count: int, entropy: Entropy) -> list[Seed]:
        """Return pairs of seeds, for an element modulo p² and an element modulo q²."""
        of_p, of_q = self._of_p.draw(count, entropy), self._of_q.draw(count, entropy)
        return [x + y for x, y in zip(of_p, of_q, strict=True)]

    def residues(self, seeds: list[Seed]) -> Batch:
        """Return the n-th residues modulo n², by the Chinese remainder theorem."""
        p_square, q_square = self._p_square, self._q_square
        a = self._of_p.residues([(x,) for x, _ in seeds])
        b = self._of_q.residues([(x,) for _, x in seeds])
        # b + q² ((a − b) / q² mod p²); b is no longer than p², and may be above it
        a_parts = p_square.unpack(p_square.multiply(a, self._inverse))
        b_parts = p_square.unpack(p_square.multiply(b, self._inverse))
        parts = zip(q_square.unpack(b), a_parts, b_parts, strict=True)
        q, p = q_square.value, p_square.value
        return self._square.pack(x + q * ((u - v) % p) for x, u, v in parts)


class _PrimeNoise:
    """Noise g^(p e) mod p², e uniform below p − 1, for a generator g; `square` is p²."""

    def __init__(self, p: int, square: Modulus, generator: int) -> None:
        self._p = int(p)
        root = gmpy2.powmod(generator, p, square.value)
        self._powers = FixedBase(square, root, self._p.bit_length())

    def draw(self, count: int, entropy: Entropy) -> list[Seed]:
        self._powers.expect(count)
        return [(uniform_below(self._p - 1, entropy),) for _ in range(count)]

    def residues(self, seeds: list[Seed]) -> Batch:
        return self._powers.power(e for (e,) in seeds)


def _noise_modulo(p: int, square: Modulus) -> Noise:
    """Return noise modulo p²: uniform elements whose order divides p − 1."""
    # a prime of another implementation may have no known generator
    known = recover(p)
    if known is None:
        return TextbookNoise(p, square)
    return _PrimeNoise(p, square, known.generator)
