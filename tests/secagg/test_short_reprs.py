"""A ``repr`` has some lines, whatever keys and vectors the object has."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from paillier_keys import keypair
from secagg import FixedPoint, Identity, Packing, Registry
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.oneshot.helper_files import HelperEntry
from secagg.oneshot.suites import SECRET_BYTES, BoxKey, SuiteName

MOST = 1000
LONG = bytes(range(64))


def helpers(suite: SuiteName, count: int = 16) -> list[tuple[bytes, bytes]]:
    secrets = [os.urandom(SECRET_BYTES[suite]) for _ in range(count)]
    return [(BoxKey(suite, one).public, Identity.generate().public) for one in secrets]


def one_shot(suite: SuiteName) -> OneShotParams:
    pairs = helpers(suite)
    return OneShotParams.suggest(9, 5, FixedPoint(1.0), helpers=pairs, session=LONG)


PACKING = Packing(encoding=FixedPoint(8.0), length=500, summands=5, session=LONG)
OBJECTS: dict[str, Callable[[], object]] = {
    "OneShotParams": lambda: one_shot("x25519"),
    "OneShotParams, hybrid": lambda: one_shot("hybrid"),
    "OneShotPolicy": lambda: OneShotPolicy(
        helpers=frozenset(key for _, key in helpers("x25519"))
    ),
    "HelperEntry": lambda: HelperEntry("https://host", "hybrid", *helpers("hybrid", 1)[0]),
    "Registry": lambda: Registry({u: Identity.generate().public for u in range(100)}),
    "Ciphertexts": lambda: keypair().public_key.encrypt(range(20)),
    "EncryptedVector": lambda: keypair().public_key.encrypt_vector(np.ones(500), PACKING),
    "DecryptedSum": lambda: keypair().decrypt_vector(
        keypair().public_key.encrypt_vector(np.ones(500), PACKING)
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_repr_is_short(name: str) -> None:
    shown = repr(OBJECTS[name]())
    assert len(shown) <= MOST, shown
    assert name.split(",")[0] in shown
