"""SHA-256 and HKDF in bulk: twins and kernels against other code, FIPS, RFC and Wycheproof."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg._fast import reference
from vectors_reader import b, wycheproof

IMPLEMENTATIONS = {"reference": reference.hkdf, "active": _fast.hkdf}
if _fast.COMPILED:
    IMPLEMENTATIONS["instructions"] = _fast._kernels.hkdf
    IMPLEMENTATIONS["portable"] = _fast._kernels.hkdf_portable

DIGESTS = {"reference": reference.sha256, "active": _fast.sha256}
if _fast.COMPILED:
    DIGESTS["instructions"] = _fast._kernels.sha256
    DIGESTS["portable"] = _fast._kernels.sha256_portable

each_sha256 = pytest.mark.parametrize("sha256", DIGESTS.values(), ids=DIGESTS.keys())
every = pytest.mark.parametrize("hkdf", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())


def rows(items: list[bytes]) -> np.ndarray:
    shape = (len(items), len(items[0]) if items else 0)
    return np.frombuffer(b"".join(items), np.uint8).reshape(shape)


def digests(sha256, items: list[bytes]) -> list[bytes]:
    out = np.full((len(items), 32), 0xEE, np.uint8)
    sha256(rows(items), out)
    return [row.tobytes() for row in out]


@each_sha256
def test_digests_of_fips_180(sha256):
    """The messages of NIST's examples: of one block, of two, of many, and of no byte."""
    known = {
        b"abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq": (
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        b"a" * 1_000_000: "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
        b"": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
    for message, digest in known.items():
        assert digests(sha256, [message]) == [bytes.fromhex(digest)]


@each_sha256
@examples(60)
@given(st.integers(0, 5), st.integers(0, 200) | st.integers(0, 5000), st.integers(0, 2**32))
def test_digests_against_hashlib(sha256, count, size, seed):
    """Lengths around 55 and 64 need another block of SHA-256."""
    draw = random.Random(seed)
    items = [draw.randbytes(size) for _ in range(count)]
    assert digests(sha256, items) == [hashlib.sha256(item).digest() for item in items]


@each_sha256
def test_digests_of_wrong_shapes_dtypes_and_strides_are_rejected(sha256):
    good, out = np.zeros((4, 64), np.uint8), np.zeros((4, 32), np.uint8)
    for wrong in (
        good[:3],
        good[0],
        good.astype(np.int8),
        good[:, ::2],
        np.asfortranarray(good),
    ):
        with pytest.raises(ValueError, match=r"."):
            sha256(wrong, out)
    for wrong in (out[:, :31].copy(), out[0], out.astype(np.int8), good[:, ::2]):
        with pytest.raises(ValueError, match=r"."):
            sha256(good, wrong)


def run(hkdf, secrets: list[bytes], salt: bytes, infos: list[bytes], size: int) -> list[bytes]:
    out = np.full((len(secrets), size), 0xEE, np.uint8)
    hkdf(rows(secrets), salt, rows(infos), out)
    return [row.tobytes() for row in out]


@every
def test_valid_cases_of_wycheproof_and_rfc_5869(hkdf):
    """Wycheproof has cases 1 to 3 of appendix A; HMAC hashes salts of more than 64 bytes."""
    derived = 0
    for case in wycheproof("hkdf_sha256"):
        salt, info = b(case["salt"]), b(case["info"])
        if case["result"] == "valid":
            salt = salt if len(salt) <= 64 else hashlib.sha256(salt).digest()
            found = run(hkdf, [b(case["ikm"])], salt, [info], case["size"])
            assert found == [b(case["okm"])]
            derived += 1
    assert derived > 50


@every
@examples(60)
@given(
    count=st.integers(0, 4),
    secret=st.integers(0, 150),
    salt=st.binary(max_size=64),
    info=st.integers(0, 150),
    size=st.one_of(st.integers(0, 70), st.sampled_from([96, 3200, 8160])),
    seed=st.integers(0, 2**32),
)
def test_against_cryptography(hkdf, count, secret, salt, info, size, seed):
    """Lengths around 55 and 64 need another block of SHA-256."""
    draw = random.Random(seed)
    secrets, infos = ([draw.randbytes(n) for _ in range(count)] for n in (secret, info))
    expected = [
        HKDF(SHA256(), size, salt, info).derive(secret) if size else b""
        for secret, info in zip(secrets, infos, strict=True)
    ]
    assert run(hkdf, secrets, salt, infos, size) == expected


@every
def test_rejects_wrong_shapes_dtypes_and_strides(hkdf):
    for secrets, salt, infos, out in (
        ((3, 32), 32, (2, 5), (3, 16)),
        ((3, 32), 32, (3, 5), (2, 16)),
        ((3, 32), 65, (3, 5), (3, 16)),
        ((3, 32), 32, (3, 5), (3, 8161)),
        ((3,), 32, (3, 5), (3, 16)),
    ):
        arrays = [np.zeros(shape, np.uint8) for shape in (secrets, infos, out)]
        with pytest.raises(ValueError, match=r"."):
            hkdf(arrays[0], bytes(salt), arrays[1], arrays[2])
    good, written = np.zeros((4, 32), np.uint8), np.zeros((4, 16), np.uint8)
    for wrong in (good.astype(np.int8), good[:, ::2], np.asfortranarray(good)):
        with pytest.raises(ValueError, match=r"."):
            hkdf(wrong, b"", good, written)
