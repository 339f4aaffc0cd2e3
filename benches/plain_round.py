"""The round one would write in an afternoon: ``cryptography``, numpy and Python integers.

Same work as ``secagg`` does for one client and for the server, with no message framing, no
checks of what comes in and no state; it is what a whole round is compared with.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

__all__ = ["PlainClient", "PlainServer"]

P = 2**521 - 1
CLIP, SCALE = 8.0, 65536.0


@dataclass
class PlainClient:
    """One client among n, with a complete graph and threshold t."""

    n: int
    t: int
    vector: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.peers = [X25519PrivateKey.generate().public_key() for _ in range(self.n - 1)]

    def run(self) -> NDArray[np.uint32]:
        """Do all of a client's work in a round in which nobody drops out."""
        c, s = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        b = os.urandom(32)
        b_shares = split(int.from_bytes(b, "little"), self.t, self.n)
        s_shares = split(int.from_bytes(s.private_bytes_raw(), "little"), self.t, self.n)
        boxes = [AESGCM(derive(c.exchange(peer), b"seal", 32)) for peer in self.peers]
        sealed = [
            box.encrypt(
                bytes(12),
                b_shares[j].to_bytes(66, "big") + s_shares[j].to_bytes(66, "big"),
                None,
            )
            for j, box in enumerate(boxes)
        ]
        for box, data in zip(boxes, sealed, strict=True):
            box.decrypt(bytes(12), data, None)
        y = encode(self.vector) + keystream(derive(b, b"self", 16), self.vector.size)
        for j, peer in enumerate(self.peers):
            mask = keystream(derive(s.exchange(peer), b"mask", 16), self.vector.size)
            y = y + mask if j % 2 else y - mask
        y.tobytes()
        return y


@dataclass
class PlainServer:
    """The server of a round with n clients of which `dropped` vanish before their input."""

    n: int
    t: int
    length: int
    dropped: int

    def __post_init__(self) -> None:
        self.inputs = [os.urandom(4 * self.length) for _ in range(self.n - self.dropped)]
        self.publics = [
            X25519PrivateKey.generate().public_key().public_bytes_raw() for _ in self.inputs
        ]
        secret = int.from_bytes(os.urandom(32), "little")
        self.shares = [split(secret, self.t, self.n)[: self.t] for _ in range(self.n)]

    def run(self) -> NDArray[np.float64]:
        """Add the inputs, rebuild every secret, remove every mask, decode."""
        total = np.zeros(self.length, np.uint32)
        for data in self.inputs:
            total += np.frombuffer(data, np.uint32)
        weights = lagrange(self.t)
        secrets_ = [
            (sum(w * y for w, y in zip(weights, shares, strict=True)) % P).to_bytes(
                66, "little"
            )
            for shares in self.shares
        ]
        for b in secrets_[: len(self.inputs)]:
            total -= keystream(derive(b[:32], b"self", 16), self.length)
        for s in secrets_[len(self.inputs) :]:
            private = X25519PrivateKey.from_private_bytes(s[:32])
            for j, public in enumerate(self.publics):
                shared = private.exchange(X25519PublicKey.from_public_bytes(public))
                mask = keystream(derive(shared, b"mask", 16), self.length)
                total = total + mask if j % 2 else total - mask
        return total.view(np.int32) / SCALE


def encode(vector: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Clip, scale and round stochastically, with numpy."""
    scaled = np.clip(vector, -CLIP, CLIP) * SCALE
    random = np.random.default_rng(secrets.randbits(128)).random(vector.size)
    return np.floor(scaled + random).astype(np.int64).astype(np.uint32)


def keystream(key: bytes, length: int) -> NDArray[np.uint32]:
    """Return the whole mask of one key."""
    stream = Cipher(AES(key), CTR(bytes(16))).encryptor().update(bytes(4 * length))
    return np.frombuffer(stream, np.uint32)


def derive(secret: bytes, info: bytes, length: int) -> bytes:
    """HKDF-SHA256."""
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(secret)


def split(secret: int, t: int, n: int) -> list[int]:
    """Shamir by Horner's rule."""
    coefficients = [secret, *(secrets.randbelow(P) for _ in range(t - 1))]
    shares = []
    for x in range(1, n + 1):
        y = 0
        for a in reversed(coefficients):
            y = (y * x + a) % P
        shares.append(y)
    return shares


def lagrange(t: int) -> list[int]:
    """Weights at zero for the points 1 … t."""
    weights = []
    for i in range(1, t + 1):
        above = below = 1
        for j in range(1, t + 1):
            if j != i:
                above, below = above * j % P, below * (j - i) % P
        weights.append(above * pow(below, -1, P) % P)
    return weights
