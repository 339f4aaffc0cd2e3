"""Small keys, made once: what tests of homomorphic encryption work with."""

from __future__ import annotations

import hashlib
from functools import cache

import phe

from secagg.paillier import Blinding, PrivateKey, generate_insecure_keypair


class Stream:
    """Bytes that look random and are the same in every run."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._calls = 0

    def __call__(self, size: int, /) -> bytes:
        self._calls += 1
        return hashlib.shake_256(f"{self._seed} {self._calls}".encode()).digest(size)


@cache
def keypair(bits: int = 512, noise: Blinding = "half-length", seed: str = "") -> PrivateKey:
    """Return a key that is the same in every run."""
    return generate_insecure_keypair(
        bits, noise=noise, entropy=Stream(f"{bits} {noise} {seed}")
    )


@cache
def phe_keypair() -> tuple[phe.PaillierPublicKey, phe.PaillierPrivateKey]:
    """Return a key that phe made: no structure is known of its primes."""
    return phe.generate_paillier_keypair(n_length=512)


@cache
def foreign() -> PrivateKey:
    """Return the same key as a secagg key."""
    private = phe_keypair()[1]
    return PrivateKey(private.p, private.q, allow_insecure=True)
