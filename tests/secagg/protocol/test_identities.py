"""Identities and the registry: keys that are rejected, with the reasons."""

from __future__ import annotations

import tracemalloc
from hashlib import sha512

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from harness import make_identity
from secagg import Identity, ParameterError, Registry
from secagg.protocol import identities, keys
from secagg.protocol.key_files import registry_from_json, registry_to_json

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
"""Order of the base point."""


def test_check21_list_of_low_order_points_is_complete() -> None:
    """With y = (u − 1) / (u + 1) from the list of u (RFC 7748, 4.1); u = −1 is the twist's."""
    found = {(u - 1) * pow(u + 1, -1, P) % P for u in keys._LOW_ORDER - {P - 1}}
    assert found | {1} == identities._SMALL_ORDER


@pytest.mark.parametrize("sign", [0, 1 << 255])
@pytest.mark.parametrize("y", [*sorted(identities._SMALL_ORDER), P, P + 1, 2**255 - 1])
def test_check21_forgeable_key_is_rejected(y: int, sign: int) -> None:
    """Zero could be the placeholder for a client without a key."""
    key = (y | sign).to_bytes(32, "little")
    with pytest.raises(ParameterError, match="client 5"):
        Registry({1: make_identity(1).public, 5: key})


def test_check24_low_order_forgery_never_verifies() -> None:
    """R = S·B − h·A with A of low order: a forgery that such a key would accept."""
    registry = Registry({1: make_identity(1).public})
    forged = (1).to_bytes(32, "little") + bytes(32)
    assert not registry.verifies(1, b"content", forged)
    assert not registry.verifies(2, b"content", make_identity(2).sign(b"content"))


@pytest.mark.parametrize("order", [1, 2])
def test_check24_signature_that_needs_the_cofactor_never_verifies(order: int) -> None:
    """8 S B = 8 R + 8 k A also if R has a part of order 2; then S B is not R + k A."""
    (a, key), (r, point) = (
        (scalar_of(seed), Identity(seed).public) for seed in (bytes(32), bytes(31) + b"\1")
    )
    if order == 2:  # (x, y) + (0, −1) = (−x, −y)
        sign, y = divmod(int.from_bytes(point, "little"), 1 << 255)
        point = ((1 - sign) << 255 | P - y).to_bytes(32, "little")
    k = int.from_bytes(sha512(point + key + b"content").digest(), "little")
    signature = point + ((r + k * a) % L).to_bytes(32, "little")
    assert Registry({1: key}).verifies(1, b"content", signature) == (order == 1)


def scalar_of(seed: bytes) -> int:
    """The private scalar of RFC 8032, 5.1.5."""
    number = int.from_bytes(sha512(seed).digest()[:32], "little")
    return number & ((1 << 254) - 8) | 1 << 254


def test_check21_key_of_two_clients_is_rejected_with_their_ids() -> None:
    keys = {u: make_identity(u).public for u in (5, 3, 2**64 - 1, 8)}
    assert dict(Registry(keys)) == keys
    with pytest.raises(ParameterError, match=rf"\b3\b.*\b{2**64 - 1}\b"):
        Registry(keys | {3: keys[2**64 - 1]})


@pytest.mark.parametrize("keys", [None, [1], {-1: bytes(32)}, {1: bytes(31)}, {1: "x" * 32}])
def test_registry_of_other_types_is_rejected(keys: object) -> None:
    with pytest.raises(ParameterError):
        Registry(keys)


@pytest.mark.parametrize("client", [-1, 2**64, None, 4])
def test_client_without_a_key_is_unknown(client: object) -> None:
    registry = Registry({3: make_identity(3).public})
    assert client not in registry
    with pytest.raises(KeyError):
        registry[client]  # type: ignore[index]


def test_identity_is_stored_in_pem() -> None:
    identity = make_identity(3)
    again = Identity.from_pem(identity.to_pem())
    assert again.public == identity.public
    key = load_pem_private_key(identity.to_pem(), None)  # as any other program reads it
    assert isinstance(key, Ed25519PrivateKey)
    assert key.public_key().public_bytes_raw() == identity.public
    with pytest.raises(ParameterError):
        Identity.from_pem(identity.to_pem()[:60])
    other = X25519PrivateKey.generate()
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(ParameterError):
        Identity.from_pem(pem)


def test_registry_is_read_from_json() -> None:
    keys = {"Zoë": make_identity(1).public, 7: make_identity(2).public}
    for text in (registry_to_json(keys), registry_to_json(keys).encode()):
        assert dict(Registry.from_json(text)) == dict(Registry(keys))
    assert Registry.from_json("{}") == {}


KEY = make_identity(1).public.hex()
WRONG: dict[str, str | bytes] = {
    "no quotes": '{"a": "00",\nb}',
    "array": "[]",
    "bytes": b"\xff",
    "nested": f'{{"bob": {{"a": "{KEY}"}}}}',
    "short": f'{{"alice": "{KEY}", "bob": "{KEY[2:]}"}}',
    "letters": '{"bob": "' + "x" * 64 + '"}',
    "twice": f'{{"bob": "{KEY}", "bob": "{KEY}"}}',
    "one key": f'{{"alice": "{KEY}", "bob": "{KEY}"}}',
}


@pytest.mark.parametrize("name", WRONG)
def test_registry_that_is_wrong_is_rejected(name: str) -> None:
    text = WRONG[name]
    for given in (text, text.encode() if isinstance(text, str) else text):
        with pytest.raises(ParameterError):
            Registry.from_json(given)


@pytest.mark.parametrize(
    "text", ['{"bob": "%s"}x', 'x{"bob": "%s"}', '{"bob": "%s",}', '{"bob": "%s"']
)
def test_registry_with_more_or_less_than_an_object_is_rejected(text: str) -> None:
    with pytest.raises(ParameterError):
        Registry.from_json((text % KEY).encode())


def test_registry_is_read_without_the_memory_of_a_json_parser() -> None:
    text = registry_to_json(
        {u: bytes([1]) + u.to_bytes(31, "big") for u in range(5000)}
    ).encode()
    tracemalloc.start()
    try:
        registry_from_json(text)
        assert tracemalloc.get_traced_memory()[1] < 2.8 * len(text)
    finally:
        tracemalloc.stop()
