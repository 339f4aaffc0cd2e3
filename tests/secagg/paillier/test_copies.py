"""Copies and pickles of encrypted values and keys have all that the original has."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache

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


def vector() -> EncryptedVector:
    return PUBLIC.encrypt_vector(FLOATS, PACKING)


def weighted() -> EncryptedVector:
    return KEY.encrypt_vector(COUNTS, WEIGHTED, 3)


def clipped() -> EncryptedVector:
    with pytest.warns(ClippingWarning):
        return PUBLIC.encrypt_vector(10 * FLOATS, PACKING)


def received(largest: int | None = None) -> Ciphertexts:
    return PUBLIC.load(PUBLIC.encrypt([3, -4]).to_bytes(), 2, largest)


def partial() -> object:
    ciphertexts = THRESHOLD.public_key.encrypt([5])
    return SHARES[0].decrypt_partially(ciphertexts)


WHOLE: dict[str, Callable[[], object]] = {
    "received": received,
    "received with a bound": lambda: received(2**40),
    "received, summed": lambda: received(2**40) + received(2**30),
    "received, multiplied": lambda: received(9) * -3,
    "received, negated": lambda: -received(9),
    "received, blinded again": lambda: PUBLIC.rerandomise(received(9)),
    "received as integers": lambda: PUBLIC.load_ints(PUBLIC.encrypt([1]).to_ints(), 9),
    "vector": vector,
    "vector's ciphertexts": lambda: vector().ciphertexts,
    "clipped vector": clipped,
    "vector of the key's owner": weighted,
    "sum of vectors": lambda: vector() + vector(),
    "difference of vectors": lambda: vector() - vector(),
    "multiple of a vector": lambda: weighted() * 3,
    "received vector": lambda: PUBLIC.load_vector(vector().to_bytes(), PACKING),
    "sum's ciphertexts": lambda: (vector() + vector()).ciphertexts,
    "decrypted sum": lambda: KEY.decrypt_vector(weighted() + weighted()),
    "public key": lambda: PUBLIC,
    "public key, textbook": lambda: foreign().public_key,
    "threshold key": lambda: THRESHOLD,
    "partial decryption": partial,
    "packing": lambda: PACKING,
    "packing with weights": lambda: WEIGHTED,
    "fixed point": lambda: FixedPoint(2.0, 20, "nearest", beyond_clip="refuse"),
    "integers": lambda: Integers(9),
    "suggestion": lambda: FixedPoint.suggest(FLOATS, 9),
    "bounds": lambda: Bounds(FixedPoint(8.0), 7, metrics={"loss": 3.0}),
}
OWN: dict[str, Callable[[], Ciphertexts]] = {
    "encrypted": lambda: PUBLIC.encrypt([3, -4]),
    "one": lambda: PUBLIC.encrypt([0]),
    "none": lambda: PUBLIC.encrypt([]),
    "sum": lambda: PUBLIC.encrypt([3, -4]) + PUBLIC.encrypt([5, 6]),
    "sum with received": lambda: received(9) + PUBLIC.encrypt([5, 6]),
    "sum of received with it": lambda: PUBLIC.encrypt([5, 6]) + received(9),
    "difference": lambda: received(9) - PUBLIC.encrypt([5, 6]),
    "multiple": lambda: PUBLIC.encrypt([3, -4]) * 7,
    "negated": lambda: -PUBLIC.encrypt([3, -4]),
    "blinded again": lambda: PUBLIC.rerandomise(PUBLIC.encrypt([3, -4])),
    "Python's sum": lambda: sum([PUBLIC.encrypt([1]), PUBLIC.encrypt([2])]),
}
COPIES: dict[str, Callable[[object], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy in a list": lambda one: copy.deepcopy([one])[0],
}
PICKLES = {
    f"pickle {protocol}": lambda one, protocol=protocol: pickle.loads(  # noqa: S301
        pickle.dumps(one, protocol)
    )
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
}


@cache
def made(name: str) -> object:
    return (WHOLE | OWN)[name]()


def content(one: object) -> object:
    """Return all fields of a dataclass, arrays as lists, and what others compare by."""
    if is_dataclass(one):
        return type(one), {f.name: content(getattr(one, f.name)) for f in fields(one)}
    return one.tolist() if isinstance(one, np.ndarray) else one


@pytest.mark.parametrize("way", COPIES | PICKLES)
@pytest.mark.parametrize("name", WHOLE)
def test_copy_has_all_that_the_original_has(name: str, way: str) -> None:
    original = made(name)
    assert content((COPIES | PICKLES)[way](original)) == content(original)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", OWN)
def test_copy_of_own_ciphertexts_has_their_bound(name: str, way: str) -> None:
    original = made(name)
    copied = COPIES[way](original)
    assert content(copied) == content(original)
    assert KEY.decrypt(copied * 3) == [3 * m for m in KEY.decrypt(original)]  # type: ignore[operator]


@pytest.mark.parametrize("way", PICKLES)
@pytest.mark.parametrize("name", OWN)
def test_own_ciphertexts_are_not_pickled(name: str, way: str) -> None:
    """A pickle would show the largest message; whether it raises depends on no message."""
    with pytest.raises(LocalProtocolError, match=r"to_bytes.*largest="):
        PICKLES[way](made(name))


def test_pickled_vectors_can_be_added_and_decrypted() -> None:
    total = pickle.loads(pickle.dumps([vector(), weighted()]))  # noqa: S301
    assert KEY.decrypt_vector(total[0] + vector()).sum.tolist() == [2.0] * 3
    assert KEY.decrypt_vector(sum([total[1], weighted()])).weight == 6


def test_deep_copy_shares_no_memory() -> None:
    original = received(9)
    assert not np.shares_memory(copy.deepcopy(original).batch, original.batch)


def test_bound_of_a_vector_is_that_of_its_packing() -> None:
    for owner in (KEY, PUBLIC):
        small = owner.encrypt_vector(np.zeros(3), PACKING).ciphertexts
        assert small.largest == PACKING.largest(PUBLIC.bits)
