"""Masks: known answers, and the streams of all tiers against plain integers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from mask_case import IMPLEMENTATIONS, KNOWN, every
from secagg import _fast
from secagg._fast import reference

lanes = pytest.mark.parametrize("lane", [np.uint32, np.uint64])

KEY = bytes(range(16))
keys = st.lists(st.binary(min_size=16, max_size=16), max_size=4)
starts = st.one_of(
    st.integers(0, 200),
    st.integers(2**33 - 40, 2**33 + 40),  # 64-bit words: the block index passes 2^32
    st.integers(2**34 - 40, 2**34 + 40),
    st.integers(0, 2**60 - 40_000),
)
moduli = st.one_of(
    st.integers(2, 2**62), st.integers(2, 100), st.sampled_from([2**62, 3 << 60, 2**61 - 1])
)

# NIST SP 800-38A, F.5.1, the four output blocks; its counter f0f1...feff is a domain and a
# block index here.
SP800_38A = (
    "ec8cdf7398607cb0f2d21675ea9ea1e4362b7c3c6773516318a077d7fc5073ae"
    "6a2cc3787889374fbeb4c81b17ba6c44e89c399ff0f198c6d40a31db156cabfe"
)

# Index, how often its word is rejected, its value; see the test for how they were found.
REJECTED = [
    (0, 0, 1761236111010246229),
    (7, 1, 1871389585462687421),
    (11, 2, 2845702480177272227),
    (1070, 3, 2194275035307880051),
]


def stream_word(key: bytes, domain: int, index: int, width: int) -> int:
    """One word of the stream, from one block of AES: the definition, spelled out."""
    block, offset = divmod(index * width, 16)
    octets = reference.keystream(key, 16, domain=domain, offset=16 * block)
    return int.from_bytes(octets[offset : offset + width], "little")


def uniform(key: bytes, index: int, modulus: int) -> int:
    """One element of the mask over Z_R in plain integers."""
    domain = 0
    while True:
        product = stream_word(key, domain, index, 8) * modulus
        if product % 2**64 >= 2**64 % modulus:
            return product >> 64
        domain += 1


def mask_of(masks: object, size: int, modulus: int, start: int = 0) -> list[int]:
    acc = np.zeros(size, np.uint64)
    masks.mask_mod(acc, KEY, b"\0", modulus, start)
    return acc.tolist()


def test_reference_stream_is_ctr_of_sp800_38a():
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    domain, block = 0xF0F1F2F3F4F5F6F7, 0xF8F9FAFBFCFDFEFF
    octets = reference.keystream(key, 64, domain=domain, offset=16 * block)
    assert octets.hex() == SP800_38A


@every
@lanes
@pytest.mark.parametrize(("key", "block"), KNOWN)
def test_check12_known_answers(masks, lane, key, block):
    acc = np.zeros(len(block) // 2 // np.dtype(lane).itemsize, lane)
    masks.mask_words(acc, bytes.fromhex(key), b"\0")
    assert acc.tobytes().hex() == block


@every
@lanes
@examples(40)
@given(keys=keys, signs=st.integers(0, 15), start=starts, size=st.integers(0, 90))
def test_words_against_plain_integers(masks, lane, keys, signs, start, size):
    width = np.dtype(lane).itemsize
    negate = bytes(signs >> j & 1 for j in range(len(keys)))
    acc = np.arange(size, dtype=lane) * lane(0x9E3779B9)
    expected = acc.tolist()
    for key, minus in zip(keys, negate, strict=True):
        for i in range(size):
            word = stream_word(key, 0, start + i, width)
            expected[i] = (expected[i] + (-word if minus else word)) % 2 ** (8 * width)
    masks.mask_words(acc, b"".join(keys), negate, start)
    assert acc.tolist() == expected


@every
@lanes
def test_last_words_of_a_stream(masks, lane):
    acc = np.zeros(4, lane)
    start, width = 2**60 - 4, acc.itemsize
    masks.mask_words(acc, KEY, b"\0", start)
    assert acc.tolist() == [stream_word(KEY, 0, start + i, width) for i in range(4)]


@every
@examples(40)
@given(
    keys=keys, signs=st.integers(0, 15), start=starts, size=st.integers(0, 60), modulus=moduli
)
def test_mod_against_plain_integers(masks, keys, signs, start, size, modulus):
    negate = bytes(signs >> j & 1 for j in range(len(keys)))
    expected = [i * (modulus - 1) // max(size - 1, 1) for i in range(size)]  # 0 and R - 1
    acc = np.array(expected, np.uint64)
    for key, minus in zip(keys, negate, strict=True):
        for i in range(size):
            value = uniform(key, start + i, modulus)
            expected[i] = (expected[i] + (-value if minus else value)) % modulus
    masks.mask_mod(acc, b"".join(keys), negate, modulus, start)
    assert acc.tolist() == expected


@pytest.mark.skipif(not _fast.COMPILED, reason="compares the compiled masks with their twin")
@examples(25)
@given(
    keys=st.binary(max_size=150).map(lambda b: (b * 16)[: len(b) * 16]),  # three batches
    seed=st.integers(0, 2**32),
    start=starts,
    size=st.integers(0, 40_000),
    modulus=moduli,
    tier=st.sampled_from(sorted(IMPLEMENTATIONS)),
)
def test_long_vectors_against_the_reference(keys, seed, start, size, modulus, tier):
    rng = np.random.default_rng(seed)
    masks = IMPLEMENTATIONS[tier]
    negate = rng.integers(0, 2, len(keys) // 16, dtype=np.uint8).tobytes()
    for lane in (np.uint32, np.uint64):
        acc = rng.integers(0, 2**32, size, dtype=lane)
        expected = acc.copy()
        masks.mask_words(acc, keys, negate, start)
        reference.mask_words(expected, keys, negate, start)
        np.testing.assert_array_equal(acc, expected)
    few = 16 * min(3, len(negate))
    acc = rng.integers(0, modulus, size, dtype=np.uint64)
    expected = acc.copy()
    masks.mask_mod(acc, keys[:few], negate[: few // 16], modulus, start)
    reference.mask_mod(expected, keys[:few], negate[: few // 16], modulus, start)
    np.testing.assert_array_equal(acc, expected)


@every
def test_rejected_words_are_redrawn_from_the_next_domains(masks):
    """R = 3 · 2^60, where 2^64 mod R = 2^60 and one word in 16 is rejected.

    Found by drawing the first words of the key 00 01 ... 0f in domains 0 to 3 and taking the
    first index that is rejected in none, in 0, in 0 and 1, and in 0, 1 and 2.
    """
    modulus = 3 << 60
    for index, rejections, value in REJECTED:
        words = [stream_word(KEY, domain, index, 8) for domain in range(4)]
        rejected = [word * modulus % 2**64 < 2**64 % modulus for word in words]
        assert rejected.index(False) == rejections
        assert words[rejections] * modulus >> 64 == value
        assert mask_of(masks, 1, modulus, start=index) == [value]
    last = max(index for index, _, _ in REJECTED)
    whole = mask_of(masks, last + 1, modulus)
    assert [whole[index] for index, _, _ in REJECTED] == [value for _, _, value in REJECTED]


ACC = np.zeros(4, np.uint64)
FROZEN = ACC.copy()
FROZEN.flags.writeable = False


@every
@pytest.mark.parametrize(
    "change",
    [
        {"keys": KEY[:15]},
        *({"negate": signs} for signs in (b"\0\0", b"\2")),
        *({"start": start} for start in (-1, 2**60 - 3)),
        *({"acc": ACC.astype(kind)} for kind in (np.int64, np.float32, np.uint8)),
        *({"acc": acc} for acc in (ACC.reshape(2, 2), np.zeros(8, np.uint64)[::2], FROZEN)),
    ],
)
def test_rejects_wrong_shapes(masks, change):
    given = {"acc": ACC.copy(), "keys": KEY, "negate": b"\0", "start": 0} | change
    with pytest.raises(ValueError, match=r"."):
        masks.mask_words(**given)
    with pytest.raises(ValueError, match=r"."):
        masks.mask_mod(**given, modulus=97)
    assert not given["acc"].any()


@every
def test_rejects_wrong_moduli_and_lanes(masks):
    for acc, modulus in (*((ACC, m) for m in (-1, 0, 1, 2**62 + 1)), (ACC[:2].view("u4"), 97)):
        with pytest.raises(ValueError, match=r"modulus|uint64"):
            masks.mask_mod(acc.copy(), KEY, b"\0", modulus)


@pytest.mark.check(12)
@every
@examples(20)
@given(
    cuts=st.lists(st.integers(0, 5000), max_size=6),
    workers=st.integers(1, 4),
    start=st.integers(0, 100),
    modulus=st.sampled_from([0, 3 << 60, 1_000_003]),
)
def test_check12_one_stream_for_any_split_and_threads(masks, cuts, workers, start, modulus):
    lane = np.uint32 if modulus == 0 and start % 2 else np.uint64
    whole = np.zeros(5000, lane)
    parts = np.zeros(5000, lane)
    both, signs = KEY + bytes(16), b"\0\1"

    def run(acc, first):
        if modulus:
            masks.mask_mod(acc, both, signs, modulus, first)
        else:
            masks.mask_words(acc, both, signs, first)

    run(whole, start)
    edges = sorted({0, *cuts, 5000})
    with ThreadPoolExecutor(workers) as pool:
        for done in [
            pool.submit(run, parts[low:high], start + low) for low, high in pairwise(edges)
        ]:
            done.result()
    np.testing.assert_array_equal(parts, whole)


def chi_square(values: np.ndarray, classes: int) -> float:
    """Distance from uniform in standard deviations of the statistic."""
    expected = values.size / classes
    statistic = ((np.bincount(values, minlength=classes) - expected) ** 2).sum() / expected
    return float((statistic - (classes - 1)) / np.sqrt(2 * (classes - 1)))


@pytest.mark.check(13)
@every
@pytest.mark.parametrize("modulus", [2, 3, 5, 7, 10, 255, 257, 1000])
def test_check13_masks_are_uniform_over_z_r(masks, modulus):
    acc = np.zeros(200_000, np.uint64)
    masks.mask_mod(acc, KEY, b"\0", modulus)
    assert acc.max() == modulus - 1
    assert chi_square(acc.astype(np.int64), modulus) < 5


@pytest.mark.check(13)
@every
def test_check13_rejection_removes_the_bias(masks):
    """Without rejection a mask over R = 3 · 2^60 is 0 mod 3 six times in 16, not one in 3."""
    acc = np.zeros(200_000, np.uint64)
    masks.mask_mod(acc, KEY, b"\0", 3 << 60)
    assert chi_square((acc % 3).astype(np.int64), 3) < 5
    assert acc.max() < 3 << 60
