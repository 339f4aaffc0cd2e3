"""AES-GCM in bulk: the twin and the kernel against ``cryptography``, NIST and Wycheproof."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg._fast import reference
from vectors_reader import b, wycheproof

TAG = 16
CASE_13 = "530f8afbc74536b9a963b4f1c4cb738b"
CASE_14 = "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
IMPLEMENTATIONS = {
    "reference": (reference.gcm_seal, reference.gcm_open),
    "active": (_fast.gcm_seal, _fast.gcm_open),
}
if _fast.COMPILED and _fast._kernels.gcm_tiers():
    IMPLEMENTATIONS["aesni"] = (_fast._kernels.gcm_seal, _fast._kernels.gcm_open)

every = pytest.mark.parametrize("gcm", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())


def rows(items: list[bytes]) -> np.ndarray:
    shape = (len(items), len(items[0]) if items else 0)
    return np.frombuffer(b"".join(items), np.uint8).reshape(shape)


def sealed_by(gcm, keys, nonce, aads, texts) -> list[bytes]:
    out = np.full((len(keys), len(texts[0]) + TAG), 0xEE, np.uint8)
    gcm[0](rows(keys), nonce, rows(aads), rows(texts), out)
    return [row.tobytes() for row in out]


def opened_by(gcm, keys, nonce, aads, sealed) -> tuple[int, list[bytes]]:
    out = np.full((len(keys), len(sealed[0]) - TAG), 0xEE, np.uint8)
    return gcm[1](rows(keys), nonce, rows(aads), rows(sealed), out), [x.tobytes() for x in out]


@every
def test_cases_of_wycheproof_and_of_the_specification(gcm):
    """McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", cases 13 and 14."""
    first = [bytes(32)], bytes(12), [b""]
    for text, sealed in ((b"", CASE_13), (bytes(16), CASE_14)):
        assert sealed_by(gcm, *first, [text]) == [bytes.fromhex(sealed)]
    valid = invalid = 0
    for case in wycheproof("aes_gcm"):
        given = [b(case["key"])], b(case["iv"]), [b(case["aad"])]
        message, sealed = b(case["msg"]), b(case["ct"]) + b(case["tag"])
        count, texts = opened_by(gcm, *given, [sealed])
        if case["result"] == "valid":
            assert (count, texts) == (1, [message])
            assert sealed_by(gcm, *given, [message]) == [sealed]
            valid += 1
        else:
            assert count == 0
            invalid += 1
    assert (valid, invalid) == (39, 27)


@every
@examples(60)
@given(
    count=st.integers(1, 5),
    text=st.one_of(st.integers(0, 100), st.sampled_from([127, 128, 1000])),
    aad=st.one_of(st.integers(0, 70), st.just(300)),
    seed=st.integers(0, 2**32),
)
def test_against_cryptography(gcm, count, text, aad, seed):
    """Texts end within and at the end of a block, and take several batches of blocks."""
    draw = random.Random(seed)
    keys, aads, texts = ([draw.randbytes(n) for _ in range(count)] for n in (32, aad, text))
    nonce = draw.randbytes(12)
    expected = [
        AESGCM(key).encrypt(nonce, *pair) for key, *pair in zip(keys, texts, aads, strict=True)
    ]
    assert sealed_by(gcm, keys, nonce, aads, texts) == expected
    assert opened_by(gcm, keys, nonce, aads, expected) == (count, texts)


@every
@pytest.mark.parametrize("size", [4096, (1 << 20) + 17])
def test_counters_of_long_texts_have_32_bits(gcm, size):
    key, text = bytes(range(32)), bytes(size)
    expected = AESGCM(key).encrypt(bytes(12), text, b"")
    assert sealed_by(gcm, [key], bytes(12), [b""], [text]) == [expected]
    assert opened_by(gcm, [key], bytes(12), [b""], [expected]) == (1, [text])


@every
@examples(60)
@given(
    row=st.integers(0, 3),
    part=st.sampled_from(["key", "nonce", "aad", "sealed"]),
    bit=st.integers(0, 8 * 12 - 1),
    end=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_altered_bit_ends_the_opening_at_its_row(gcm, row, part, bit, end, seed):
    """The rows before it are opened, and nothing is written from it on."""
    draw = random.Random(seed)
    keys, aads, texts = ([draw.randbytes(n) for _ in range(4)] for n in (32, 21, 40))
    nonce = draw.randbytes(12)
    sealed = sealed_by(gcm, keys, nonce, aads, texts)

    def flipped(data: bytes) -> bytes:
        at = (len(data) - 1 - bit // 8) if end else bit // 8
        return data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]

    if part == "nonce":
        row, nonce = 0, flipped(nonce)
    else:
        changed = {"key": keys, "aad": aads, "sealed": sealed}[part]
        changed[row] = flipped(changed[row])
    count, found = opened_by(gcm, keys, nonce, aads, sealed)
    assert count == row
    assert found == texts[:row] + [b"\xee" * 40] * (4 - row)


@every
def test_no_message_is_fine(gcm):
    none = np.empty((0, 0), np.uint8)
    keys, out = np.empty((0, 32), np.uint8), np.empty((0, TAG), np.uint8)
    gcm[0](keys, bytes(12), none, none, out)
    assert gcm[1](keys, bytes(12), none, out, none) == 0


FITTING = {"keys": (3, 32), "nonce": 12, "aads": (3, 5), "texts": (3, 8), "sealed": (3, 24)}

LONG = {"keys": (1, 32), "aads": (1, 5), "texts": (1, 2**31 - 16), "sealed": (1, 2**31)}
"""Arrays that are never touched, so not in memory."""


@every
@pytest.mark.parametrize(
    "change",
    [
        {"keys": (2, 32)},
        {"aads": (2, 5)},
        {"texts": (2, 8)},
        {"sealed": (2, 24)},
        {"keys": (3, 16)},
        {"nonce": 13},
        {"sealed": (3, 23)},
        {"keys": (3,)},
        LONG,
    ],
)
def test_rejects_wrong_shapes(gcm, change):
    keys, nonce, aads, texts, sealed = (FITTING | change).values()
    first = np.zeros(keys, np.uint8), bytes(nonce), np.zeros(aads, np.uint8)
    clear, boxes = np.empty(texts, np.uint8), np.empty(sealed, np.uint8)
    for run, arrays in zip(gcm, ((clear, boxes), (boxes, clear)), strict=True):
        with pytest.raises(ValueError, match=r"."):
            run(*first, *arrays)


@every
def test_rejects_other_dtypes_and_strides(gcm):
    keys, texts, out = (np.zeros((4, n), np.uint8) for n in (32, 8, 24))
    for wrong in (texts.astype(np.int8), np.zeros((4, 16), np.uint8)[:, ::2]):
        with pytest.raises(ValueError, match=r"."):
            gcm[0](keys, bytes(12), texts, wrong, out)
        with pytest.raises(ValueError, match=r"."):
            gcm[1](keys, bytes(12), wrong, out, texts)
