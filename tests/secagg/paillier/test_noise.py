"""Noise that blinds: n-th residues, all of them, never twice, and indistinguishable."""

from __future__ import annotations

import os
import pickle
from collections import Counter

import gmpy2
import numpy as np
import pytest

from harness import ReplayedEntropy
from paillier_keys import foreign, keypair
from secagg import Integers, Packing, ParameterError
from secagg.paillier.modular import Modulus
from secagg.paillier.noise import FixedBaseNoise, OwnerNoise, TextbookNoise

KEY = keypair()
PUBLIC = KEY.public_key
N = int(PUBLIC.n)


def test_all_noise_is_an_nth_residue():
    square = PUBLIC.modulus
    for key, source in (
        (KEY, TextbookNoise(N, square)),
        (KEY, FixedBaseNoise(N, square, PUBLIC.h, 256)),
        (KEY, OwnerNoise(*KEY.primes, square)),
        (foreign(), OwnerNoise(*foreign().primes, foreign().public_key.modulus)),
    ):
        p, q = key.primes
        for x in key.public_key.modulus.unpack(source.residues(source.draw(9, os.urandom))):
            assert pow(int(x), (p - 1) * (q - 1), (p * q) ** 2) == 1


def test_owners_noise_covers_all_nth_residues():
    """Squares and others, modulo p and modulo q: all four kinds turn up equally often."""
    p, q = KEY.primes
    noise = OwnerNoise(p, q, PUBLIC.modulus)
    drawn = PUBLIC.modulus.unpack(noise.residues(noise.draw(400, os.urandom)))
    symbols = Counter((gmpy2.legendre(x, p), gmpy2.legendre(x, q)) for x in drawn)
    assert len(symbols) == 4  # the fixed base alone reaches two of them
    assert min(symbols.values()) > 50  # 100 ± 9


@pytest.mark.parametrize(
    "noise",
    [
        "half-length",
        *(pytest.param(n, marks=pytest.mark.large) for n in ("textbook", "short-exponent")),
    ],
)
def test_check36_blinding_hides_the_jacobi_symbol(noise):
    """The symbol is public and multiplicative: without blinding it shows a sum's terms."""
    key = keypair(noise=noise)
    public = key.public_key
    for group in (public, key._own):
        made = group.encrypt([1] * 200)
        blinded = public.rerandomise(made)
        symbols = [
            [gmpy2.jacobi(c, public.n) for c in public.modulus.unpack(each.batch)]
            for each in (made, blinded)
        ]
        for each in symbols:
            assert 60 < each.count(1) < 140  # 100 ± 7
        kept = sum(a == b for a, b in zip(*symbols, strict=True))
        assert 60 < kept < 140
        assert key.decrypt(blinded) == [1] * 200


def test_check36_roots_are_units_and_all_of_them():
    square = Modulus(15 * 15)
    noise = TextbookNoise(15, square)
    drawn = {int(x) for x in square.unpack(noise.residues(noise.draw(400, os.urandom)))}
    assert drawn == {pow(r, 15, 225) for r in range(15) if gmpy2.gcd(r, 15) == 1}
    entropy = ReplayedEntropy(0)
    OwnerNoise(*foreign().primes, foreign().public_key.modulus).draw(3, entropy)
    assert {len(drawn) for drawn in entropy.drawn} == {32}


@pytest.mark.parametrize("noise", ["half-length", "textbook"])
def test_entropy_source_that_returns_too_little_raises(noise):
    """Noise from no entropy is 1, so the message would be readable."""
    key = keypair(noise=noise)
    for group in (key.public_key, key._own):
        for short in (lambda size: b"", lambda size: os.urandom(size - 1)):
            with pytest.raises(ParameterError):
                group.encrypt([1] * 3, short)


def test_blinding_rejects_ciphertexts_under_another_key():
    theirs = foreign().public_key.encrypt([1])
    for group in (PUBLIC, KEY._own):
        with pytest.raises(ParameterError):
            group.rerandomise(theirs)


def test_check29_owners_ciphertexts_do_not_contain_the_key():
    packing = Packing(encoding=Integers(7), length=4, summands=3)
    vector = KEY.encrypt_vector(np.arange(4), packing)
    total = vector + PUBLIC.encrypt_vector(np.arange(4), packing)
    for made in (vector, total, vector * 2):
        assert made.group is PUBLIC
        data = pickle.dumps(made)
        for prime in KEY.primes:
            assert prime.to_bytes(32, "little") not in data
            assert prime.to_bytes(32, "big") not in data
    assert KEY.decrypt_vector(total).integers.tolist() == [0, 2, 4, 6]
