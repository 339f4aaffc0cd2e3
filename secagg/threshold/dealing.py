"""Decryption by t of l trustees together: nobody holds the key (Damgård and Jurik, PKC 2001).

A dealer makes the key, gives every trustee a share of it (Shamir 1979, over Z_{n p' q'}), and
forgets it. Clients encrypt with ``ThresholdKey.public_key`` as with any other. To read a sum,
t trustees each send a partial decryption with a proof that it is right (Shoup, Eurocrypt 2000),
and anybody who has those combines them. A wrong one is refused by its trustee's name.

t trustees together can read everything, single vectors too. Fewer can read nothing; and once
more than l − t are gone or refuse, nobody can.

**That no single party can decrypt holds as long as the aggregator follows the protocol.** How
many vectors are in a sum stands, as far as trustees can see, in a header that nobody has
authenticated: an aggregator can write n into that of one client's vector, or multiply the
vector by n. Honest trustees answer, and whoever combines the answers, often the aggregator,
reads that client's vector. Trustees who do not want to rely on it add the clients' messages,
authenticated, for themselves, and decrypt nothing else.

**The dealer knows the key while it deals.** Run it where nobody looks on, on a machine that is
wiped afterwards, and hand out the shares over channels that only their trustees can read. A
dealer that keeps a copy reads everything, and no proof would show it.
"""

from __future__ import annotations

import math
import os

import gmpy2

from secagg._check import check_integer
from secagg.encoding import Entropy
from secagg.errors import ParameterError
from secagg.paillier import PublicKey
from secagg.paillier.primes import StructuredPrime, random_safe_prime, uniform_below
from secagg.paillier.public_key import MAX_BITS, MIN_BITS
from secagg.threshold.key import MAX_TRUSTEES, ThresholdKey
from secagg.threshold.share import KeyShare

__all__ = ["deal", "deal_insecure"]


def deal(
    trustees: int, threshold: int, *, bits: int = 3072, entropy: Entropy = os.urandom
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Make a key that `threshold` of `trustees` decrypt with together, and forget it.

    Nothing of the key is kept here but in the shares: hand each to its trustee and delete it.
    Python does not wipe memory; end the process, and do not let it be swapped or dumped.

    Parameters
    ----------
    trustees : int
        l, 1 ≤ l ≤ 100.
    threshold : int
        t, 1 ≤ t ≤ l: so many together can read everything, fewer nothing.
    bits : int
        Of n, a multiple of 64 between 2048 and 8192. Its primes are safe primes, which take
        seconds to find.
    entropy : callable
        Where everything is drawn.

    Returns
    -------
    ThresholdKey
        For everybody.
    tuple of KeyShare
        One for each trustee, 1 … l.

    Raises
    ------
    ParameterError
        Out of range.
    """
    check_integer("bits", bits, MIN_BITS, MAX_BITS)
    return _deal(trustees, threshold, bits, entropy)


def deal_insecure(
    trustees: int, threshold: int, *, bits: int = 1024, entropy: Entropy = os.urandom
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Deal a key that can be broken, for tests and examples: 512 ≤ bits < 2048; see `deal`."""
    check_integer("bits", bits, 512, MIN_BITS - 1)
    return _deal(trustees, threshold, bits, entropy)


def _deal(
    trustees: int, threshold: int, bits: int, entropy: Entropy
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    check_integer("trustees", trustees, 1, MAX_TRUSTEES)
    check_integer("threshold", threshold, 1, trustees)
    if bits % 64:
        raise ParameterError(f"bits is {bits}; it must be a multiple of 64")
    p, q = (random_safe_prime(bits // 2, entropy) for _ in range(2))
    while p == q:
        q = random_safe_prime(bits // 2, entropy)
    return _share(p, q, trustees, threshold, entropy)


def _share(
    p: StructuredPrime, q: StructuredPrime, trustees: int, threshold: int, entropy: Entropy
) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Share the key of two safe primes (Damgård and Jurik 2001, §4.1, s = 1)."""
    n, m = gmpy2.mpz(p.p * q.p), p.p_prime * q.p_prime
    square = n * n
    h = int(-(_unit(n, entropy) ** 2) % n)
    public_key = PublicKey(
        int(n), h, n.bit_length() // 2, allow_insecure=n.bit_length() < MIN_BITS
    )
    d = m * gmpy2.invert(m, n)  # 0 modulo m, 1 modulo n
    polynomial = [d, *(uniform_below(n * m, entropy) for _ in range(threshold - 1))]
    secrets = [
        sum(a * i**power for power, a in enumerate(polynomial)) % (n * m)
        for i in range(1, trustees + 1)
    ]
    v = gmpy2.powmod(_unit(square, entropy), 2, square)
    delta = math.factorial(trustees)
    images = tuple(int(gmpy2.powmod(v, delta * s, square)) for s in secrets)
    key = ThresholdKey(public_key, threshold, int(v), images)
    return key, tuple(KeyShare(key, i, s) for i, s in enumerate(secrets, start=1))


def _unit(modulus: int, entropy: Entropy) -> int:
    """Return a uniform element of Z*_modulus."""
    while gmpy2.gcd(unit := uniform_below(modulus, entropy), modulus) != 1:
        pass
    return unit
