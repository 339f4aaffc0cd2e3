"""Dealt keys of 512 bits, made once: what tests of threshold decryption work with."""

from __future__ import annotations

from functools import cache

import gmpy2

from paillier_keys import Stream
from secagg.paillier import Ciphertexts, PrivateKey
from secagg.paillier.primes import StructuredPrime
from secagg.threshold import KeyShare, PartialDecryption, ThresholdKey
from secagg.threshold.dealing import _share

# safe primes, made by random_safe_prime(256, InsecureReplayedEntropy(("safe", i))), i = 0 … 3
SAFE = (
    89484028968559861687422513335987017716746646090905530510583753953804754167823,
    115548777383063133829376699983571152649145820155263911549353796456420014400919,
    89046683112713622022660966820228848654186910976656257184263109428209507931823,
    98533677580199372162262540896546899367715248229047142245486960808964357356107,
)

GROUPS = ((1, 1), (2, 1), (2, 2), (3, 2), (5, 3), (7, 7), (12, 5))

Dealing = tuple[ThresholdKey, tuple[KeyShare, ...]]


@cache
def dealing(trustees: int, threshold: int, first: int = 0) -> Dealing:
    """Return a key of the safe primes first and first + 1, the same in every run."""
    p, q = (StructuredPrime(1, p // 2) for p in SAFE[first : first + 2])
    return _share(p, q, trustees, threshold, Stream(f"{trustees} {threshold} {first}"))


@cache
def ordinary(trustees: int, threshold: int) -> PrivateKey:
    """Return the private key of `dealing`, which no party has."""
    public = dealing(trustees, threshold)[0].public_key
    return PrivateKey(*SAFE[:2], public.h, public.exponent_bits, allow_insecure=True)


def values_of(partial: PartialDecryption) -> list[int]:
    """Return a partial decryption's numbers."""
    return [int(x) for x in partial.values.group.modulus.unpack(partial.values.batch)]


def claim(share: KeyShare, ciphertexts: Ciphertexts, values: list[int]) -> PartialDecryption:
    """Return what a trustee sends that puts any values in place of its own, and proves them."""
    key, group = share.key, share.key.public_key
    claimed = Ciphertexts(group, group.modulus.pack(values), fresh=True)
    statement = key.statement(share.index, ciphertexts, claimed)
    proof = statement.prove(key.delta * share._secret, key.exponent_bits, Stream("claim"))
    return PartialDecryption(key.key_id, share.index, ciphertexts.digest(), claimed, proof)


def square_root_of_one(n: int) -> int:
    """Return a square root of 1 modulo n² that is neither 1 nor −1: it takes the primes."""
    p = gmpy2.mpz(SAFE[0] ** 2)
    q = gmpy2.mpz(n) ** 2 // p
    return int((1 + p * ((-2 * gmpy2.invert(p, q)) % q)) % (p * q))
