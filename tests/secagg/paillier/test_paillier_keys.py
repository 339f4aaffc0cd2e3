"""Keys: their conditions, rejected ones, and their encoding."""

from __future__ import annotations

import inspect
import os

import gmpy2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from paillier_keys import foreign, keypair
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


def test_check37_short_exponent_is_opt_in():
    assert keypair(1024).public_key.exponent_bits == 512
    assert keypair(1024, "short-exponent").public_key.exponent_bits == 448
    assert keypair(1024, "textbook").public_key.exponent_bits is None


@pytest.mark.parametrize("case", ["composite", "equal", "sizes", "short", "mod 4", "gcd"])
def test_check37_unfit_primes_are_rejected_and_not_shown(case):
    """Primes that make no key are rejected, and the error does not contain them."""
    p, q = KEY.primes
    one_mod_four = 5
    while (
        one_mod_four.bit_length() != 256
        or one_mod_four % 4 == 3
        or not (one_mod_four * p) >> 511
    ):
        one_mod_four = int(
            gmpy2.next_prime(one_mod_four if one_mod_four > 5 else 2**256 - 2**250)
        )
    shared = _prime_with_shared_factor(p)
    primes = {
        "composite": (p, q + 2),
        "equal": (p, p),
        "sizes": (p, int(gmpy2.next_prime(1 << 250))),
        "short": (int(gmpy2.next_prime(1 << 255)), int(gmpy2.next_prime((1 << 255) + 2**200))),
        "mod 4": (p, one_mod_four),
        "gcd": (p, shared),
    }[case]
    with pytest.raises(ParameterError) as caught:
        PrivateKey(*primes, PUBLIC.h, PUBLIC.exponent_bits, allow_insecure=True)
    assert not any(str(prime) in str(caught.value) for prime in primes)


def test_check37_primes_are_validated_without_h():
    """No other check detects these; with h, most of them fail the check of h."""
    p, q = KEY.primes
    longer = int(gmpy2.next_prime(1 << 255)), int(gmpy2.next_prime(1 << 256))
    assert (longer[0] * longer[1]).bit_length() == 512
    composite = int(gmpy2.next_prime(7 << 125)) * int(gmpy2.next_prime((7 << 125) + 2**100))
    assert composite.bit_length() == 256
    for primes in ((p, p), (p, composite), (composite, q), longer, longer[::-1]):
        with pytest.raises(ParameterError):
            PrivateKey(*primes, allow_insecure=True)


def _prime_with_shared_factor(p: int) -> int:
    """Return a prime whose p − 1 shares an odd factor with another's."""
    factor = next(f for f in range(3, 2**20, 2) if (p - 1) % f == 0)
    q = 2 * factor * ((3 << 253) // factor | 1) + 1
    while not gmpy2.is_prime(q) or q.bit_length() != 256 or q % 4 != 3:
        q += 4 * factor
    return q


def test_check38_default_is_3072_bits_and_less_is_insecure():
    """The default is 3072 bits and less has an insecure name."""
    assert inspect.signature(generate_keypair).parameters["bits"].default == 3072
    for bits in (1024, 2047, 2040, 2049, 8256, 3072.0, True):
        with pytest.raises(ParameterError, match="bits"):
            generate_keypair(bits)
    for bits in (128, 2048, 500):
        with pytest.raises(ParameterError, match="bits"):
            generate_insecure_keypair(bits)
    with pytest.raises(ParameterError, match="noise"):
        generate_insecure_keypair(512, noise="none")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="2048"):
        PublicKey(N)
    with pytest.raises(ParameterError, match="2048"):
        PrivateKey(*KEY.primes)
    with pytest.raises(RemoteProtocolError, match="2048") as caught:
        PublicKey.from_bytes(PUBLIC.to_bytes())
    assert caught.value.check == "public_key"
    with pytest.raises(ParameterError, match="2048"):
        PrivateKey.from_bytes(KEY.to_bytes())


def test_check38_docstring_warns_of_varying_time():
    assert "Not constant-time" in str(PrivateKey.__doc__)


def test_check29_repr_and_errors_show_no_secret():
    shown = repr(KEY) + str(KEY) + repr(PUBLIC) + repr(PUBLIC.encrypt([3]))
    for secret in KEY.primes:
        assert str(secret) not in shown
        assert hex(secret)[2:] not in shown
    assert repr(KEY) == f"PrivateKey(512 bits, {PUBLIC.key_id.hex()[:8]})"


@pytest.mark.parametrize("noise", ["half-length", "textbook", "short-exponent"])
def test_keys_survive_encoding(noise):
    key = keypair(noise=noise)
    public = PublicKey.from_bytes(key.public_key.to_bytes(), allow_insecure=True)
    private = PrivateKey.from_bytes(key.to_bytes(), allow_insecure=True)
    assert private.primes == key.primes
    for again in (public, private.public_key):
        assert again.key_id == key.public_key.key_id
        assert (again.n, again.h, again.exponent_bits) == (
            key.public_key.n,
            key.public_key.h,
            key.public_key.exponent_bits,
        )
    assert private.decrypt(key.public_key.encrypt([-5])) == [-5]


