"""Primitives that suite hybrid and blame need: seconds of each on this machine, and counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from time import process_time

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import (
    MLKEM768PrivateKey,
    MLKEM768PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.poly1305 import Poly1305

from secagg import RoundParams, _fast
from secagg.protocol import dealing, kem
from secagg.protocol.keys import digests, rows_of
from secagg.protocol.messages import SEALED_BYTES

Counts = Counter[str]
_ROWS = 64
"""Keys that HKDF derives together, and rows that are hashed together."""
_LONG_ENOUGH = 0.05


def hashed(size: int) -> str:
    """Return the name of SHA-256 over so many bytes."""
    return f"SHA-256, {size} B"


SHARE, LEAF, NODE, CHECK = map(hashed, (103, 193, 77, 142))
KEY, CIPHERTEXT = map(hashed, (1184, 1088))
_TAGGED = 10_000
TAG = f"Poly1305, {_TAGGED:,} B"
"""Tag of a message, by which the server recognises a repetition."""


def prices() -> dict[str, float]:
    """Return the seconds of each primitive, of the processor as in `worker`."""
    found = {name: _mean(call) for name, call in _calls().items()}
    for size in (103, 193, 77, 142, 1184, 1088, *SEALED_BYTES.values()):
        rows = rows_of([os.urandom(size)] * _ROWS, size)
        found[hashed(size)] = _mean(partial(digests, rows)) / _ROWS
    for size in (32, 64):
        found[f"HKDF, {size} B"] = _mean(_derive(size)) / _ROWS
    return found


def _mean(call: Callable[[], object]) -> float:
    call()
    count, start = 0, process_time()
    while (passed := process_time() - start) < _LONG_ENOUGH:
        for _ in range(10):
            call()
        count += 10
    return passed / count


def _calls() -> Mapping[str, Callable[[], object]]:
    lattice, curve, signer = (
        MLKEM768PrivateKey.from_seed_bytes(os.urandom(64)),
        X25519PrivateKey.from_private_bytes(os.urandom(32)),
        Ed25519PrivateKey.from_private_bytes(os.urandom(32)),
    )
    encapsulation = lattice.public_key().public_bytes_raw()
    point = curve.public_key().public_bytes_raw()
    message = os.urandom(_TAGGED)
    content, shares, box = os.urandom(200), os.urandom(80), AESGCM(os.urandom(32))
    ciphertext = lattice.public_key().encapsulate()[1]
    signature, verifier = signer.sign(content), signer.public_key()

    def pair() -> object:
        made = MLKEM768PrivateKey.from_seed_bytes(os.urandom(64))
        return made.public_key().public_bytes_raw()

    return {
        "X25519": lambda: curve.exchange(X25519PublicKey.from_public_bytes(point)),
        "AES-256-GCM, 80 B": lambda: box.encrypt(bytes(12), shares, content),
        "ML-KEM pair": pair,
        "ML-KEM key": lambda: MLKEM768PublicKey.from_public_bytes(encapsulation),
        "ML-KEM encapsulation": lambda: MLKEM768PublicKey.from_public_bytes(
            encapsulation
        ).encapsulate(),
        "ML-KEM decapsulation": lambda: lattice.decapsulate(ciphertext),
        "Ed25519 sign": lambda: signer.sign(content),
        "Ed25519 verify": lambda: verifier.verify(signature, content),
        TAG: lambda: Poly1305.generate_tag(bytes(32), message),
    }


def _derive(size: int) -> Callable[[], object]:
    secrets = np.zeros((_ROWS, 32), np.uint8)
    infos, derived = np.zeros((_ROWS, 40), np.uint8), np.zeros((_ROWS, size), np.uint8)
    return lambda: _fast.hkdf(secrets, bytes(32), infos, derived)


def of_hybrid(params: RoundParams, dropped: int) -> tuple[Counts, Counts]:
    """Return the counts that suite hybrid adds, for a client that stays and for the server.

    `dropped` clients drop out after they shared their keys.
    """
    m, n = params.holders - 1, params.n_clients
    client = Counter(
        {
            "ML-KEM pair": 1,
            "ML-KEM encapsulation": m,
            "ML-KEM decapsulation": m,
            "HKDF, 64 B": m,  # contributions
            "HKDF, 32 B": m,  # deposits
            KEY: 2 * m,  # in the roster, and in the keys of the boxes
            CIPHERTEXT: 2 * m,
            CHECK: 2 * m,
        }
    )
    pairs = round(dropped * m * (n - dropped) / (n - 1))
    server = Counter(
        {"ML-KEM key": n, KEY: n, "HKDF, 64 B": pairs, "HKDF, 32 B": pairs, CHECK: pairs}
    )
    server[TAG] = n * (kem.KEY_BYTES + 1216 * m) // _TAGGED
    return client, server


def of_blame(params: RoundParams, dropped: int) -> tuple[Counts, Counts]:
    """Return the counts that signed hashes of shares add; see `of_hybrid`."""
    h, n, m = params.holders, params.n_clients, params.holders - 1
    box, depth = hashed(SEALED_BYTES[params.suite]), dealing.depth(h)
    client = Counter(
        {
            SHARE: 2 * h + 2 * m + h,  # dealt, held and revealed
            LEAF: h + m,
            box: 2 * m,
            NODE: h + m * depth,
            "Ed25519 sign": 3,
            "Ed25519 verify": m,
        }
    )
    stayed = n - dropped
    server = Counter(
        {
            LEAF: n * h,
            NODE: n * h,
            box: n * m,
            SHARE: stayed * h,
            "Ed25519 verify": n + 2 * stayed,
        }
    )
    return client, server


def seconds(counts: Counts, known: Mapping[str, float]) -> float:
    """Return the seconds of so many primitives."""
    return sum(count * known[name] for name, count in counts.items())
