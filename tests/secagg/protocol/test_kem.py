"""ML-KEM-768 by `cryptography`, as suite hybrid uses it; see also the vectors."""

from __future__ import annotations

import copy
import os
import pickle

import pytest

from secagg import LocalProtocolError
from secagg.protocol import kem

SEED = bytes(range(64))


def with_coefficient(public: bytes, at: int, value: int) -> bytes:
    """The key with another coefficient: 12 bits each, 3 × 256 of them, then 32 bytes."""
    number = int.from_bytes(public, "little")
    number += value - (number >> 12 * at & 0xFFF) << 12 * at
    return number.to_bytes(len(public), "little")


def test_check07_keys_with_reduced_coefficients_alone_are_valid() -> None:
    """FIPS 203, 7.2: any other encoding of a key would be a second name of it."""
    public = kem.KemPair(SEED).public
    assert kem.is_valid(public)
    for at in (0, 1, 255, 256, 767):
        assert kem.is_valid(with_coefficient(public, at, 3328))
        for value in (3329, 3330, 4095):
            wrong = with_coefficient(public, at, value)
            assert not kem.is_valid(wrong)
            with pytest.raises(ValueError):  # noqa: PT011
                kem.encapsulate(wrong)
    for wrong in (b"", public[:-1], public + b"\0"):
        assert not kem.is_valid(wrong)


def test_pair_opens_what_was_encapsulated_to_it() -> None:
    pair = kem.KemPair(SEED)
    secret, ciphertext = kem.encapsulate(pair.public)
    assert (len(secret), len(ciphertext)) == (kem.SECRET_BYTES, kem.CIPHERTEXT_BYTES)
    assert pair.decapsulate(ciphertext) == secret
    flipped = bytes([ciphertext[0] ^ 1]) + ciphertext[1:]
    assert pair.decapsulate(flipped) != secret
    assert kem.KemPair(os.urandom(64)).decapsulate(ciphertext) != secret
    assert kem.encapsulate(pair.public) != (secret, ciphertext)


def test_check29_pair_is_not_printed_pickled_or_copied() -> None:
    pair = kem.KemPair(SEED)
    assert pair.seed == SEED
    assert SEED[:8].hex() not in repr(pair)
    assert copy.deepcopy(pair) is pair
    with pytest.raises(LocalProtocolError):
        pickle.dumps(pair)
