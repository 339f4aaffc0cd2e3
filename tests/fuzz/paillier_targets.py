"""Fuzz targets of Paillier: keys, ciphertexts and packed vectors, from the golden vectors on.

The first byte selects decoder and world, the rest is its input. Bytes that are
taken have one spelling, and an encrypted vector that is taken is also decrypted: its sum stays
within what its header allows, or is rejected by a check of docs/paillier.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from paillier_keys import Stream
from secagg import FixedPoint, Integers, Packing, ParameterError, RemoteProtocolError
from secagg.paillier import EncryptedVector, PrivateKey, PublicKey
from vectors_reader import b, load

VECTORS = load("paillier")
KEYS = [
    PrivateKey.from_bytes(b(key["private"]), allow_insecure=True)
    for key in VECTORS["keys"]
    if key["name"] in ("half", "foreign, 64")
]
PACKINGS = (
    Packing(encoding=FixedPoint(8.0, 16, rounding="nearest"), length=20, summands=10),
    Packing(encoding=FixedPoint(2.0, 2), length=9, summands=10, max_weight=10),
    Packing(encoding=Integers((1 << 62) - 1), length=3, summands=1),
)
WORLDS = tuple((key, packing) for key in KEYS for packing in PACKINGS)
ARRIVING = {"length", "version", "key", "packing", "summands", "ciphertext"}


def taken(read: Callable[..., Any], data: bytes, *checks: str, **more: Any) -> Any:
    """Return what bytes are read as, which has one spelling, or None if they are rejected.

    Without checks the error is one of a wrong argument.
    """
    try:
        found = read(data, **more)
    except ParameterError as error:
        assert not checks
        assert len(str(error)) < 300
    except RemoteProtocolError as error:
        check_rejection(error, *checks)
    else:
        assert found.to_bytes() == data
        return found
    return None


def check_rejection(error: RemoteProtocolError, *checks: str) -> None:
    assert error.check in checks
    assert len(str(error)) < 300


def _public(data: bytes, world: int) -> None:
    key = taken(PublicKey.from_bytes, data, "public_key", allow_insecure=world % 2 == 0)
    assert key is None or key.key_id == hashlib.sha256(data).digest()


def _private(data: bytes, world: int) -> None:
    key = taken(PrivateKey.from_bytes, data, allow_insecure=world % 2 == 0)
    assert key is None or key.decrypt(key.public_key.encrypt([-3])) == [-3]


def _sealed(data: bytes, world: int) -> None:
    """Call `_private` with a correct checksum, so that later checks are reached."""
    _private(data + hashlib.sha256(data).digest(), world)


def _ciphertexts(data: bytes, world: int) -> None:
    taken(WORLDS[world][0].public_key.load, data, "length", "ciphertext", count=2)


def _vector(data: bytes, world: int) -> None:
    key, packing = WORLDS[world]
    for summands in (1, None):
        given = {"packing": packing, "summands": summands}
        read = taken(key.public_key.load_vector, data, *ARRIVING, **given)
        if read is not None:
            assert summands in (None, read.added + read.subtracted)
            _read(read, key)


def _plaintexts(data: bytes, world: int) -> None:
    """Take the data as counts and plaintexts that no encrypted vector has."""
    key, packing = WORLDS[world]
    public, width = key.public_key, key.public_key.bits // 8
    count, half = packing.plaintexts(public.bits), public.n // 2
    data = data.ljust(1 + count * width, b"\0")
    added, subtracted = data[0] % (packing.summands + 1), data[0] // 16 % 4
    subtracted = min(subtracted, packing.summands - added)
    if added + subtracted == 0:
        return
    words = (data[1 + i * width :][:width] for i in range(count))
    signed = (int.from_bytes(word, "little", signed=True) for word in words)
    plaintexts = [int(max(-half, min(half, m))) for m in signed]
    ciphertexts = public.load_ints(
        [int((1 + m * public.n) % (public.n * public.n)) for m in plaintexts]
    )
    _read(EncryptedVector(packing, ciphertexts, added, subtracted), key)


def _read(vector: EncryptedVector, key: PrivateKey) -> None:
    try:
        read = key.decrypt_vector(vector)
    except RemoteProtocolError as error:
        check_rejection(error, "sum", "summands", "weight")
        return
    most = (vector.added + vector.subtracted) * vector.packing.max_element
    assert int(np.abs(read.integers).max()) <= most
    assert read.summands == vector.added - vector.subtracted


DECODERS = (_public, _private, _sealed, _ciphertexts, _vector, _plaintexts)


def paillier(data: bytes) -> None:
    """The first byte says which decoder in which world; the rest is what it reads."""
    if not data:
        return
    decoder = DECODERS[data[0] % len(DECODERS)]
    decoder(data[1:], data[0] // len(DECODERS) % len(WORLDS))


def _seed(decoder: int, world: int, data: bytes) -> bytes:
    return bytes([decoder + len(DECODERS) * world]) + data


@cache
def paillier_seeds() -> list[bytes]:
    """Every key of the golden vectors, right or wrong, and the messages of each world."""
    seeds, entropy = [], Stream("seeds")
    for key in VECTORS["keys"]:
        public, private = b(key["public"]), b(key["private"])
        seeds += [_seed(0, 0, public), _seed(1, 0, private), _seed(2, 0, private[:-32])]
        seeds += [_seed(0, 1, public), _seed(2, 1, private[:-32])]
    for decoder, cases in ((0, "refused_public_keys"), (1, "refused_private_keys")):
        seeds += [_seed(decoder, 0, b(case["bytes"])) for case in VECTORS[cases]]
    for world, (key, packing) in enumerate(WORLDS):
        public = key.public_key
        kind = np.int64 if isinstance(packing.encoding, Integers) else np.float64
        vector = np.ones(packing.length, dtype=kind)
        first = public.encrypt_vector(vector, packing, packing.max_weight, entropy)
        data = first.to_bytes()
        seeds += [_seed(4, world, data), _seed(3, world, data[85:][: 2 * public.bits // 4])]
        if packing.summands > 1:
            seeds.append(_seed(4, world, (2 * first - first).to_bytes(entropy)))
        plain = key.decrypt(first.ciphertexts)
        words = (m.to_bytes(public.bits // 8, "little", signed=True) for m in plain)
        seeds.append(_seed(5, world, b"\1" + b"".join(words)))
    return seeds
