"""Encrypted vectors: the same integers as secret sharing; foreign data are rejected."""

from __future__ import annotations

import os
import struct

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secagg
from effort import examples
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


@st.composite
def cohorts(draw):
    n = draw(st.integers(3, 20))
    length = draw(st.integers(1, 80))
    encoding = draw(
        st.one_of(
            st.builds(
                FixedPoint,
                st.sampled_from([1.0, 1.25, 8.0, 300.0]),
                st.integers(0, 20),
                st.sampled_from(["nearest", "stochastic"]),
            ),
            st.builds(Integers, st.integers(1, 1 << 16)),
        )
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
    needed = 2 * n * encoding.max_encoded * (max_weight or 1) + 1
    least = max(40, needed.bit_length())
    ring = draw(
        st.one_of(
            st.fixed_dictionaries({"modulus_bits": st.integers(least, 64)}),
            st.integers(2**least, 2**61).map(lambda m: {"modulus": int(gmpy2.next_prime(m))}),
        )
    )
    return encoding, vectors, max_weight, weights, lost, ring


class SameRounding:
    """Entropy whose 16 bytes for stochastic rounding are always the same."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self.seeds = seed, 0

    def __call__(self, size: int, /) -> bytes:
        if size != 16:
            return os.urandom(size)
        self.seeds += 1
        return self._seed


@pytest.mark.filterwarnings("ignore::secagg.ClippingWarning")
@pytest.mark.filterwarnings("ignore::secagg.PrecisionWarning")
@given(cohorts(), st.binary(min_size=16, max_size=16))
@examples(60)
def test_check32_shared_encrypted_and_plain_sums_agree(cohort, seed):
    """SS = HE = plain, bit for bit, over encodings, moduli, lengths, weights and dropouts."""
    encoding, vectors, max_weight, weights, lost, ring = cohort
    entropy = SameRounding(seed)
    n, length = len(vectors), len(vectors[0])
    params = secagg.RoundParams(
        n_clients=n,
        threshold=n // 2 + 1,
        length=length,
        encoding=encoding,
        max_weight=max_weight,
        **ring,
    )
    shared = secagg.simulate_round(
        vectors,
        params,
        weights=weights,
        dropouts=dict.fromkeys(lost, "masked_input"),
        entropy=entropy,
    )
    if isinstance(encoding, FixedPoint) and encoding.rounding == "stochastic":
        assert entropy.seeds == n - len(lost)  # each client's, and nothing else was this long
    packing = Packing(encoding=encoding, length=length, summands=n, max_weight=max_weight)
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


def test_check34_addition_beyond_capacity_is_rejected():
    """The count is sent along, and addition beyond capacity is rejected."""
    five = vector()
    for seed in range(1, 5):
        five = five + vector(seed)
        assert (five.added, five.subtracted) == (seed + 1, 0)
    again = PUBLIC.load_vector(five.to_bytes(), PACKING, summands=5)
    assert again.added == 5
    for beyond in (
        lambda: five + vector(9),
        lambda: vector(9) + five,
        lambda: five - vector(9),
        lambda: five * 2,
        lambda: five * -2,
        lambda: vector() * 6,
        lambda: (vector() - vector()) * 3,
    ):
        with pytest.raises(ParameterError, match=r"(6|10) summands"):
            beyond()
    assert KEY.decrypt_vector(five).summands == 5


def test_differences_and_multiples_are_counted_with_their_sign():
    x, y = (np.random.default_rng(s).normal(size=30) for s in (1, 2))
    a, b = PUBLIC.encrypt_vector(x, PACKING), PUBLIC.encrypt_vector(y, PACKING)
    encode = PACKING.encoding.encode_integers
    for computed, expected, counts in (
        (a - b, encode(x)[0] - encode(y)[0], (1, 1)),
        (a * 3 - b, 3 * encode(x)[0] - encode(y)[0], (3, 1)),
        (-2 * (a - b), 2 * (encode(y)[0] - encode(x)[0]), (2, 2)),
    ):
        assert (computed.added, computed.subtracted) == counts
        result = KEY.decrypt_vector(PUBLIC.load_vector(computed.to_bytes(), PACKING, None))
        np.testing.assert_array_equal(result.integers, expected)
        assert result.summands == counts[0] - counts[1]
    with pytest.raises(ParameterError):
        _ = KEY.decrypt_vector(a - b).mean


def header(data: bytes, **changes: object) -> bytes:
    names = ("magic", "version", "key", "packing", "added", "subtracted")
    fields = dict(zip(names, HEADER.unpack_from(data), strict=True)) | changes
    return HEADER.pack(*fields.values()) + data[HEADER.size :]


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"magic": b"SAEW"}, "version"),
        ({"version": 2}, "version"),
        ({"version": 0}, "version"),
        ({"key": bytes(32)}, "key"),
        ({"packing": bytes(32)}, "packing"),
        ({"added": 0}, "summands"),
        ({"added": 2}, "summands"),
        ({"added": 6}, "summands"),
        ({"added": 2**64 - 1, "subtracted": 2}, "summands"),
        ({"subtracted": 1}, "summands"),
    ],
)
def test_check35_tampered_header_is_rejected(changes, check):
    with pytest.raises(RemoteProtocolError) as caught:
        PUBLIC.load_vector(header(vector().to_bytes(), **changes), PACKING)
    assert caught.value.check == check


@pytest.mark.parametrize(
    "changes",
    [{"added": 1}, {"added": 3}, {"added": 2, "subtracted": 1}, {"added": 0, "subtracted": 2}],
)
def test_check34_wrong_count_in_the_header_is_detected(changes):
    """A wrong count in the header of a sum is detected at decryption."""
    data = header((vector() + vector(1)).to_bytes(), **changes)
    with pytest.raises(RemoteProtocolError) as caught:
        KEY.decrypt_vector(PUBLIC.load_vector(data, PACKING, summands=None))
    assert caught.value.check in ("summands", "sum")


@pytest.mark.parametrize(
    "other",
    [
        {"encoding": FixedPoint(8.0, 15, "nearest")},
        {"encoding": FixedPoint(4.0, 16, "nearest")},
        {"length": 29},
        {"summands": 6},
        {"max_weight": 2},
        {"session": b"r2"},
    ],
)
def test_check35_vectors_of_another_kind_are_rejected(other):
    """Vectors of another kind are neither loaded nor added."""
    fields = {
        "encoding": PACKING.encoding,
        "length": 30,
        "summands": 5,
        "max_weight": None,
        "session": b"r1",
    } | other
    packing = Packing(**fields)
    weight = None if packing.max_weight is None else 1
    theirs = PUBLIC.encrypt_vector(np.zeros(packing.length), packing, weight)
    with pytest.raises(RemoteProtocolError) as caught:
        PUBLIC.load_vector(theirs.to_bytes(), PACKING)
    assert caught.value.check == "packing"
    assert f" {PACKING}" in str(caught.value)
    for operation in (lambda: vector() + theirs, lambda: theirs - vector()):
        with pytest.raises(ParameterError):
            operation()


def test_foreign_key_is_rejected():
    other = keypair(seed="other")
    theirs = other.public_key.encrypt_vector(np.zeros(30), PACKING)
    with pytest.raises(RemoteProtocolError) as caught:
        PUBLIC.load_vector(theirs.to_bytes(), PACKING)
    assert caught.value.check == "key"
    with pytest.raises(ParameterError):
        _ = vector() + theirs
    with pytest.raises(ParameterError):
        KEY.decrypt_vector(theirs)


def test_vector_bytes_of_any_other_length_are_rejected():
    data = vector().to_bytes()
    for wrong in (b"", data[:40], data[: HEADER.size], data[:-1], data + b"\0", data * 2):
        with pytest.raises(RemoteProtocolError) as caught:
            PUBLIC.load_vector(wrong, PACKING)
        assert caught.value.check == "length"


@given(st.binary(max_size=400), st.integers(0, 300))
@examples(200)
def test_check26_any_bytes_are_a_vector_or_rejected(noise, keep):
    data = (vector().to_bytes()[:keep] + noise)[:1000]
    try:
        PUBLIC.load_vector(data, PACKING, summands=None)
    except RemoteProtocolError as error:
        assert error.phase == "paillier"


@given(st.integers(2**508, 2**510), st.booleans())
@examples(30)
def test_check34_ciphertexts_that_are_no_sum_are_detected(size, negative):
    """The first of two plaintexts has 22 slots of 23 bits, which this lies beyond."""
    assert PACKING.slots(PUBLIC.bits) * PACKING.slot_bits < 508
    plaintexts = [-size if negative else size, 0]
    read = EncryptedVector(PACKING, PUBLIC.encrypt(plaintexts))
    with pytest.raises(RemoteProtocolError) as caught:
        KEY.decrypt_vector(read)
    assert caught.value.check == "sum"


def test_check34_vector_without_its_count_is_detected():
    """A vector without its count is detected at decryption."""
    with pytest.raises(RemoteProtocolError) as caught:
        KEY.decrypt_vector(EncryptedVector(PACKING, PUBLIC.encrypt([0, 0])))
    assert caught.value.check == "summands"


@pytest.mark.parametrize(
    ("encoding", "added", "values"),
    [
        (FixedPoint(7.0, 0), 2, {14: True, -14: True, 15: False, -15: False}),
        (Integers(7), 2, {14: True, 0: True, 15: False, -1: False}),
        (Integers(7), 0, {0: True, -14: True, 1: False, -15: False}),
        (Integers(7), 1, {7: True, -7: True, 8: False, -8: False}),
    ],
)
def test_check42_slot_overflowing_by_one_is_detected(encoding, added, values):
    """A slot that overflows by one is detected at decryption."""
    packing = Packing(encoding=encoding, length=3, summands=2)
    for value, fits in values.items():
        for slot in range(3):
            plaintext = value << (packing.slot_bits * slot)
            plaintext += (2 * added - 2) << (packing.slot_bits * 3)
            ciphertexts = PUBLIC.encrypt([plaintext])
            read = EncryptedVector(packing, ciphertexts, added=added, subtracted=2 - added)
            if fits:
                assert KEY.decrypt_vector(read).integers[slot] == value
                continue
            with pytest.raises(RemoteProtocolError) as caught:
                KEY.decrypt_vector(read)
            assert caught.value.check == "sum"


def test_check34_weight_beyond_the_maximum_is_detected():
    """A weight beyond the maximum is detected at decryption."""
    packing = Packing(encoding=Integers(7), length=1, summands=4, max_weight=3)
    for weight, fits in ((3, True), (0, True), (4, False), (-1, False)):
        plaintext = (weight << packing.slot_bits) + (1 << (2 * packing.slot_bits))
        read = EncryptedVector(packing, PUBLIC.encrypt([plaintext]))
        if fits:
            assert KEY.decrypt_vector(read).weight == weight
            continue
        with pytest.raises(RemoteProtocolError) as caught:
            KEY.decrypt_vector(read)
        assert caught.value.check == "weight"


@pytest.mark.parametrize("weight", [0, 1, 5])
def test_check34_weighted_sum_counts_apart_from_its_weight(weight):
    """The header of one vector, edited to five: its weight could well be that of five."""
    packing = Packing(encoding=Integers(7), length=3, summands=5, max_weight=5)
    one = PUBLIC.encrypt_vector(np.array([1, 2, 3]), packing, weight)
    for added in (1, 2, 5):
        data = header(one.to_bytes(), added=added)
        arrived = PUBLIC.load_vector(data, packing, summands=None)
        if added == 1:
            assert KEY.decrypt_vector(arrived).weight == weight
            continue
        with pytest.raises(RemoteProtocolError) as caught:
            KEY.decrypt_vector(arrived)
        assert caught.value.check == "summands"


def test_count_does_not_detect_a_multiplied_vector():
    """As documented, an aggregator can count one client's vector five times."""
    read = KEY.decrypt_vector(vector() * 5)
    assert read.summands == 5
    np.testing.assert_array_equal(read.mean, KEY.decrypt_vector(vector()).sum)


def test_floats_beyond_the_clip_are_counted_or_rejected():
    """Floats beyond the clip are counted or rejected, and the count is not sent."""
    x = np.zeros(30)
    x[[3, 4]] = 8.5, -100.0
    with pytest.warns(ClippingWarning):
        clipped = PUBLIC.encrypt_vector(x, PACKING)
    assert clipped.clipped == 2
    assert repr(clipped).endswith("1 added, 0 subtracted, 2 elements clipped)")
    assert "clipped" not in repr(clipped + clipped)
    assert KEY.decrypt_vector(clipped).sum[3] == 8.0
    assert PUBLIC.load_vector(clipped.to_bytes(), PACKING).clipped == 0
    assert (clipped + clipped).clipped == 0
    strict = FixedPoint(8.0, 16, "nearest", beyond_clip="refuse")
    with pytest.raises(ParameterError, match="2 elements"):
        PUBLIC.encrypt_vector(x, Packing(encoding=strict, length=30, summands=5))
    x[7] = np.nan
    with pytest.raises(ParameterError, match="element 7"):
        PUBLIC.encrypt_vector(x, PACKING)


def test_sum_adds_vectors_up():
    vectors = [vector(seed) for seed in range(5)]
    total = sum(vectors)
    assert (total.added, total.subtracted) == (5, 0)
    expected = sum(KEY.decrypt_vector(v).integers for v in vectors)
    np.testing.assert_array_equal(KEY.decrypt_vector(total).integers, expected)
    assert (np.int64(0) + vectors[0]).added == 1


@pytest.mark.parametrize("other", [1, 0.0, False, None, np.zeros(30), np.int64(1), "0"])
def test_only_the_zero_of_sum_is_added_to_a_vector(other):
    kind = type(other).__name__
    with pytest.raises(ParameterError, match=kind):
        _ = other + vector()
    with pytest.raises(ParameterError, match=kind):
        _ = vector() + other
    assert (3 * vector()).added == (np.int64(3) * vector()).added == 3


def test_array_as_factor_raises_without_its_values():
    with pytest.raises(ParameterError, match="ndarray"):
        _ = np.full(30, 12345.5) * vector()


@pytest.mark.parametrize("factor", [0, 1.0, True, None])
def test_factors_that_make_no_sum_are_rejected(factor):
    with pytest.raises(ParameterError, match="factor"):
        _ = vector() * factor


def test_arguments_of_other_kinds_raise_with_their_name():
    with pytest.raises(ParameterError, match="packing"):
        PUBLIC.encrypt_vector(np.zeros(30), FixedPoint(8.0))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="packing"):
        PUBLIC.load_vector(b"", None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="vector"):
        KEY.decrypt_vector(vector().ciphertexts)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="EncryptedVector"):
        _ = vector() + 1  # type: ignore[operator]
    for summands in (0, 6, 1.0):
        with pytest.raises(ParameterError, match="summands"):
            PUBLIC.load_vector(vector().to_bytes(), PACKING, summands)


def test_check17_size_and_header_are_independent_of_content():
    sent = [PUBLIC.encrypt_vector(np.full(30, x), PACKING).to_bytes() for x in (0.0, 1.0, 8.0)]
    assert {len(data) for data in sent} == {HEADER.size + PACKING.plaintexts(512) * 128}
    assert len({data[: HEADER.size] for data in sent}) == 1
    assert HEADER.size == struct.calcsize("<4sB32s32sQQ")


def test_empty_sum_is_rejected() -> None:
    with pytest.raises(ParameterError, match="sum of some, not int"):
        KEY.decrypt_vector(sum([]))
