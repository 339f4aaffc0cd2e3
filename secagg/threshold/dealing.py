"""Dealing of a threshold key and of shares; see `secagg.threshold` for trust in the dealer."""

from __future__ import annotations

import math
import os

from secagg._check import check_integer
from secagg._secrets import without_frames
from secagg.encoding import Entropy
from secagg.paillier import PublicKey
from secagg.paillier.gmp import gmpy2
from secagg.paillier.primes import (
    StructuredPrime,
    random_safe_prime,
    uniform_below,
    uniform_unit,
)
from secagg.paillier.public_key import MAX_BITS, MIN_BITS, checked_bits
from secagg.threshold.key import MAX_TRUSTEES, ThresholdKey
from secagg.threshold.share import KeyShare


@without_frames
def deal(
    trustees: int, threshold: int, *, bits: int = 3072, entropy: Entropy = os.urandom
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Make a threshold key and return the public side and the trustees' shares.

    Hand each trustee one share, and delete all shares. Python does not wipe memory, so end the
    process afterwards, and do not let the process be swapped or dumped.

    Parameters
    ----------
    trustees : int
        l, the number of trustees, 1 ≤ l ≤ 100.
    threshold : int
        t, the number of trustees who can decrypt together, 1 ≤ t ≤ l.
    bits : int
        Length of n, a multiple of 64 from 2048 to 8192. Safe primes take seconds to find.
    entropy : callable
        Source of all randomness.

    Returns
    -------
    ThresholdKey, tuple of KeyShare
        The public side, and the shares of the trustees 1 … l.

    Raises
    ------
    ParameterError
        `trustees`, `threshold` or `bits` is out of range.
    """
    return _deal(trustees, threshold, checked_bits(bits, MIN_BITS, MAX_BITS), entropy)


@without_frames
def deal_insecure(
    trustees: int, threshold: int, *, bits: int = 1024, entropy: Entropy = os.urandom
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Deal a short key that can be broken, for tests only: 512 ≤ bits < 2048; see `deal`."""
    return _deal(trustees, threshold, checked_bits(bits, 512, MIN_BITS - 1), entropy)


def _deal(
    trustees: int, threshold: int, bits: int, entropy: Entropy
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    check_integer("trustees", trustees, 1, MAX_TRUSTEES)
    check_integer("threshold", threshold, 1, trustees)
    p = q = random_safe_prime(bits // 2, entropy)
    while p == q:
        q = random_safe_prime(bits // 2, entropy)
    return _share(p, q, trustees, threshold, entropy)


def _share(
    p: StructuredPrime, q: StructuredPrime, trustees: int, threshold: int, entropy: Entropy
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Share the key of two safe primes (Damgård and Jurik 2001, §4.1, s = 1)."""
    n, m = gmpy2.mpz(p.p * q.p), p.p_prime * q.p_prime
    square = n * n
    # p' and q' are large primes, so almost every random square generates all squares
    h = int(-(uniform_unit(n, entropy) ** 2) % n)
    public_key = PublicKey(
        int(n), h, n.bit_length() // 2, allow_insecure=n.bit_length() < MIN_BITS
    )
    d = m * gmpy2.invert(m, n)  # 0 modulo m, 1 modulo n
    # modulo n m, the order of the group whose elements have the shares as exponents
    polynomial = [d, *(uniform_below(n * m, entropy) for _ in range(threshold - 1))]
    secrets = [
        sum(a * i**power for power, a in enumerate(polynomial)) % (n * m)
        for i in range(1, trustees + 1)
    ]
    v = gmpy2.powmod(uniform_unit(square, entropy), 2, square)
    delta = math.factorial(trustees)
    images = tuple(int(gmpy2.powmod(v, delta * s, square)) for s in secrets)
    key = ThresholdKey(public_key, threshold, int(v), images)
    return key, tuple(KeyShare(key, i, s) for i, s in enumerate(secrets, start=1))
