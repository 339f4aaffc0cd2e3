"""Paillier: keys, ciphertexts, and the same integers as phe on both sides."""

from __future__ import annotations

import os
from functools import partial

import phe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from forked import in_fork
from paillier_keys import Stream, foreign, keypair, phe_keypair
from raised import rejects
from secagg import ParameterError, RemoteProtocolError

KEY = keypair()
PUBLIC = KEY.public_key
N = int(PUBLIC.n)
MESSAGES = st.lists(st.integers(-(N // 2), N // 2), max_size=10)


@pytest.mark.parametrize("noise", ["half-length", "textbook", "short-exponent"])
@given(messages=MESSAGES)
@examples(15)
def test_encrypted_messages_are_decrypted(noise, messages):
    key = keypair(noise=noise)
    bound = int(key.public_key.n) // 2
    messages = [max(-bound, min(bound, m)) for m in messages]
    assert key.decrypt(key.public_key.encrypt(messages)) == messages


def test_check36_equal_messages_give_distinct_ciphertexts():
    """The same message never gives the same ciphertext."""
    for key in (KEY.public_key, KEY._own, keypair(noise="textbook").public_key):
        ciphertexts = key.encrypt([7] * 20).to_ints() + key.encrypt([7] * 20).to_ints()
        assert len(set(ciphertexts)) == 40


def test_check36_computed_ciphertexts_are_blinded_when_written():
    total = PUBLIC.encrypt([1, 2]) + PUBLIC.encrypt([3, 4])
    shown = [total.to_bytes(), total.to_bytes(), PUBLIC.modulus.wrap(total.batch)]
    assert len(set(shown)) == 3
    for data in shown:
        assert KEY.decrypt(PUBLIC.load(data, 2)) == [4, 6]
    for computed in (total * 3, -total, total - total):
        assert computed.to_bytes() != computed.to_bytes()
    fresh = PUBLIC.encrypt([5])
    assert fresh.to_bytes() == fresh.to_bytes()


def test_check36_forked_process_draws_other_noise():
    PUBLIC.encrypt([1] * 40)  # the tables exist; nothing else may be shared
    theirs = int(in_fork(os.fork, lambda: PUBLIC.encrypt([1]).to_ints()[0]))
    assert theirs != PUBLIC.encrypt([1]).to_ints()[0]
    assert KEY.decrypt(PUBLIC.load_ints([theirs])) == [1]


def test_check36_ciphertexts_have_a_fixed_width():
    """Ciphertexts have a fixed width and all entropy is injected."""
    data = {PUBLIC.encrypt([i], Stream("x")).to_bytes() for i in range(50)}
    assert {len(d) for d in data} == {1024 // 8}
    assert (
        PUBLIC.encrypt([1], Stream("x")).to_bytes()
        == PUBLIC.encrypt([1], Stream("x")).to_bytes()
    )


# --- phe


@given(st.lists(st.integers(-(2**200), 2**200), min_size=1, max_size=4))
@examples(20)
def test_keys_and_ciphertexts_are_exchanged_with_phe(messages):
    """Keys and ciphertexts go both ways between phe and secagg."""
    theirs = [phe_keypair()[0].encrypt(m) for m in messages]
    group = foreign().public_key
    read = group.load_ints([c.ciphertext() for c in theirs], largest=2**200)
    assert foreign().decrypt(read) == messages
    ours = group.encrypt(messages)
    back = [phe.EncryptedNumber(phe_keypair()[0], c) for c in ours.to_ints()]
    assert [phe_keypair()[1].decrypt(c) for c in back] == messages
    added = [phe.EncryptedNumber(phe_keypair()[0], c) for c in (ours + read).to_ints()]
    assert [phe_keypair()[1].decrypt(c) for c in added] == [2 * m for m in messages]


def test_ciphertexts_of_another_length_are_rejected():
    for size in (0, 127, 129, 256):
        rejects("length", partial(PUBLIC.load, b"\1" * size, 1))


def test_check36_bad_ciphertext_among_good_ciphertexts_is_rejected():
    good = PUBLIC.encrypt([1, 2]).to_ints()
    for bad in (-1, 0, N * N, KEY.primes[0]):
        with pytest.raises(RemoteProtocolError) as caught:
            PUBLIC.load_ints([good[0], bad, good[1]])
        assert caught.value.check == "ciphertext"
        assert "ciphertext 1 " in str(caught.value)


def test_arguments_that_do_not_fit_are_rejected():
    mine, theirs = PUBLIC.encrypt([1]), keypair(seed="other").public_key.encrypt([1])
    for call in (
        lambda: mine + theirs,
        lambda: mine - theirs,
        lambda: KEY.decrypt(theirs),
        lambda: mine + PUBLIC.encrypt([1, 2]),
        lambda: PUBLIC.encrypt([N // 2 + 1]),
        lambda: mine * N,
    ):
        with pytest.raises(ParameterError):
            call()
