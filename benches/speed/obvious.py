"""Cases of plain code: ``cryptography``, numpy and Python integers, without any check.

The client and the server have no message framing, no checks of messages and no state.
"""

from __future__ import annotations

import os
import secrets

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from benches import plain
from benches.plain import CLIP, F64, SCALE, U32
from benches.speed.clock import Measure, timed

P = 2**521 - 1


def masks(keys: int, length: int, bits: int) -> Measure:
    """Return the measure of adding whole AES-CTR streams to d words with numpy."""
    rng = np.random.default_rng(0)
    chosen = [rng.bytes(16) for _ in range(keys)]
    acc = np.zeros(length, f"uint{bits}")

    def run() -> None:
        for j, key in enumerate(chosen):
            mask = np.frombuffer(plain.keystream(key, acc.nbytes), acc.dtype)
            (np.subtract if j % 2 else np.add)(acc, mask, out=acc)

    return timed(run)


def x25519(points: int) -> Measure:
    """Return the measure of a loop of exchanges of one key, which was loaded before."""
    rng = np.random.default_rng(0)
    key = X25519PrivateKey.from_private_bytes(rng.bytes(32))
    others = [rng.bytes(32) for _ in range(points)]

    def run() -> list[bytes]:
        return [key.exchange(X25519PublicKey.from_public_bytes(other)) for other in others]

    return timed(run)


def client(n: int, threshold: int, length: int, dropped: int) -> Measure:
    """Return the measure of a client in whose round no other client drops out."""
    del dropped  # a client's work does not depend on it
    vector = np.random.default_rng(0).uniform(-CLIP, CLIP, length)
    peers = [X25519PrivateKey.generate().public_key() for _ in range(n - 1)]

    def run() -> bytes:
        c, s, b = X25519PrivateKey.generate(), X25519PrivateKey.generate(), os.urandom(32)
        b_shares = _split(b, n, threshold)
        s_shares = _split(s.private_bytes_raw(), n, threshold)
        boxes = [AESGCM(_derive(c.exchange(peer), b"seal", 32)) for peer in peers]
        for box, *shares in zip(boxes, b_shares, s_shares, strict=False):
            pair = b"".join(share.to_bytes(66, "big") for share in shares)
            box.decrypt(bytes(12), box.encrypt(bytes(12), pair, None), None)
        noise = np.random.default_rng(secrets.randbits(128)).random(length)
        scaled = np.floor(np.clip(vector, -CLIP, CLIP) * SCALE + noise)
        y = scaled.astype(np.int64).astype(np.uint32) + _mask(b, b"self", length)
        for j, peer in enumerate(peers):
            mask = _mask(s.exchange(peer), b"mask", length)
            y = y + mask if j % 2 else y - mask
        return y.tobytes()

    return timed(run)


def server(n: int, threshold: int, length: int, dropped: int) -> Measure:
    """Return the measure of a server that adds random inputs."""
    inputs = [os.urandom(4 * length) for _ in range(n - dropped)]
    publics = [X25519PrivateKey.generate().public_key().public_bytes_raw() for _ in inputs]
    known = [_split(os.urandom(32), n, threshold)[:threshold] for _ in range(n)]

    def run() -> F64:
        total = np.zeros(length, np.uint32)
        for data in inputs:
            total += np.frombuffer(data, np.uint32)
        weights = plain.lagrange(range(1, threshold + 1), P)
        found = (plain.reconstruct(shares, weights, P) for shares in known)
        rebuilt = [secret.to_bytes(66, "little")[:32] for secret in found]
        for b in rebuilt[dropped:]:
            total -= _mask(b, b"self", length)
        for s in rebuilt[:dropped]:
            private = X25519PrivateKey.from_private_bytes(s)
            for j, public in enumerate(publics):
                shared = private.exchange(X25519PublicKey.from_public_bytes(public))
                mask = _mask(shared, b"mask", length)
                total = total + mask if j % 2 else total - mask
        return total.view(np.int32) / SCALE

    return timed(run)


def _split(secret: bytes, n: int, threshold: int) -> list[int]:
    random = (secrets.randbelow(P) for _ in range(threshold - 1))
    return plain.split([int.from_bytes(secret, "little"), *random], range(1, n + 1), P)


def _derive(secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(secret)


def _mask(secret: bytes, info: bytes, length: int) -> U32:
    stream = plain.keystream(_derive(secret, info, 16), 4 * length)
    return np.frombuffer(stream, np.uint32)
