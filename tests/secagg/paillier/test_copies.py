"""Copies and pickles of encrypted values and keys have all that the original has."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial

import numpy as np
import pytest

from paillier_keys import foreign, keypair
from secagg import Bounds, ClippingWarning, FixedPoint, Integers, LocalProtocolError
from secagg.paillier import Ciphertexts, EncryptedVector, Packing
from threshold_keys import dealing

KEY = keypair()
PUBLIC = KEY.public_key
PACKING = Packing(encoding=FixedPoint(8.0), length=3, summands=5)
WEIGHTED = Packing(encoding=Integers(9), length=3, summands=5, max_weight=7, session=b"s")
FLOATS, COUNTS = np.ones(3), np.arange(3)
THRESHOLD, SHARES = dealing(3, 2)
EMPTY = THRESHOLD.public_key.encrypt([])


def vector() -> EncryptedVector:
    with pytest.warns(ClippingWarning):
        return PUBLIC.encrypt_vector(10 * FLOATS, PACKING)


def received(largest: int | None = None) -> Ciphertexts:
    return PUBLIC.load(PUBLIC.encrypt([3, -4]).to_bytes(), 2, largest)


WHOLE: dict[str, Callable[[], object]] = {
    "received": received,
    "received with a bound, summed": lambda: received(2**40) + received(2**30),
    "vector": vector,
    "vector of the key's owner": lambda: KEY.encrypt_vector(COUNTS, WEIGHTED, 3),
    "decrypted sum": lambda: KEY.decrypt_vector(KEY.encrypt_vector(COUNTS, WEIGHTED, 3)),
    "public key": lambda: PUBLIC,
    "public key, textbook": lambda: foreign().public_key,
    "threshold key": lambda: THRESHOLD,
    "partial decryption": lambda: SHARES[0].decrypt_partially(
        THRESHOLD.public_key.encrypt([5])
    ),
    "bounds": lambda: Bounds(FixedPoint(8.0), 7, metrics={"loss": 3.0}),
}
OWN: dict[str, Callable[[], Ciphertexts]] = {
    "encrypted": lambda: PUBLIC.encrypt([3, -4]),
    "none": lambda: PUBLIC.encrypt([]),
    "sum with received": lambda: received(9) + PUBLIC.encrypt([5, 6]),
    "multiple": lambda: PUBLIC.encrypt([3, -4]) * 7,
    "negated": lambda: -PUBLIC.encrypt([3, -4]),
    "blinded again": lambda: PUBLIC.rerandomise(PUBLIC.encrypt([3, -4])),
}
COPIES = (copy.copy, copy.deepcopy)
PICKLES = [partial(pickle.dumps, protocol=p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]


def content(one: object) -> object:
    """Return all fields of a dataclass, arrays as lists, and what others compare by."""
    if is_dataclass(one):
        return type(one), {f.name: content(getattr(one, f.name)) for f in fields(one)}
    return one.tolist() if isinstance(one, np.ndarray) else one


@pytest.mark.parametrize("name", WHOLE)
def test_copy_has_all_that_the_original_has(name: str) -> None:
    original = WHOLE[name]()
    for way in COPIES:
        assert content(way(original)) == content(original)
    for dump in PICKLES:
        assert content(pickle.loads(dump(original))) == content(original)  # noqa: S301


@pytest.mark.parametrize("name", OWN)
def test_own_ciphertexts_are_copied_with_their_bound_and_not_pickled(name: str) -> None:
    """A pickle would show the largest message; whether it raises depends on no message."""
    original = OWN[name]()
    for way in COPIES:
        assert content(way(original)) == content(original)
    for dump in PICKLES:
        with pytest.raises(LocalProtocolError):
            dump(original)


def test_deep_copy_shares_no_memory() -> None:
    original = received(9)
    assert not np.shares_memory(copy.deepcopy(original).batch, original.batch)


def test_bound_of_a_vector_is_that_of_its_packing() -> None:
    for owner in (KEY, PUBLIC):
        small = owner.encrypt_vector(np.zeros(3), PACKING).ciphertexts
        assert small.largest == PACKING.largest(PUBLIC.bits)
