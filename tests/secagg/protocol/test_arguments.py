"""An argument of the wrong type raises an error with its name at the first call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness import make_params
from paillier_keys import keypair
from secagg import Client, ClientPolicy, Journal, ParameterError, Server, simulate_round
from secagg.paillier import PrivateKey, PublicKey

P = make_params(3)
VECTORS = [np.zeros(4)] * 3
WRONG: dict[str, list[Callable[[], object]]] = {
    "journal": [
        lambda: Server(P, journal="a"),
        lambda: Server(P, journal=Journal),
        lambda: Server.resume(None),
    ],
    "params": [
        lambda: Server("x"),
        lambda: Client(1, "x"),
        lambda: simulate_round(VECTORS, None),
    ],
    "policy": [
        lambda: Client(1, P, policy=0),
        lambda: Client(1, P, policy=ClientPolicy),
        lambda: simulate_round(VECTORS, P, policy=5),
    ],
    "vectors": [
        lambda: simulate_round(None, P),
        lambda: simulate_round(iter(VECTORS), P),
        lambda: simulate_round({1, 2, 3}, P),
        lambda: simulate_round(np.array(1.0), P),
    ],
    "dropouts": [lambda: simulate_round(VECTORS, P, dropouts=[])],
    "weights": [lambda: simulate_round(VECTORS, P, weights=5)],
    "key": [lambda: PublicKey.from_bytes("key"), lambda: PrivateKey.from_bytes(None)],
    "message": [
        lambda: keypair().public_key.load("c", 1),
        lambda: keypair().public_key.load_vector(5, None),
    ],
    "ciphertext": [lambda: keypair().public_key.load_ints(["c"])],
    "ciphertexts": [lambda: keypair().decrypt([1])],
}
"""Calls with an argument of the wrong type, by the name that the error has."""


@pytest.mark.parametrize("name", WRONG)
def test_argument_of_the_wrong_type_is_named(name: str) -> None:
    for call in WRONG[name]:
        with pytest.raises(ParameterError, match=rf"\b{name}\b"):
            call()


@pytest.mark.parametrize("make", [Journal.create, Journal.open])
def test_journal_requires_a_path_and_parameters(make, ram_path):
    for given in ((ram_path / "round", None), (None, P)):
        with pytest.raises(ParameterError):
            make(*given)
    assert list(ram_path.iterdir()) == []


def test_messages_may_be_any_bytes_like_object() -> None:
    public = keypair().public_key
    data = public.encrypt([7]).to_bytes()
    for kind in (bytearray, memoryview):
        assert keypair().decrypt(public.load(kind(data), 1)) == [7]
        assert PublicKey.from_bytes(kind(public.to_bytes()), allow_insecure=True).n == public.n
