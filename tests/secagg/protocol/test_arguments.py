"""An argument of the wrong type raises an error with its name at the first call."""

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
POLICY = r"^policy .*secagg\.ClientPolicy.* "
PARAMS = r"^params .*secagg\.RoundParams.* "
JOURNAL = r"^journal .*Journal\.create .*Journal\.open .* "
DROPOUTS = "^dropouts .* "
SEQUENCE = " .* "


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Server(P, journal="a"), JOURNAL + "str"),
        (lambda: Server(P, journal=Journal), JOURNAL + "class Journal"),
        (lambda: Server(P, journal=""), JOURNAL + "str"),
        (lambda: Server.resume("a"), JOURNAL + "str"),
        (lambda: Server.resume(None), JOURNAL + "NoneType"),
        (lambda: Server("x"), PARAMS + "str"),
        (lambda: Client(1, "x"), PARAMS + "str"),
        (lambda: Client(1, P, policy=5), POLICY + "int"),
        (lambda: Client(1, P, policy=0), POLICY + "int"),
        (lambda: Client(1, P, policy=ClientPolicy), POLICY + "class ClientPolicy"),
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
def test_arguments_of_the_wrong_type_raise_with_their_name(
    call: Callable[[], object], named: str
) -> None:
    with pytest.raises(ParameterError, match=named):
        call()


@pytest.mark.parametrize("make", [Journal.create, Journal.open])
def test_journal_requires_a_path_and_parameters(
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
        (lambda: PublicKey("n"), "^n .*int.* str$"),
        (lambda: PublicKey(5.0), "^n .*int.* float$"),
        (lambda: PublicKey(15, "h", 448), "^h .*int.* str$"),
        (lambda: PublicKey.from_bytes("key"), "key .*bytes.* str$"),
        (lambda: PrivateKey("p", 3), "^p .*int.* str$"),
        (lambda: PrivateKey(3, None), "^q .*int.* NoneType$"),
        (lambda: PrivateKey.from_bytes(None), "key .*bytes.* NoneType$"),
        (lambda: keypair().public_key.load("c", 1), "message .*bytes.* str$"),
        (lambda: keypair().public_key.load_ints(["c"]), "^ciphertext 0 .*int.* str$"),
        (lambda: keypair().public_key.load_vector(5, None), "message .*bytes.* int$"),
        (
            lambda: keypair().decrypt([1]),
            r"^ciphertexts .*Ciphertexts.*\.ciphertexts.* list$",
        ),
    ],
)
def test_wrong_type_is_named_under_encryption(call: Callable[[], object], named: str) -> None:
    """A wrong type under encryption is rejected with the argument's name."""
    with pytest.raises(ParameterError, match=named):
        call()


def test_messages_may_be_any_bytes_like_object() -> None:
    public = keypair().public_key
    data = public.encrypt([7]).to_bytes()
    for kind in (bytearray, memoryview):
        assert keypair().decrypt(public.load(kind(data), 1)) == [7]
        assert PublicKey.from_bytes(kind(public.to_bytes()), allow_insecure=True).n == public.n
