"""Encrypted vectors: the same integers as secret sharing; foreign data are rejected."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secagg
from effort import examples
from harness import make_params
from paillier_keys import keypair
from secagg import ClippingWarning, FixedPoint, Integers, ParameterError, RemoteProtocolError
from secagg.paillier import EncryptedVector, Packing
from secagg.paillier.vectors import HEADER

KEY = keypair()
PUBLIC = KEY.public_key
PACKING = Packing(encoding=FixedPoint(8.0, 16, "nearest"), length=30, summands=5, session=b"r1")


def vector(seed: int = 0, packing: Packing = PACKING) -> EncryptedVector:
    x = np.random.default_rng(seed).normal(size=packing.length)
    return PUBLIC.encrypt_vector(x, packing)


SENT = vector().to_bytes()


@st.composite
def cohorts(draw):
    n = draw(st.integers(3, 9))
    length = draw(st.integers(1, 40))
    clips, roundings = [1.0, 1.25, 8.0, 300.0], ["nearest", "stochastic"]
    floats = st.sampled_from(clips), st.integers(0, 20), st.sampled_from(roundings)
    encoding = draw(
        st.builds(FixedPoint, *floats) | st.builds(Integers, st.integers(1, 1 << 16))
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if isinstance(encoding, FixedPoint):
        spread = encoding.clip * draw(st.sampled_from([0.1, 1.0, 3.0]))
        vectors = [rng.normal(size=length) * spread for _ in range(n)]
    else:
        vectors = [rng.integers(0, encoding.max, length, endpoint=True) for _ in range(n)]
    max_weight = draw(st.one_of(st.none(), st.integers(1, 100)))
    weights = None
    if max_weight is not None:
        weights = draw(st.lists(st.integers(0, max_weight), min_size=n, max_size=n))
    lost = draw(st.sets(st.integers(0, n - 1), max_size=(n - 1) // 3))
    return encoding, vectors, max_weight, weights, lost


@pytest.mark.filterwarnings("ignore::secagg.ClippingWarning")
@pytest.mark.filterwarnings("ignore::secagg.PrecisionWarning")
@given(cohorts(), st.binary(min_size=16, max_size=16))
@examples(40)
def test_check32_shared_encrypted_and_plain_sums_agree(cohort, seed):
    """SS = HE = plain, bit for bit, over encodings, lengths, weights and dropouts."""
    encoding, vectors, max_weight, weights, lost = cohort
    n, length, drawn = len(vectors), len(vectors[0]), Counter[int]()

    def entropy(size: int, /) -> bytes:
        drawn[size] += 1
        return seed if size == 16 else os.urandom(size)

    same = {"encoding": encoding, "length": length, "max_weight": max_weight}
    params = make_params(n, **same, modulus_bits=64)
    gone = dict.fromkeys(lost, "masked_input")
    shared = secagg.simulate_round(
        vectors, params, weights=weights, dropouts=gone, entropy=entropy
    )
    if isinstance(encoding, FixedPoint) and encoding.rounding == "stochastic":
        assert drawn[16] == n - len(lost)  # each client's, and nothing else was this long
    packing = Packing(**same, summands=n)
    total, plain, weight = None, np.zeros(length, dtype=np.int64), 0
    for client, x in enumerate(vectors):
        if client in lost:
            continue
        own = None if weights is None else weights[client]
        sender = KEY if client % 2 else PUBLIC
        sent = sender.encrypt_vector(x, packing, own, entropy).to_bytes()
        arrived = PUBLIC.load_vector(sent, packing)
        total = arrived if total is None else total + arrived
        signed = isinstance(encoding, FixedPoint)
        integers = encoding.encode_integers(x, entropy)[0] if signed else x
        plain += integers * (1 if own is None else own)
        weight += 1 if own is None else own
    summed = KEY.decrypt_vector(PUBLIC.load_vector(total.to_bytes(), packing, summands=None))
    np.testing.assert_array_equal(summed.integers, plain)
    np.testing.assert_array_equal(summed.integers, shared.integers)
    np.testing.assert_array_equal(summed.sum, shared.sum)
    assert summed.sum.dtype == shared.sum.dtype
    assert summed.summands == n - len(lost)
    assert summed.weight == shared.weight == (None if weights is None else weight)
    if weight:
        np.testing.assert_array_equal(summed.mean, shared.mean)
    else:
        with pytest.raises(ParameterError):
            _ = summed.mean


@given(st.binary(max_size=400), st.integers(0, 300))
@examples(200)
def test_check26_any_bytes_are_a_vector_or_rejected(noise, keep):
    data = SENT[:keep] + noise
    try:
        PUBLIC.load_vector(data, PACKING, summands=None)
    except RemoteProtocolError as error:
        assert error.phase == "paillier"


def test_count_does_not_detect_a_multiplied_vector():
    """As documented, an aggregator can count one client's vector five times."""
    read = KEY.decrypt_vector(vector() * 5)
    assert read.summands == 5
    np.testing.assert_array_equal(read.mean, KEY.decrypt_vector(vector()).sum)
    difference = KEY.decrypt_vector((vector(0) - vector(1)) * 2)
    with pytest.raises(ParameterError):
        _ = difference.mean


def test_check17_size_and_header_are_independent_of_content():
    sent = [PUBLIC.encrypt_vector(np.full(30, x), PACKING).to_bytes() for x in (0.0, 1.0, 8.0)]
    assert {len(data) for data in sent} == {HEADER.size + PACKING.plaintexts(512) * 128}
    assert len({data[: HEADER.size] for data in sent}) == 1


def test_check35_vectors_of_another_packing_or_key_are_not_added():
    theirs = keypair(seed="other").public_key.encrypt_vector(np.zeros(30), PACKING)
    for other in (theirs, PUBLIC.encrypt_vector(np.zeros(30), replace(PACKING, summands=6))):
        for operation in (lambda o=other: vector() + o, lambda o=other: o - vector()):
            with pytest.raises(ParameterError):
                operation()
    with pytest.raises(ParameterError):
        KEY.decrypt_vector(theirs)


def test_floats_beyond_the_clip_are_counted_or_rejected():
    """Floats beyond the clip are counted or rejected, and the count is not sent."""
    x = np.zeros(30)
    x[[3, 4]] = 8.5, -100.0
    with pytest.warns(ClippingWarning):
        clipped = PUBLIC.encrypt_vector(x, PACKING)
    assert clipped.clipped == 2
    assert "2 elements clipped" in repr(clipped)
    assert KEY.decrypt_vector(clipped).sum[3] == 8.0
    sent = PUBLIC.load_vector(clipped.to_bytes(), PACKING)
    assert sent.clipped == (clipped + clipped).clipped == 0
    strict = FixedPoint(8.0, 16, "nearest", beyond_clip="refuse")
    with pytest.raises(ParameterError):
        PUBLIC.encrypt_vector(x, replace(PACKING, encoding=strict))


@pytest.mark.parametrize(
    "call",
    [
        lambda: vector() * 0,
        lambda: PUBLIC.encrypt_vector(np.zeros(30), FixedPoint(8.0)),
        lambda: PUBLIC.load_vector(b"", None),
        lambda: KEY.decrypt_vector(vector().ciphertexts),
        lambda: KEY.decrypt_vector(sum([])),
        *(lambda n=n: PUBLIC.load_vector(vector().to_bytes(), PACKING, n) for n in (0, 6, 1.0)),
    ],
)
def test_arguments_of_other_kinds_are_rejected(call):
    with pytest.raises(ParameterError):
        call()
