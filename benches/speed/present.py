"""Cases of what earlier releases do not have, in secagg and in other packages."""

from __future__ import annotations

import secrets

import numpy as np

from benches import plain
from benches.speed.clock import Measure, timed
from secagg import Packing, _fast, paillier, shamir
from secagg.bench.cases import ENCODING
from secagg.bench.per_float import CIPHERTEXTS, SUMMANDS, sample

PRIMES = {62: 2**62 - 57, 127: 2**127 - 1}
"""Primes by their bits."""


def x25519(points: int) -> Measure:
    """Return the measure of exchanges of one scalar with many points."""
    rng = np.random.default_rng(0)
    scalar = rng.integers(0, 256, (1, 32), dtype=np.uint8)
    rows = rng.integers(0, 256, (points, 32), dtype=np.uint8)
    out = np.empty_like(rows)
    return timed(lambda: _fast.x25519(scalar, rows, out))


def shares(n: int, threshold: int, bits: int) -> Measure:
    """Return the measure of sharing an integer over a prime of so many bits."""
    p = PRIMES[bits]
    field = shamir.Field(p)
    return timed(lambda: shamir.split(p // 3, threshold, n, field=field))


def shares_in_python(n: int, threshold: int, bits: int) -> Measure:
    """Return the measure of the same with Python integers, by Horner's rule."""
    p = PRIMES[bits]
    points = range(1, n + 1)
    return timed(lambda: plain.split(_coefficients(p, threshold), points, p))


def shares_in_flint(n: int, threshold: int, bits: int) -> Measure:
    """Return the measure of the same with python-flint's polynomials modulo p < 2^64."""
    import flint  # may be missing

    p = PRIMES[bits]

    def run() -> list[int]:
        polynomial = flint.nmod_poly(_coefficients(p, threshold), p)
        return [int(polynomial(x)) for x in range(1, n + 1)]

    return timed(run)


def _coefficients(p: int, threshold: int) -> list[int]:
    return [p // 3, *(secrets.randbelow(p) for _ in range(threshold - 1))]


def shares_of_bytes(n: int, threshold: int) -> Measure:
    """Return the measure of sharing a secret of 32 bytes."""
    secret = secrets.token_bytes(32)
    return timed(lambda: shamir.split(secret, threshold, n))


def encryption(bits: int) -> Measure:
    """Return the measure of Paillier encryption with the public key, per float.

    Floats are encoded and packed, too, in slots of 32 bits.
    """
    public = paillier.generate_keypair(bits).public_key
    slots = Packing(encoding=ENCODING, length=1, summands=SUMMANDS).slots(bits)
    length = CIPHERTEXTS * slots - 1  # the last slot counts the summands
    packing = Packing(encoding=ENCODING, length=length, summands=SUMMANDS)
    vector = np.array(sample(length))
    return timed(lambda: public.encrypt_vector(vector, packing), length)


def encryption_by_phe(bits: int) -> Measure:
    """Return the measure of the same with phe, which makes a ciphertext for each float."""
    from secagg.bench.peers import generate  # phe may be missing

    public, _ = generate(bits)
    floats = sample(3)
    return timed(lambda: [public.encrypt(x) for x in floats], len(floats))
