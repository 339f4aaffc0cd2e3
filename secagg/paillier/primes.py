"""Random primes p for keys, with the factors of p − 1 and so a known generator of Z_p^*.

The primes have the form p = 2 r p' + 1, with p' prime and r odd and without large prime
factors. If r = 1, p is a safe prime (Menezes, van Oorschot and Vanstone, Handbook of Applied
Cryptography (HAC), 1996, §4.6.1). As p' and r are odd, p ≡ 3 (mod 4).

Candidates are the numbers of a randomly placed window that no small prime divides, in random
order. A random composite of k bits passes t rounds of Miller–Rabin with a probability below
k^1.5 · 2^t · 4^(2 − √(t k)) / √t (Damgård, Landrock and Pomerance 1993; HAC, Fact 4.48). The
40 rounds here give a probability of 2^−230 at 512 bits and 2^−430 at 1536 bits. GMP (6.2 and
later) first runs Baillie–PSW, which no composite is known to pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg.encoding import Entropy
from secagg.encoding.encoding import take
from secagg.errors import ParameterError
from secagg.paillier.gmp import gmpy2

_MIN_BITS, _MAX_BITS = 64, 16384
_SMALL = 1 << 16
"""Bound on the prime factors of r, which are all smaller."""
_R_BITS = 16
_SIFT = 1
_ROUNDS = 64
"""The argument of gmpy2.is_prime; GMP counts Baillie–PSW as the first 24."""
_WINDOW = 1 << 13
_SAFE_WINDOW = 1 << 20
_SAFE_SIEVE = 1 << 20
"""One in 430,000 odd numbers of 1535 bits is the p' of a safe prime; 4 in 1000 pass this."""


