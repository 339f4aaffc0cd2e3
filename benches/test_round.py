"""Times of whole rounds beside plain code: a client, a server, and a round of training.

The plain client and server have no message framing, no checks of messages and no state.
"""

from __future__ import annotations

import os
import secrets
from unittest.mock import patch

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from benches import plain
from benches.conftest import Versus
from benches.plain import CLIP, F64, SCALE, U32
from fedmf import FedALS, FederatedModel, FedMF, PlainSum, Trainer, _fast
from fedmf._fast import reference
from fedmf.data.sets.simulated import simulate
from secagg import Client, FixedPoint, Phase, RoundParams, Server

N, THRESHOLD, LENGTH, DROPPED = 100, 67, 100_000, 10
WATCHED = N - 1  # a surviving client
P = 2**521 - 1
SETTING = f"n = {N}, d = {LENGTH:,}, {DROPPED} dropped"
PLAIN = "cryptography, numpy, Python integers, no checks"

Phases = list[tuple[dict[int, bytes], dict[int, bytes]]]

VECTOR = np.random.default_rng(0).uniform(-CLIP, CLIP, LENGTH)
PARAMS = RoundParams(n_clients=N, threshold=THRESHOLD, length=LENGTH, encoding=FixedPoint(CLIP))


def _client(u: int) -> Client:
    return Client(u, PARAMS, entropy=np.random.default_rng(u).bytes)


def _server() -> Server:
    return Server(PARAMS, entropy=np.random.default_rng(N).bytes)


@pytest.fixture(scope="module")
def transcript() -> Phases:
    """Return the messages to and from the clients, phase by phase.

    All random bytes come from seeds, so a client or the server can be run again alone.
    """
    clients, server, phases = [_client(u) for u in range(N)], _server(), []
    inbox = dict.fromkeys(range(N), b"")
    while server.phase is not Phase.FINISHED:
        if server.phase is Phase.MASKED_INPUT:
            inbox = {u: data for u, data in inbox.items() if u >= DROPPED}
        answers = {u: clients[u].answer(data, VECTOR) for u, data in inbox.items()}
        phases.append((inbox, answers))
        for u, answer in answers.items():
            server.receive(u, answer)
        inbox = server.close_round()
    return phases


@pytest.mark.large
def test_client(versus: Versus, transcript: Phases) -> None:
    """Compare a client with plain code, in which no other client drops out."""
    peers = [X25519PrivateKey.generate().public_key() for _ in range(N - 1)]

    def ours() -> bytes:
        client = _client(WATCHED)
        return [client.answer(inbox[WATCHED], VECTOR) for inbox, _ in transcript][-1]

    def by_hand() -> bytes:
        c, s, b = X25519PrivateKey.generate(), X25519PrivateKey.generate(), os.urandom(32)
        b_shares, s_shares = _split(b), _split(s.private_bytes_raw())
        boxes = [AESGCM(_derive(c.exchange(peer), b"seal", 32)) for peer in peers]
        for box, *shares in zip(boxes, b_shares, s_shares, strict=False):
            pair = b"".join(share.to_bytes(66, "big") for share in shares)
            box.decrypt(bytes(12), box.encrypt(bytes(12), pair, None), None)
        noise = np.random.default_rng(secrets.randbits(128)).random(LENGTH)
        scaled = np.floor(np.clip(VECTOR, -CLIP, CLIP) * SCALE + noise)
        y = scaled.astype(np.int64).astype(np.uint32) + _mask(b, b"self")
        for j, peer in enumerate(peers):
            mask = _mask(s.exchange(peer), b"mask")
            y = y + mask if j % 2 else y - mask
        return y.tobytes()

    def check(unmasking: bytes, masked: bytes) -> None:
        assert unmasking == transcript[-1][1][WATCHED]
        assert len(masked) == 4 * LENGTH

    versus(f"whole client, {SETTING}: {PLAIN}", ours, by_hand, check)


@pytest.mark.large
def test_server(versus: Versus, transcript: Phases) -> None:
    """Compare the server with plain code, which adds random inputs."""
    inputs = [os.urandom(4 * LENGTH) for _ in range(N - DROPPED)]
    publics = [X25519PrivateKey.generate().public_key().public_bytes_raw() for _ in inputs]
    known = [_split(os.urandom(32))[:THRESHOLD] for _ in range(N)]

    def ours() -> F64:
        server = _server()
        for _, answers in transcript:
            for u, answer in answers.items():
                server.receive(u, answer)
            server.close_round()
        return np.asarray(server.result().sum, np.float64)

    def by_hand() -> F64:
        total = np.zeros(LENGTH, np.uint32)
        for data in inputs:
            total += np.frombuffer(data, np.uint32)
        weights = plain.lagrange(range(1, THRESHOLD + 1), P)
        found = (plain.reconstruct(shares, weights, P) for shares in known)
        rebuilt = [secret.to_bytes(66, "little")[:32] for secret in found]
        for b in rebuilt[DROPPED:]:
            total -= _mask(b, b"self")
        for s in rebuilt[:DROPPED]:
            private = X25519PrivateKey.from_private_bytes(s)
            for j, public in enumerate(publics):
                shared = private.exchange(X25519PublicKey.from_public_bytes(public))
                mask = _mask(shared, b"mask")
                total = total + mask if j % 2 else total - mask
        return total.view(np.int32) / SCALE

    def check(total: F64, _: F64) -> None:
        stayed = N - DROPPED
        np.testing.assert_allclose(total, stayed * VECTOR, atol=stayed / SCALE)

    versus(f"whole server, {SETTING}: {PLAIN}", ours, by_hand, check)


MODELS: dict[str, FederatedModel] = {
    "FedMF, gradient steps": FedMF(update="paper", rate=0.001),
    "FedMF, exact local solves": FedMF(),
    "FedALS": FedALS(),
}


@pytest.mark.parametrize("name", MODELS)
def test_plain_round(versus: Versus, name: str) -> None:
    """Compare a round of training with numpy's kernels, at the size of MovieLens 100K."""
    ratings = simulate(*((943, 1682, 100_000) if versus.benchmark.enabled else (60, 80, 2000)))
    trainer = Trainer(MODELS[name], PlainSum(), rounds=1)

    def compiled() -> F64:
        return trainer.fit(ratings).factors_.item_factors

    def twins() -> F64:
        with patch.multiple(
            _fast, **{one: getattr(reference, one) for one in reference.__all__}
        ):
            return compiled()

    versus(f"a plain round, {name}, {ratings.values.size:,} ratings: numpy", compiled, twins)


def _split(secret: bytes) -> list[int]:
    random = (secrets.randbelow(P) for _ in range(THRESHOLD - 1))
    return plain.split([int.from_bytes(secret, "little"), *random], range(1, N + 1), P)


def _derive(secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(secret)


def _mask(secret: bytes, info: bytes) -> U32:
    stream = plain.keystream(_derive(secret, info, 16), 4 * LENGTH)
    return np.frombuffer(stream, np.uint32)
