"""Reading tests/vectors/*.json: parameters, elements and machines as the package has them."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import independent_mlkem
from secagg import (
    Bounded,
    Client,
    ClientPolicy,
    FixedPoint,
    Identity,
    Integers,
    Noise,
    Registry,
    RoundParams,
    SealingKey,
    Server,
)
from secagg.client.client import answer_quietly
from secagg.encoding import Lanes, Ring

FOLDER = Path(__file__).parents[1] / "vectors"
Vector = dict[str, Any]


def load(name: str) -> Vector:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))


ROUNDS: dict[str, Vector] = {r["name"]: r for r in load("rounds")["rounds"]}


def wycheproof(name: str) -> list[Vector]:
    """Return the cases of a file of Project Wycheproof."""
    text = (FOLDER / "wycheproof" / f"{name}_test.json").read_text(encoding="ascii")
    return [case for group in json.loads(text)["testGroups"] for case in group["tests"]]


def b(text: str) -> bytes:
    return bytes.fromhex(text)


def params_of(described: Vector, rounding: str = "nearest") -> RoundParams:
    changed = {
        "encoding": encoding_of(described["encoding"], rounding),
        "modulus": int(described["modulus"]),
        "session": b(described["session"]),
    }
    if described["noise"] is not None:
        noise = described["noise"]
        changed["noise"] = Noise(Fraction(int(noise["scaled"]), 256), noise["colluders"])
    return RoundParams(**(described | changed))


def encoding_of(
    described: Vector, rounding: str = "nearest"
) -> FixedPoint | Integers | Bounded:
    if described["kind"] == "integers":
        return Integers(int(described["max"]))
    if described["kind"] == "bounded":
        return Bounded(described["norm"], described["steps"])
    return FixedPoint(described["clip"], described["fractional_bits"], rounding=rounding)


def lanes(text: str, ring: Ring) -> Lanes:
    """Elements, u64le each, in the ring's lanes."""
    return np.frombuffer(b(text), dtype="<u8").astype(ring.dtype)


def vector_of(values: list[float] | list[int | str], params: RoundParams) -> np.ndarray:
    if isinstance(params.encoding, Integers):
        return np.array([int(x) for x in values], dtype=np.int64)
    return np.array(values, dtype=np.float64)


class Fed:
    """Entropy that gives the vector's draws in their order and nothing else."""

    def __init__(self, draws: list[str]) -> None:
        self.left = [b(draw) for draw in draws]

    def __call__(self, size: int) -> bytes:
        draw = self.left.pop(0)
        assert len(draw) == size, f"{size} bytes are drawn where the vector has {len(draw)}"
        return draw


_encapsulated = cache(independent_mlkem.encapsulate)


class Fixed(Client):
    """A client whose encapsulations have given coins, by the receiver."""

    coins: dict[int, bytes]

    def _encapsulate(self, peer: int, public: bytes) -> tuple[bytes, bytes]:
        super()._encapsulate(peer, public)  # its errors
        return _encapsulated(public, self.coins[peer])


class Unhedged(Fixed):
    """A client that takes seeds and coefficients from its entropy as they are."""

    def _hedged(self, *_: object) -> Fed:
        return self._entropy


class Replay:
    """A round of rounds.json: its machines, and what they send and are sent."""

    def __init__(self, name: str) -> None:
        self.vector = ROUNDS[name]
        self.of = {int(c["id"]): c for c in self.vector["clients"]}
        self.params = params_of(self.vector["parameters"])
        self.phases = [p["phase"] for p in self.vector["phases"]]
        self.sent = self._messages("sent")
        self.answers = self._messages("answers")
        self.fed: dict[int, Fed] = {}
        self.registry: Registry | None = None
        if self.params.active:
            self.registry = Registry({u: self.identity(u).public for u in self.of})

    def _messages(self, key: str) -> dict[str, dict[int, bytes]]:
        return {
            p["phase"]: {int(m["id"]): b(m["bytes"]) for m in p[key]}
            for p in self.vector["phases"]
        }

    def identity(self, u: int) -> Identity:
        return Identity(b(self.of[u]["identity_seed"]))

    def answered(self, u: int, phase: str) -> bytes:
        """Answer of client u in this phase."""
        return self.answers[self.phases[self.phases.index(phase) - 1]][u]

    def server(self, phase: str = "advertise_keys") -> Server:
        """A server that waits for this phase, fed with everything before it."""
        seed = self.vector["server_draws"] or ["00" * 32]
        server = Server(self.params, registry=self.registry, entropy=Fed([*seed, "11" * 32]))
        for earlier in self.phases[: self.phases.index(phase)]:
            for u, data in self.sent[earlier].items():
                server.receive(u, data)
            assert server.close_round() == self.answers[earlier]
        return server

    def client(self, u: int) -> Client:
        # small graphs, which withstand fewer colluders than the default policy expects
        policy = ClientPolicy(corrupt=0.05, dropout=0.05)
        if self.params.allow_two_clients:
            policy = ClientPolicy(min_clients=2, allow_two_clients=True)
        params = params_of(self.vector["parameters"], self.of[u]["rounding"])
        self.fed[u] = Fed(self.of[u]["draws"])
        kind = Fixed if self.of[u]["hedged"] else Unhedged
        kept = self.of[u]["kept_seal_seed"]
        sealing_key = None if kept is None else SealingKey(u)
        if sealing_key is not None:
            sealing_key.draw(lambda: b(kept))
        identity = self.identity(u) if params.active else None
        more = {"registry": self.registry, "sealing_key": sealing_key, "entropy": self.fed[u]}
        client = kind(u, params, policy=policy, identity=identity, **more)
        client.coins = {int(c["id"]): b(c["coins"]) for c in self.of[u]["coins"]}
        return client

    def call(self, client: Client, phase: str, data: bytes) -> bytes:
        """Let a client send its message of this phase, in answer to `data`."""
        assert client.phase in (phase, "failed")
        of = self.of[client.client_id]
        vector = vector_of(of["vector"], self.params)
        return answer_quietly(client, data, vector, of["weight"])

    def client_in(self, u: int, phase: str, before: list[bytes] | None = None) -> Client:
        """A client that is to answer in this phase, after `before` or the round's messages."""
        client = self.client(u)
        client.advertise_keys()
        between = self.phases[1 : self.phases.index(phase)]
        if before is None:
            before = [self.answered(u, earlier) for earlier in between]
        for earlier, data in zip(between, before, strict=True):
            self.call(client, earlier, data)
        return client
