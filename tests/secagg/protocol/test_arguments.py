"""An argument of the wrong type is refused by name, wherever it is given first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness import make_params
from paillier_keys import keypair
from secagg import Client, ClientPolicy, Journal, ParameterError, Server, simulate_round
from secagg.paillier import PrivateKey, PublicKey

P = make_params(3)
VECTORS = [np.zeros(4)] * 3
POLICY = "policy must be a secagg.ClientPolicy, not "
PARAMS = "params must be a secagg.RoundParams, not "
JOURNAL = r"journal must be a secagg.Journal \(Journal.create or Journal.open makes one\), not "
DROPOUTS = "dropouts must be a mapping of client id to phase, not "
SEQUENCE = " must be a mapping by client id or a sequence, not "


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Server(P, journal="a"), JOURNAL + "str"),
        (lambda: Server(P, journal=Journal), JOURNAL + "the class Journal"),
        (lambda: Server(P, journal=""), JOURNAL + "str"),
        (lambda: Server.resume("a"), JOURNAL + "str"),
        (lambda: Server.resume(None), JOURNAL + "NoneType"),
        (lambda: Server("x"), PARAMS + "str"),
        (lambda: Client(1, "x"), PARAMS + "str"),
        (lambda: Client(1, P, policy=5), POLICY + "int"),
        (lambda: Client(1, P, policy=0), POLICY + "int"),
        (lambda: Client(1, P, policy=ClientPolicy), POLICY + "the class ClientPolicy"),
        (lambda: simulate_round(None, P), "vectors" + SEQUENCE + "NoneType"),
        (lambda: simulate_round(iter(VECTORS), P), "vectors" + SEQUENCE),
        (lambda: simulate_round({1, 2, 3}, P), "vectors" + SEQUENCE + "set"),
        (lambda: simulate_round(np.array(1.0), P), "vectors" + SEQUENCE + "ndarray"),
        (lambda: simulate_round(VECTORS, None), PARAMS + "NoneType"),
        (lambda: simulate_round(VECTORS, P, policy=5), POLICY + "int"),
        (lambda: simulate_round(VECTORS, P, dropouts=[1]), DROPOUTS + "list"),
        (lambda: simulate_round(VECTORS, P, dropouts=[]), DROPOUTS + "list"),
        (lambda: simulate_round(VECTORS, P, weights=5), "weights" + SEQUENCE + "int"),
    ],
)
def test_what_is_of_the_wrong_type_is_refused_by_name(
    call: Callable[[], object], named: str
) -> None:
    with pytest.raises(ParameterError, match=named):
        call()


@pytest.mark.parametrize("make", [Journal.create, Journal.open])
def test_a_journal_wants_a_path_and_parameters(
    make: Callable[..., Journal], ram_path: Path
) -> None:
    with pytest.raises(ParameterError, match=PARAMS + "NoneType"):
        make(ram_path / "round", None)
    with pytest.raises(ParameterError, match=r"path .*NoneType"):
        make(None, P)
    assert list(ram_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: PublicKey("n"), "n must be an int, not str"),
        (lambda: PublicKey(5.0), "n must be an int, not float"),
        (lambda: PublicKey(15, "h", 448), "h must be an int, not str"),
        (lambda: PublicKey.from_bytes("key"), "a key must be bytes, not str"),
        (lambda: PrivateKey("p", 3), "p must be an int, not str"),
        (lambda: PrivateKey(3, None), "q must be an int, not NoneType"),
        (lambda: PrivateKey.from_bytes(None), "a key must be bytes, not NoneType"),
        (lambda: keypair().public_key.load("c", 1), "a message must be bytes, not str"),
        (lambda: keypair().public_key.load_ints(["c"]), "ciphertext 0 must be an int, not str"),
        (lambda: keypair().public_key.load_vector(5, None), "a message must be bytes, not int"),
        (
            lambda: keypair().decrypt([1]),
            "ciphertexts must be Ciphertexts, a vector's .ciphertexts, not list",
        ),
    ],
)
def test_wrong_type_is_named_under_encryption(call: Callable[[], object], named: str) -> None:
    """What is of the wrong type is refused by name under encryption."""
    with pytest.raises(ParameterError, match=named):
        call()


def test_what_a_transport_delivers_may_be_any_kind_of_bytes() -> None:
    public = keypair().public_key
    data = public.encrypt([7]).to_bytes()
    for kind in (bytearray, memoryview):
        assert keypair().decrypt(public.load(kind(data), 1)) == [7]
        assert PublicKey.from_bytes(kind(public.to_bytes()), allow_insecure=True).n == public.n
