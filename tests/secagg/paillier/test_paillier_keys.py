"""Keys: their conditions, rejected ones, and their encoding."""

from __future__ import annotations

import inspect
import os

import gmpy2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import ReplayedEntropy
from paillier_keys import keypair
from raised import rejects
from secagg import ParameterError, RemoteProtocolError
from secagg.paillier import (
    Ciphertexts,
    EncryptedVector,
    Packing,
    PrivateKey,
    PublicKey,
    generate_insecure_keypair,
    generate_keypair,
)
from secagg.paillier.primes import random_prime, random_safe_prime, recover
from secagg.paillier.public_key import short_exponent

KEY = keypair()
PUBLIC = KEY.public_key
N = int(PUBLIC.n)


@pytest.mark.parametrize(
    "bits", [256, *(pytest.param(bits, marks=pytest.mark.large) for bits in (512, 1024))]
)
def test_check37_primes_and_h_meet_the_conditions_of_the_noise(bits):
    key = keypair(bits)
    p, q = key.primes
    public = key.public_key
    assert p * q == public.n
    assert public.n.bit_length() == public.bits == bits
    assert p.bit_length() == q.bit_length() == bits // 2
    assert p % 4 == q % 4 == 3
    assert gmpy2.gcd(p - 1, q - 1) == 2
    assert gmpy2.gcd(public.n, (p - 1) * (q - 1)) == 1
    # −x²: no square modulo either prime, and of Jacobi symbol 1
    assert gmpy2.legendre(public.h, p) == gmpy2.legendre(public.h, q) == -1
    assert public.exponent_bits == bits // 2


def test_check29_repr_and_errors_show_no_secret():
    shown = repr(KEY) + str(KEY) + repr(PUBLIC) + repr(PUBLIC.encrypt([3]))
    for secret in KEY.primes:
        assert str(secret) not in shown
        assert hex(secret)[2:] not in shown
    assert repr(KEY) == f"PrivateKey(512 bits, {PUBLIC.key_id.hex()[:8]})"


@given(
    st.binary(max_size=200) | st.binary(max_size=150).map(lambda b: PUBLIC.to_bytes()[:9] + b)
)
@examples(200)
def test_any_bytes_are_a_public_key_or_rejected(data):
    try:
        PublicKey.from_bytes(data, allow_insecure=True)
    except RemoteProtocolError as error:
        assert error.check == "public_key"


@pytest.mark.large
def test_check37_h_generates_everything_of_jacobi_symbol_1():
    """p − 1 has small factors: a random square is often in a smaller group."""
    for seed in range(6):
        key = keypair(256, seed=f"h {seed}")
        h = int(key.public_key.h)
        for p in map(recover, key.primes):
            assert p is not None
            for factor in (2, *gmpy2_factors(p.r), p.p_prime):
                assert pow(h, (p.p - 1) // factor, p.p) != 1


def gmpy2_factors(r: int) -> list[int]:
    return [f for f in range(3, r + 1, 2) if r % f == 0 and gmpy2.is_prime(f)]


def test_check37_defaults_are_the_safe_ones():
    """The operating system's generator, and exponents of half the length."""
    for function in (generate_keypair, generate_insecure_keypair):
        defaults = inspect.signature(function).parameters
        assert defaults["noise"].default == "half-length"
        assert defaults["entropy"].default is os.urandom
    for method in (
        PublicKey.encrypt,
        PublicKey.encrypt_vector,
        PublicKey.rerandomise,
        PrivateKey.encrypt_vector,
        EncryptedVector.to_bytes,
        Ciphertexts.to_bytes,
        Ciphertexts.to_ints,
        Packing.encode,
        random_prime,
        random_safe_prime,
    ):
        assert inspect.signature(method).parameters["entropy"].default is os.urandom


def test_check37_h_is_drawn_from_all_residues():
    entropy = ReplayedEntropy(0)
    generate_insecure_keypair(256, entropy=entropy)
    assert len(entropy.drawn[-1]) == 256 // 8


def test_check37_unfit_primes_are_rejected_and_not_shown():
    """Without h only these checks find such primes; the error does not contain them."""
    p, q = KEY.primes
    longer = int(gmpy2.next_prime(1 << 255)), int(gmpy2.next_prime(1 << 256))
    short = longer[0], int(gmpy2.next_prime((1 << 255) + 2**200))
    composite = int(gmpy2.next_prime(7 << 125)) * int(gmpy2.next_prime((7 << 125) + 2**100))
    for primes in ((p, p), (p, composite), (composite, q), longer, longer[::-1], short):
        with pytest.raises(ParameterError) as caught:
            PrivateKey(*primes, allow_insecure=True)
        assert not any(str(prime) in str(caught.value) for prime in primes)


def test_check38_default_is_3072_bits_and_less_is_insecure():
    """The default is 3072 bits and less has an insecure name."""
    assert inspect.signature(generate_keypair).parameters["bits"].default == 3072
    unfit = [f * int(gmpy2.next_prime((1 << 511) // f)) for f in (1, 3, 65521)]
    unfit += [KEY.primes[0] ** 2, (1 << 8256) - 1]
    for call in (
        *(lambda b=b: generate_keypair(b) for b in (1024, 2040, 2049, 8256, 3072.0, True)),
        *(lambda b=b: generate_insecure_keypair(b) for b in (128, 2048, 500)),
        *(lambda n=n: generate_insecure_keypair(512, noise=n) for n in ("none", [])),
        lambda: PublicKey(N),
        *(lambda n=n: PublicKey(n, allow_insecure=True) for n in (*unfit, -N)),
        lambda: PublicKey(N, PUBLIC.h, allow_insecure=True),
        lambda: PrivateKey(*KEY.primes),
        lambda: PrivateKey.from_bytes(KEY.to_bytes()),
    ):
        with pytest.raises(ParameterError):
            call()
    rejects("public_key", lambda: PublicKey.from_bytes(PUBLIC.to_bytes()))


def test_every_damaged_bit_of_a_private_key_is_detected():
    data = KEY.to_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        with pytest.raises(ParameterError):
            PrivateKey.from_bytes(bytes(damaged), allow_insecure=True)


def test_check37_short_exponents_need_allow_short_exponent():
    for bits, short in ((1024, 448), (2048, 448), (3072, 512), (4096, 512)):
        assert short_exponent(bits) == short
    private = keypair(1024, "short-exponent")
    public = private.public_key
    assert "exponents of 448 bits" in repr(public)
    rejects("public_key", lambda: PublicKey.from_bytes(public.to_bytes(), allow_insecure=True))
    again = PublicKey.from_bytes(
        public.to_bytes(), allow_insecure=True, allow_short_exponent=True
    )
    assert again == public
    assert PrivateKey.from_bytes(private.to_bytes(), allow_insecure=True) == private
    with pytest.raises(ParameterError):
        PublicKey(public.n, public.h, 447, allow_insecure=True, allow_short_exponent=True)
