"""A client that clips elements of its own vector hears of it at every door."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import secagg
from oneshot_parties import LENIENT
from paillier_keys import keypair
from secagg import ClippingWarning, FixedPoint, Identity, Packing, ParameterError
from secagg.oneshot import OneShotParams, report

KEY = keypair()
VECTORS = {
    "one": [8.5, 0.0, 0.0],
    "negative": [0.0, -9.0, 0.0],
    "all": [100.0, 100.0, 100.0],
    "just beyond": [np.nextafter(8.0, 9.0), 0.0, 0.0],
    "huge": [0.0, 1e300, -1e300],
    "last": [1.0, 2.0, 8.001],
    "binary32": np.array([0, 9, 0], np.float32),
    "strided": np.array([9.0, 0.0, 0.0, 0.0, 0.0])[::2],
    "big-endian": np.array([9.0, 0.0, 0.0], ">f8"),
    "weight": [0.0, -8.5, 8.5],
}


def one_shot(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    keys = tuple(
        (
            X25519PrivateKey.generate().public_key().public_bytes_raw(),
            Identity(os.urandom(32)).public,
        )
        for _ in range(2)
    )
    params = OneShotParams(
        n_clients=5,
        length=3,
        encoding=encoding,
        helpers=keys,
        threshold=2,
        min_clients=3,
        security="semi-honest",
        suite="x25519",
        session=b"survey",
    )
    return lambda x: report(x, params, 1, policy=LENIENT)


def paillier(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    packing = Packing(encoding=encoding, length=3, summands=5)
    return lambda x: KEY.public_key.encrypt_vector(x, packing)


def owner(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    packing = Packing(encoding=encoding, length=3, summands=5)
    return lambda x: KEY.encrypt_vector(x, packing)


def simulated(encoding: FixedPoint) -> Callable[[np.ndarray], object]:
    params = secagg.RoundParams(n_clients=3, threshold=2, length=3, encoding=encoding)
    return lambda x: secagg.simulate_round([x, np.zeros(3), np.zeros(3)], params)


DOORS = [one_shot, paillier, owner, simulated]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", VECTORS)
def test_clipped_vector_warns_at_the_callers_line(
    name: str, door: Callable[[FixedPoint], Callable[[np.ndarray], object]]
) -> None:
    sent = door(FixedPoint(8.0))
    with pytest.warns(ClippingWarning) as caught:
        sent(np.asarray(VECTORS[name]))
    assert [one.filename for one in caught] == [__file__]
    # an application that wants an error has one before anything is sent
    with warnings.catch_warnings(action="error"), pytest.raises(ClippingWarning):
        sent(np.asarray(VECTORS[name]))
    refusing = door(FixedPoint(8.0, beyond_clip="refuse"))
    with pytest.raises(ParameterError, match="clip"):
        refusing(np.asarray(VECTORS[name]))


@pytest.mark.parametrize("door", DOORS)
def test_vector_within_the_clip_does_not_warn(
    door: Callable[[FixedPoint], Callable[[np.ndarray], object]],
) -> None:
    assert door(FixedPoint(8.0))(np.array([8.0, -8.0, 0.0])) is not None