def test_key_id_covers_the_whole_public_key():
    other_noise = PublicKey(N, allow_insecure=True)
    shorter = PublicKey(N, PUBLIC.h, 250 + 198, allow_insecure=True)
    ids = {
        PUBLIC.key_id,
        other_noise.key_id,
        shorter.key_id,
        keypair(seed="b").public_key.key_id,
    }
    assert len(ids) == 4


def test_every_damaged_bit_of_a_private_key_is_detected():
    data = KEY.to_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        with pytest.raises(ParameterError):
            PrivateKey.from_bytes(bytes(damaged), allow_insecure=True)
    for size in (0, 1, 31, 32, 40, len(data) - 1):
        with pytest.raises(ParameterError):
            PrivateKey.from_bytes(data[:size], allow_insecure=True)
    with pytest.raises(ParameterError):
        PrivateKey.from_bytes(data + b"\0", allow_insecure=True)


@given(
    st.binary(max_size=200) | st.binary(max_size=150).map(lambda b: PUBLIC.to_bytes()[:9] + b)
)
@examples(200)
def test_any_bytes_are_a_public_key_or_rejected(data):
    try:
        PublicKey.from_bytes(data, allow_insecure=True)
    except RemoteProtocolError as error:
        assert error.check == "public_key"


@pytest.mark.parametrize(
    "n",
    [
        3 * int(gmpy2.next_prime(1 << 510)),
        65521 * int(gmpy2.next_prime(1 << 496)),
        KEY.primes[0] ** 2,
        int(gmpy2.next_prime(1 << 511)),
        -N,
    ],
)
def test_check37_n_of_small_factors_is_rejected(n):
    """An n that is plainly no product of two large primes is rejected."""
    assert n.bit_length() == 512
    with pytest.raises(ParameterError):
        PublicKey(n, allow_insecure=True)


def test_check37_short_exponents_need_allow_short_exponent():
    for bits, short in ((1024, 448), (2048, 448), (3072, 512), (4096, 512)):
        assert short_exponent(bits) == short
    private = keypair(1024, "short-exponent")
    public = private.public_key
    assert repr(public).startswith("PublicKey(1024 bits, exponents of 448 bits, ")
    with pytest.raises(ParameterError, match="allow_short_exponent"):
        PublicKey(int(public.n), public.h, 448, allow_insecure=True)
    with pytest.raises(RemoteProtocolError, match="allow_short_exponent") as caught:
        PublicKey.from_bytes(public.to_bytes(), allow_insecure=True)
    assert caught.value.check == "public_key"
    again = PublicKey.from_bytes(
        public.to_bytes(), allow_insecure=True, allow_short_exponent=True
    )
    assert again == public
    assert PrivateKey.from_bytes(private.to_bytes(), allow_insecure=True) == private
    with pytest.raises(ParameterError, match="exponent_bits"):
        PublicKey(int(public.n), public.h, 447, allow_insecure=True, allow_short_exponent=True)


@pytest.mark.large
def test_check37_h_generates_everything_of_jacobi_symbol_1():
    """p − 1 has small factors: a random square is often in a smaller group."""
    for seed in range(12):
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
    sizes: list[int] = []

    def recording(size: int, /) -> bytes:
        sizes.append(size)
        return os.urandom(size)

    generate_insecure_keypair(256, entropy=recording)
    assert sizes[-1] == 256 // 8


def test_keys_are_equal_wherever_they_came_from():
    public = PublicKey.from_bytes(PUBLIC.to_bytes(), allow_insecure=True)
    private = PrivateKey.from_bytes(KEY.to_bytes(), allow_insecure=True)
    assert public == PUBLIC
    assert private == KEY
    assert len({public, PUBLIC, private, KEY, foreign().public_key}) == 3
    assert private != PUBLIC


def test_another_file_is_rejected_as_private_key():
    with pytest.raises(ParameterError):
        PrivateKey.from_bytes(PUBLIC.to_bytes(), allow_insecure=True)
    with pytest.raises(ParameterError, match="noise"):
        generate_insecure_keypair(256, noise=[])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        (N + 1, None, None),
        (N, PUBLIC.h, None),
        (N, None, 256),
        (N, 1, 256),
        (N, N - 1, 256),
        (N, 0, 256),
        (N, N, 256),
        (N, KEY.primes[0], 256),
        (N, PUBLIC.h, 255),
        (N, PUBLIC.h, 513),
        (N >> 3, None, None),
        ((1 << 8256) - 1, None, None),
    ],
)
def test_invalid_public_keys_are_rejected(arguments):
    with pytest.raises(ParameterError):
        PublicKey(*arguments, allow_insecure=True)


def test_check37_element_of_the_wrong_jacobi_symbol_is_no_h():
    wrong = next(x for x in range(2, 100) if gmpy2.jacobi(x, N) == -1)
    with pytest.raises(ParameterError, match="h"):
        PublicKey(N, wrong, 256, allow_insecure=True)
