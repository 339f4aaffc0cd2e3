"""Test of a number for primality, with or without gmpy2."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Every composite below 3.1 · 10^23 fails for one base (Sorenson and Webster 2015)."""
_ROUNDS = 64


def is_prime(n: int) -> bool:
    """Return True if n is prime.

    Below 2^64 the answer is certain: Miller and Rabin's test with the twelve smallest primes as
    bases. Beyond, gmpy2 answers, by Baillie–PSW and 40 rounds of Miller–Rabin. Without gmpy2
    the test has 64 rounds, with hashes of n as bases. A composite passes with a probability
    below 4^−64, even a composite that an adversary chose.
    """
    # n may be a base itself, for which the test below fails
    if n < 2 or any(n % q == 0 for q in _BASES):
        return n in _BASES
    if n < 1 << 64:
        return _miller_rabin(n, _BASES)
    try:
        import gmpy2  # imported here: small fields do not need gmpy2
    except ModuleNotFoundError:
        return _miller_rabin(n, _hashed(n))
    return bool(gmpy2.is_prime(n, _ROUNDS))


def _miller_rabin(n: int, bases: Iterable[int]) -> bool:
    """Return True if no base proves the odd n composite (Rabin 1980)."""
    # n − 1 = 2^twos times an odd number
    twos = (n - 1 & 1 - n).bit_length() - 1
    for base in bases:
        x = pow(base, n >> twos, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def _hashed(n: int) -> Iterable[int]:
    """Yield bases from SHAKE-256 of n, in [2, n − 1)."""
    size = -(-n.bit_length() // 8)
    for i in range(_ROUNDS):
        seed = n.to_bytes(size, "little") + bytes([i])
        # 16 bytes more than n has, so that the remainder is uniform to 2^−128
        digest = hashlib.shake_256(seed).digest(size + 16)
        yield 2 + int.from_bytes(digest, "little") % (n - 3)
