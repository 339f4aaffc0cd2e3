"""Project Wycheproof's vectors through the library's own use of each primitive.

tests/vectors/wycheproof/README.md has their source, and what the library rejects in addition.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import independent_mlkem
from harness import opening_of, seal_of, secret_of
from secagg import Registry
from secagg.protocol import kem, keys, sealing
from vectors_reader import FOLDER, b

SOURCE = FOLDER / "wycheproof"
P = 2**255 - 19
Case = dict[str, Any]


def cases(name: str) -> list[tuple[Case, Case]]:
    """Pairs (group, case) of a file."""
    read = json.loads((SOURCE / f"{name}_test.json").read_text(encoding="ascii"))
    return [(group, case) for group in read["testGroups"] for case in group["tests"]]


def test_x25519_secret_or_none_for_all_518_cases() -> None:
    """44 of them, which RFC 7748 accepts, lead to no secret: not canonical, or zero secret."""
    unusable = 0
    for _, case in cases("x25519"):
        public = b(case["public"])
        canonical = int.from_bytes(public, "little") < P
        expected = b(case["shared"]) if canonical and any(b(case["shared"])) else None
        assert secret_of(keys.KeyPair(b(case["private"])), public) == expected, case["tcId"]
        assert keys.is_usable(public) == (expected is not None), case["tcId"]
        unusable += expected is None
    assert (len(cases("x25519")), unusable) == (518, 44)


def test_ed25519_verification_of_all_151_cases() -> None:
    """Each public key is canonical and not of low order, so the registry takes it."""
    accepted = 0
    for group, case in cases("ed25519"):
        registry = Registry({7: b(group["publicKey"]["pk"])})
        verified = registry.verifies(7, b(case["msg"]), b(case["sig"]))
        assert verified == (case["result"] == "valid"), case["tcId"]
        accepted += verified
    assert (len(cases("ed25519")), accepted) == (151, 88)


def test_ml_kem_decapsulates_all_53_cases_or_rejects_their_lengths() -> None:
    opened = 0
    for _, case in cases("mlkem_768"):
        seed, ciphertext = b(case["seed"]), b(case["c"])
        if case["result"] == "valid":
            pair = kem.KemPair(seed)
            assert pair.public == b(case["ek"]), case["tcId"]
            assert pair.decapsulate(ciphertext) == b(case["K"]), case["tcId"]
            opened += 1
            continue
        with pytest.raises(ValueError):  # noqa: PT011
            kem.KemPair(seed).decapsulate(ciphertext)
    assert (len(cases("mlkem_768")), opened) == (53, 33)


def test_ml_kem_encapsulation_keys_of_all_50_cases() -> None:
    """The randomness is given to the code of the vectors alone."""
    accepted = 0
    for _, case in cases("mlkem_768_encaps"):
        public, valid = b(case["ek"]), case["result"] == "valid"
        assert kem.is_valid(public) == valid, case["tcId"]
        if len(public) == 1184:
            assert independent_mlkem.is_valid(public) == valid, case["tcId"]
        if valid:
            made = independent_mlkem.encapsulate(public, b(case["m"]))
            assert made == (b(case["K"]), b(case["c"])), case["tcId"]
        accepted += valid
    assert (len(cases("mlkem_768_encaps")), accepted) == (50, 23)


def test_aes_gcm_seals_and_opens_all_66_cases_of_its_sizes(monkeypatch):
    """The vector's nonce and associated data stand in for the library's fixed ones."""
    opened = 0
    for _, case in cases("aes_gcm"):
        nonce, data = b(case["iv"]), b(case["aad"])
        monkeypatch.setattr(sealing, "_NONCE", nonce)
        data = np.frombuffer(data, np.uint8).reshape(1, -1)
        monkeypatch.setattr(sealing, "_associated_data", lambda *_, data=data: data)
        key, sealed = b(case["key"]), b(case["ct"]) + b(case["tag"])
        message = opening_of(key, bytes(32), 1, 2, sealed)
        if case["result"] == "valid":
            assert message == b(case["msg"]), case["tcId"]
            assert seal_of(key, bytes(32), 1, 2, message) == sealed, case["tcId"]
        else:
            assert message is None, case["tcId"]
        opened += message is not None
    assert (len(cases("aes_gcm")), opened) == (66, 39)
