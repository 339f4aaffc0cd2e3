"""Primitives that docs/protocol.md (`P §`) and docs/oneshot.md (`O §`) share, and their errors.

Like every module `independent_…` but `independent_views` it follows the documents alone and
imports nothing of the package. Written to be read: not fast.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from itertools import count

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

CURVE_PRIME = 2**255 - 19
LOW_ORDER = {  # P §3.4: y coordinates of the points whose order divides 8
    int.from_bytes(bytes.fromhex(y), "little")
    for y in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
    )
}


class ParameterError(ValueError):
    """P §9, O §9: a wrong argument; nothing has changed."""


class LocalProtocolError(RuntimeError):
    """P §9: a call out of order, or on a client that has ended; nothing has changed."""


class ProtocolError(Exception):
    """P §9, O §9, RemoteProtocolError: a message breaks the protocol."""

    def __init__(self, check: str, phase: str = "") -> None:
        super().__init__(check, phase)
        self.check, self.phase = check, phase


def require(condition: bool, check: str, phase: str = "") -> None:
    """One row of a table: `check` names what is wrong if `condition` does not hold."""
    if not condition:
        raise ProtocolError(check, phase)


def valid(condition: bool, what: str) -> None:
    if not condition:
        raise ParameterError(what)


def integer(value: object, what: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ParameterError(f"{what}: not {low} ... {high}")
    return value


def u8(x: int) -> bytes:
    return x.to_bytes(1, "little")


def u16le(x: int) -> bytes:
    return x.to_bytes(2, "little")


def u32le(x: int) -> bytes:
    return x.to_bytes(4, "little")


def u64le(x: int) -> bytes:
    return x.to_bytes(8, "little")


def ids(of: Iterable[int]) -> bytes:
    return b"".join(map(u64le, of))


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def cut(data: bytes, size: int) -> list[bytes]:
    """The consecutive items of `size` bytes that `data` consists of."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def split(data: bytes, *sizes: int) -> list[bytes]:
    """The first parts of these sizes, then the rest."""
    parts = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [*parts, data]


def integers(data: bytes, size: int = 8) -> list[int]:
    """The items of `size` bytes, each read little-endian."""
    return [number(item) for item in cut(data, size)]


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def extract(salt: bytes, ikm: bytes) -> bytes:
    """RFC 5869."""
    return hmac.digest(salt or bytes(32), ikm, "sha256")


def expand(prk: bytes, info: bytes, size: int) -> bytes:
    out = block = b""
    for i in range(1, -(-size // 32) + 1):
        block = hmac.digest(prk, block + info + u8(i), "sha256")
        out += block
    return out[:size]


def hkdf(ikm: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    return expand(extract(salt, ikm), info, size)


Source = Callable[[int], bytes]


def hedged(secret: bytes, fresh: bytes, *statement: bytes) -> Source:
    """P §5.13: a source of random bytes."""
    key, about, pieces = extract(secret, fresh), sha256(*statement), count()

    def source(size: int) -> bytes:
        sizes = [min(8160, size - at) for at in range(0, size, 8160)]
        return b"".join(expand(key, about + u64le(next(pieces)), each) for each in sizes)

    return source


def hedging_secret(identity: bytes | None) -> bytes:
    """P §5.13: of the sealing seed; the signature is never sent."""
    return sha256(sign(identity, b"secagg/2 hedged identity")) if identity else b""


def sign(seed: bytes, message: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


def identity_key(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def verifies(key: bytes | None, message: bytes, signature: bytes) -> bool:
    """P §5.10."""
    try:
        Ed25519PublicKey.from_public_bytes(key or b"").verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_weak(key: bytes) -> bool:
    """P §3.4: of an identity's public key."""
    y = number(key) & (2**255 - 1)
    return y >= CURVE_PRIME or y in LOW_ORDER


def curve_key(seed: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def curve(seed: bytes, public: bytes) -> bytes | None:
    """RFC 7748; None for an all-zero result, which `cryptography` rejects."""
    try:
        return X25519PrivateKey.from_private_bytes(seed).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:
        return None


def agreement(seed: bytes, public: bytes) -> bytes | None:
    """P §5.1; None if the public key is not usable."""
    return curve(seed, public) if number(public) < CURVE_PRIME else None
