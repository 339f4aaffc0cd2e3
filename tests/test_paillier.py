"""Paillier: keys, ciphertexts, and the same integers as phe on both sides."""

from __future__ import annotations

import os
from collections import Counter

import gmpy2
import phe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paillier_keys import Stream, keypair
from secagg import ParameterError, RemoteProtocolError
from secagg.noise import FixedBaseNoise, OwnerNoise, TextbookNoise
from secagg.paillier import (
    PrivateKey,
    PublicKey,
    generate_insecure_keypair,
    generate_keypair,
)

KEY = keypair()
PUBLIC = KEY.public_key
N = int(PUBLIC.n)
MESSAGES = st.lists(st.integers(-(N // 2), N // 2), max_size=10)


@pytest.mark.parametrize("noise", ["half-length", "textbook", "short-exponent"])
@given(messages=MESSAGES)
@settings(max_examples=15, deadline=None)
def test_what_is_encrypted_is_decrypted(noise, messages):
    key = keypair(noise=noise)
    bound = int(key.public_key.n) // 2
    messages = [max(-bound, min(bound, m)) for m in messages]
    assert key.decrypt(key.public_key.encrypt(messages)) == messages


@given(st.integers(-(N // 4), N // 4), st.integers(-(N // 4), N // 4), st.integers(-9, 9))
@settings(max_examples=30, deadline=None)
def test_sums_differences_and_multiples(a, b, factor):
    one, two = PUBLIC.encrypt([a, 1]), PUBLIC.encrypt([b, 2])
    assert KEY.decrypt(one + two) == [a + b, 3]
    assert KEY.decrypt(one - two) == [a - b, -1]
    small = PUBLIC.encrypt([a // 9, 5])
    assert KEY.decrypt(small * factor) == [a // 9 * factor, 5 * factor]
    assert KEY.decrypt(factor * -small) == [-(a // 9) * factor, -5 * factor]


def test_check36_the_same_message_never_gives_the_same_ciphertext():
    for key in (KEY.public_key, KEY._own, keypair(noise="textbook").public_key):
        ciphertexts = key.encrypt([7] * 20).to_ints() + key.encrypt([7] * 20).to_ints()
        assert len(set(ciphertexts)) == 40


def test_check36_what_was_computed_is_blinded_before_it_is_shown():
    total = PUBLIC.encrypt([1, 2]) + PUBLIC.encrypt([3, 4])
    shown = [total.to_bytes(), total.to_bytes(), PUBLIC.modulus.wrap(total.batch)]
    assert len(set(shown)) == 3
    for data in shown:
        assert KEY.decrypt(PUBLIC.load(data, 2)) == [4, 6]
    for computed in (total * 3, -total, total - total):
        assert computed.to_bytes() != computed.to_bytes()
    fresh = PUBLIC.encrypt([5])
    assert fresh.to_bytes() == fresh.to_bytes()


def test_check36_a_forked_process_draws_other_noise():
    PUBLIC.encrypt([1] * 40)  # tables are made: nothing else may be shared
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, PUBLIC.encrypt([1]).to_bytes())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    assert len(theirs) == PUBLIC.modulus.width
    assert theirs != PUBLIC.encrypt([1]).to_bytes()
    assert KEY.decrypt(PUBLIC.load(theirs, 1)) == [1]


def test_check36_ciphertexts_have_a_fixed_width_and_all_entropy_is_injected():
    data = {PUBLIC.encrypt([i], Stream("x")).to_bytes() for i in range(50)}
    assert {len(d) for d in data} == {1024 // 8}
    assert (
        PUBLIC.encrypt([1], Stream("x")).to_bytes()
        == PUBLIC.encrypt([1], Stream("x")).to_bytes()
    )


@pytest.mark.parametrize(
    "bad", ["zero", "n", "n squared", "beyond", "p", "multiple of q", "negative"]
)
def test_check36_what_is_no_ciphertext_is_refused(bad):
    p, q = KEY.primes
    value = {
        "zero": 0,
        "n": N,
        "n squared": N * N,
        "beyond": N * N + 1,
        "p": p,
        "multiple of q": q * 12345,
        "negative": -1,
    }[bad]
    good = PUBLIC.encrypt([1, 2]).to_ints()
    with pytest.raises(RemoteProtocolError, match="ciphertext 1") as caught:
        PUBLIC.load_ints([good[0], value, good[1]])
    assert caught.value.check == "ciphertext"
    if 0 <= value < 1 << 1024:
        data = b"".join(c.to_bytes(128, "little") for c in (good[0], value))
        with pytest.raises(RemoteProtocolError, match="ciphertext 1"):
            PUBLIC.load(data, 2)


@pytest.mark.parametrize("size", [0, 127, 129, 256])
def test_ciphertexts_of_another_length_are_refused(size):
    with pytest.raises(RemoteProtocolError, match="length"):
        PUBLIC.load(b"\1" * size, 1)


def test_a_foreign_key_is_refused():
    other = keypair(seed="other")
    mine, theirs = PUBLIC.encrypt([1]), other.public_key.encrypt([1])
    with pytest.raises(ParameterError, match="under one key"):
        _ = mine + theirs
    with pytest.raises(ParameterError, match="under one key"):
        _ = mine - theirs
    with pytest.raises(ParameterError, match="under the key"):
        KEY.decrypt(theirs)
    with pytest.raises(ParameterError, match="cannot be added"):
        _ = mine + PUBLIC.encrypt([1, 2])
    with pytest.raises(ParameterError, match="Ciphertexts"):
        _ = mine + 1  # type: ignore[operator]


@pytest.mark.parametrize("message", [N // 2 + 1, -N // 2 - 1, N, 1.0, True, "1"])
def test_messages_that_do_not_fit_are_refused(message):
    with pytest.raises(ParameterError, match="message 1"):
        PUBLIC.encrypt([0, message])


@pytest.mark.parametrize("factor", [1.5, True, N])
def test_factors_that_do_not_fit_are_refused(factor):
    with pytest.raises(ParameterError, match="factor"):
        _ = PUBLIC.encrypt([1]) * factor


# --- keys


@pytest.mark.parametrize("bits", [256, 512, 1024])
def test_check37_primes_and_h_are_what_the_noise_is_sound_for(bits):
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


def test_check37_the_short_exponent_has_to_be_asked_for():
    assert keypair(1024).public_key.exponent_bits == 512
    assert keypair(1024, "short-exponent").public_key.exponent_bits == 448
    assert keypair(1024, "textbook").public_key.exponent_bits is None


@pytest.mark.parametrize("case", ["composite", "equal", "sizes", "short", "mod 4", "gcd"])
def test_check37_primes_that_make_no_key_are_refused_without_being_told(case):
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


def test_check37_without_h_primes_are_no_less_checked():
    """Nothing else notices here: with h, most of these give an h that is none."""
    p, q = KEY.primes
    longer = int(gmpy2.next_prime(1 << 255)), int(gmpy2.next_prime(1 << 256))
    assert (longer[0] * longer[1]).bit_length() == 512
    for primes, match in (
        ((p, p), "different primes"),
        ((p, q + 2), "different primes"),
        ((p + 2, q), "different primes"),
        (longer, "one size"),
        (longer[::-1], "one size"),
    ):
        with pytest.raises(ParameterError, match=match):
            PrivateKey(*primes, allow_insecure=True)


def _prime_with_shared_factor(p: int) -> int:
    """Return a prime whose p − 1 shares an odd factor with another's."""
    factor = next(f for f in range(3, 2**20, 2) if (p - 1) % f == 0)
    q = 2 * factor * ((3 << 253) // factor | 1) + 1
    while not gmpy2.is_prime(q) or q.bit_length() != 256 or q % 4 != 3:
        q += 4 * factor
    return q


def test_check38_the_default_is_3072_bits_and_less_has_an_insecure_name():
    assert generate_keypair.__defaults__ == (3072,)
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
    with pytest.raises(RemoteProtocolError, match="2048"):
        PublicKey.from_bytes(PUBLIC.to_bytes())
    with pytest.raises(ParameterError, match="2048"):
        PrivateKey.from_bytes(KEY.to_bytes())


def test_check38_what_is_not_constant_time_is_said():
    assert "Not constant-time" in str(PrivateKey.__doc__)


def test_check29_nothing_secret_is_shown():
    shown = repr(KEY) + str(KEY) + repr(PUBLIC) + repr(PUBLIC.encrypt([3]))
    for secret in KEY.primes:
        assert str(secret) not in shown
        assert hex(secret)[2:] not in shown
    assert repr(KEY) == f"PrivateKey(512 bits, {PUBLIC.key_id.hex()[:8]})"


@pytest.mark.parametrize("noise", ["half-length", "textbook", "short-exponent"])
def test_keys_survive_their_bytes(noise):
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


def test_the_key_id_stands_for_the_whole_public_key():
    other_noise = PublicKey(N, allow_insecure=True)
    shorter = PublicKey(N, PUBLIC.h, 250 + 198, allow_insecure=True)
    ids = {
        PUBLIC.key_id,
        other_noise.key_id,
        shorter.key_id,
        keypair(seed="b").public_key.key_id,
    }
    assert len(ids) == 4


def test_every_damaged_bit_of_a_private_key_is_noticed():
    data = KEY.to_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        with pytest.raises(ParameterError, match="damaged"):
            PrivateKey.from_bytes(bytes(damaged), allow_insecure=True)
    for size in (0, 1, 31, 32, 40, len(data) - 1):
        with pytest.raises(ParameterError):
            PrivateKey.from_bytes(data[:size], allow_insecure=True)
    with pytest.raises(ParameterError):
        PrivateKey.from_bytes(data + b"\0", allow_insecure=True)


@given(
    st.binary(max_size=200) | st.binary(max_size=150).map(lambda b: PUBLIC.to_bytes()[:9] + b)
)
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_public_key_or_refused(data):
    try:
        PublicKey.from_bytes(data, allow_insecure=True)
    except RemoteProtocolError as error:
        assert error.check == "public_key"


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
def test_public_keys_that_cannot_be_are_refused(arguments):
    with pytest.raises(ParameterError):
        PublicKey(*arguments, allow_insecure=True)


def test_check37_an_element_of_the_wrong_jacobi_symbol_is_no_h():
    wrong = next(x for x in range(2, 100) if gmpy2.jacobi(x, N) == -1)
    with pytest.raises(ParameterError, match="h"):
        PublicKey(N, wrong, 256, allow_insecure=True)


# --- noise


def test_all_noise_is_an_nth_residue():
    p, q = KEY.primes
    order = (p - 1) * (q - 1)
    square = PUBLIC.modulus
    sources = [
        TextbookNoise(N, square),
        FixedBaseNoise(N, square, PUBLIC.h, 256),
        OwnerNoise(p, q, square),
        OwnerNoise(*_foreign().primes, _foreign().public_key.modulus),
    ]
    for source in sources[:3]:
        for x in square.unpack(source.draw(9, os.urandom)):
            assert pow(int(x), order, N * N) == 1
    p, q = _foreign().primes
    for x in _foreign().public_key.modulus.unpack(sources[3].draw(9, os.urandom)):
        assert pow(int(x), (p - 1) * (q - 1), (p * q) ** 2) == 1


def test_the_owners_noise_covers_all_nth_residues():
    """Squares and others, modulo p and modulo q: all four kinds turn up equally often."""
    p, q = KEY.primes
    noise = OwnerNoise(p, q, PUBLIC.modulus)
    drawn = PUBLIC.modulus.unpack(noise.draw(600, os.urandom))
    symbols = Counter((gmpy2.legendre(x, p), gmpy2.legendre(x, q)) for x in drawn)
    assert len(symbols) == 4  # the fixed base alone reaches two of them
    assert min(symbols.values()) > 90  # 150 ± 11


# --- phe


def _foreign() -> PrivateKey:
    """A key that phe made: no structure is known of its primes."""
    return _FOREIGN


_PHE_PUBLIC, _PHE_PRIVATE = phe.generate_paillier_keypair(n_length=512)
_FOREIGN = PrivateKey(_PHE_PRIVATE.p, _PHE_PRIVATE.q, allow_insecure=True)


@given(st.lists(st.integers(-(2**200), 2**200), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_keys_and_ciphertexts_go_both_ways_between_phe_and_secagg(messages):
    theirs = [_PHE_PUBLIC.encrypt(m) for m in messages]
    group = _FOREIGN.public_key
    read = group.load_ints([c.ciphertext() for c in theirs])
    assert _FOREIGN.decrypt(read) == messages
    ours = group.encrypt(messages)
    back = [phe.EncryptedNumber(_PHE_PUBLIC, c) for c in ours.to_ints()]
    assert [_PHE_PRIVATE.decrypt(c) for c in back] == messages
    added = [phe.EncryptedNumber(_PHE_PUBLIC, c) for c in (ours + read).to_ints()]
    assert [_PHE_PRIVATE.decrypt(c) for c in added] == [2 * m for m in messages]


def test_our_keys_work_in_phe():
    public = phe.PaillierPublicKey(N)
    private = phe.PaillierPrivateKey(public, *KEY.primes)
    assert (
        private.decrypt(phe.EncryptedNumber(public, PUBLIC.encrypt([-77]).to_ints()[0])) == -77
    )
    assert KEY.decrypt(PUBLIC.load_ints([public.encrypt(-77).ciphertext()])) == [-77]


@pytest.mark.parametrize("noise", ["half-length", "textbook", "short-exponent"])
def test_check36_blinding_hides_the_jacobi_symbol(noise):
    """Anybody can compute it, and it multiplies: kept, it would tell what is in a sum."""
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