@dataclass(frozen=True)
class StructuredPrime:
    """Prime p = 2 r p' + 1 with the factors of p − 1. **Secret**, so the repr omits them.

    `ParameterError` is raised if r or p' is not of the stated form, or p is not prime.
    """

    r: int  # odd, with all prime factors below 2^16; 1 for a safe prime
    p_prime: int  # p', a prime above 2^16

    def __post_init__(self) -> None:
        if _split(self.r)[1] != 1:
            raise ParameterError("r must be odd, with no prime factor of 2^16 or more")
        # all rounds of Miller–Rabin run here, once: candidates passed Baillie–PSW only
        if self.p_prime <= _SMALL or not _is_prime(self.p_prime, _ROUNDS):
            raise ParameterError("p' must be a prime above 2^16; draw another")
        if not _is_prime(self.p, _ROUNDS):
            raise ParameterError("2 r p' + 1 is not prime; draw other factors")

    def __repr__(self) -> str:
        return f"StructuredPrime(<{self.p.bit_length()} bits>)"

    @cached_property
    def p(self) -> int:
        """The prime itself."""
        return 2 * self.r * self.p_prime + 1

    @cached_property
    def generator(self) -> int:
        """The least generator g ≥ 2 of Z_p^* (HAC, Alg. 4.80); g proves p prime if p' is."""
        order = self.p - 1
        factors = (2, *_split(self.r)[0], self.p_prime)
        g = 2
        while any(gmpy2.powmod(g, order // f, self.p) == 1 for f in factors):
            g += 1
        return g

    def generates_squares(self, x: int) -> bool:
        """Return whether x² generates the group of squares of Z_p^*, of order (p − 1) / 2."""
        factors = (*_split(self.r)[0], self.p_prime)
        return all(gmpy2.powmod(x, (self.p - 1) // f, self.p) != 1 for f in factors)


def recover(p: int) -> StructuredPrime | None:
    """Return a prime p with the factors of p − 1, or None if they cannot be found.

    For most primes of other implementations the result is None: p − 1 has two large factors.
    """
    _, p_prime = _split(p // 2)
    if p_prime <= _SMALL or not _is_prime(p_prime, _SIFT) or not _is_prime(p, _SIFT):
        return None
    return StructuredPrime(p // 2 // p_prime, p_prime)


def random_prime(bits: int, entropy: Entropy = os.urandom) -> StructuredPrime:
    """Draw a prime p of exactly `bits` bits, with the factors of p − 1.

    The two top bits of p are set, so the product of two such primes has exactly 2 · `bits` bits
    (FIPS 186-5, A.1). The prime p' has `bits` − 16 bits, and the odd r < 2^16 is random among
    the numbers that make p prime. `ParameterError` is raised unless 64 ≤ bits ≤ 16384.
    """
    check_integer("bits", bits, _MIN_BITS, _MAX_BITS)
    bits = int(bits)
    low, high = 3 << (bits - 2), 1 << bits
    while True:
        window = _window(1 << (bits - 1 - _R_BITS), 1 << (bits - _R_BITS), _WINDOW, entropy)
        candidates = _shuffled(window, _sieve(window, _SMALL), entropy)
        p_prime = next((c for c in candidates if _is_prime(c, _SIFT)), None)
        if p_prime is None:
            continue
        # the least odd r that gives p its two top bits; steps of 4 p' keep r odd
        r = -(-low // (2 * p_prime)) | 1
        window = range(2 * r * p_prime + 1, high, 4 * p_prime)
        for p in _shuffled(window, _sieve(window, _SMALL), entropy):
            if _is_prime(p, _SIFT):
                return StructuredPrime(p // 2 // p_prime, p_prime)


def random_safe_prime(bits: int, entropy: Entropy = os.urandom) -> StructuredPrime:
    """Draw a safe prime, p = 2 p' + 1 with p' prime; see `random_prime` for the length of p.

    Safe primes are about a thousand times rarer than primes. At 1536 bits the search takes some
    seconds, with a wide spread. Ctrl-C interrupts the search at any time.
    """
    check_integer("bits", bits, _MIN_BITS, _MAX_BITS)
    bits = int(bits)
    while True:
        # p' with both top bits set gives p = 2 p' + 1 both top bits, too
        window = _window(3 << (bits - 3), 1 << (bits - 1), _SAFE_WINDOW, entropy)
        doubled = range(2 * window.start + 1, 2 * window.stop + 1, 2 * window.step)
        alive = _sieve(window, _SAFE_SIEVE) & _sieve(doubled, _SAFE_SIEVE)
        for p_prime in _shuffled(window, alive, entropy):
            if _is_prime(p_prime, _SIFT) and _is_prime(2 * p_prime + 1, _SIFT):
                return StructuredPrime(1, p_prime)


def uniform_below(bound: int, entropy: Entropy) -> int:
    """Return a uniform integer in [0, bound), by rejection sampling."""
    bits = int(bound - 1).bit_length()
    while True:
        number = random_bits(bits, entropy)
        if number < bound:
            return number


def uniform_unit(n: int, entropy: Entropy) -> int:
    """Return a uniform element of Z*_n."""
    while gmpy2.gcd(unit := uniform_below(n, entropy), n) != 1:
        pass
    return unit


def random_bits(bits: int, entropy: Entropy) -> int:
    """Return a uniform integer in [0, 2^bits)."""
    return int.from_bytes(take(entropy, -(-bits // 8)), "little") & ((1 << bits) - 1)


def _window(low: int, high: int, count: int, entropy: Entropy) -> range:
    """Return up to `count` odd numbers of [low, high), low even, from a random start on."""
    start = low + uniform_below(high - low, entropy) | 1
    return range(start, min(start + 2 * count, high), 2)


def _sieve(window: range, limit: int) -> NDArray[np.bool_]:
    """Return True for each number of `window` that no odd prime below `limit` divides.

    All numbers of the window must exceed `limit`.
    """
    alive = np.ones(len(window), dtype=np.bool_)
    start, step = gmpy2.mpz(window.start), gmpy2.mpz(window.step)
    for q in _primes_below(limit)[1:]:
        # the step is 2, 4 or 4 p' with p' above `limit`, so it has an inverse modulo q
        first = -int(start % q) * pow(int(step % q), -1, q) % q
        alive[first::q] = False
    return alive


def _shuffled(window: range, alive: NDArray[np.bool_], entropy: Entropy) -> Iterator[int]:
    """Return the numbers of `window` that are marked in `alive`, in random order."""
    # the first prime of a window would more often be a prime after a long gap
    left = np.flatnonzero(alive)
    order = np.argsort(np.frombuffer(take(entropy, 8 * len(left)), dtype="<u8"), kind="stable")
    return (window[i] for i in left[order].tolist())


def _is_prime(n: int, rounds: int) -> bool:
    return bool(gmpy2.is_prime(gmpy2.mpz(n), rounds))


def _split(n: int) -> tuple[tuple[int, ...], int]:
    """Return the odd primes below 2^16 that divide n, and n without them."""
    small, rest = [], gmpy2.mpz(n)
    for q in _primes_below(_SMALL)[1:]:
        rest, power = gmpy2.remove(rest, q)
        if power:
            small.append(q)
    return tuple(small), int(rest)


@lru_cache
def _primes_below(limit: int) -> list[int]:
    """Return the primes below `limit`, ascending (Eratosthenes)."""
    prime = np.ones(limit, dtype=np.bool_)
    prime[:2] = False
    for q in range(2, int(gmpy2.isqrt(limit)) + 1):
        if prime[q]:
            prime[q * q :: q] = False
    numbers: list[int] = np.flatnonzero(prime).tolist()
    return numbers
