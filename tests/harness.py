"""A round taken apart: clients and a server whose every message the test can touch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import msgspec
import numpy as np

from secagg import (
    Client,
    ClientPolicy,
    FixedPoint,
    Identity,
    Integers,
    Phase,
    Registry,
    RoundParams,
    Server,
    messages,
)
from secagg.rounds import NEXT

TWO = ClientPolicy(min_clients=2, min_threshold=1, allow_two_clients=True)
TOY = ClientPolicy(corrupt=0, dropout=0)
"""Nobody colludes and nobody vanishes: for graphs too small to hide anyone by chance."""


class ReplayedEntropy:
    """Deterministic bytes that look random, and a record of all that was drawn."""

    def __init__(self, seed: object) -> None:
        self._state = hashlib.sha256(repr(seed).encode()).digest()
        self._count = 0
        self.drawn: list[bytes] = []

    def __call__(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            self._count += 1
            out += hashlib.sha256(self._state + self._count.to_bytes(8, "little")).digest()
        self.drawn.append(out[:size])
        return out[:size]


def make_params(n: int = 5, threshold: int | None = None, **changes: object) -> RoundParams:
    holders = n if changes.get("neighbours") is None else changes["neighbours"] + 1
    active = changes.get("security") == "active"
    least = 2 * n // 3 + 1 if active else holders // 2 + 1
    settings: dict[str, object] = {
        "n_clients": n,
        "threshold": least if threshold is None else threshold,
        "session": b"round 1" if active else b"",
        "length": 4,
        "encoding": FixedPoint(clip=8.0, rounding="nearest"),
    }
    return RoundParams(**(settings | changes))


def make_identity(u: int) -> Identity:
    return Identity(hashlib.sha256(b"identity" + u.to_bytes(8, "little")).digest())


def make_vector(params: RoundParams, u: int) -> np.ndarray:
    rng = np.random.default_rng(u)
    if isinstance(params.encoding, Integers):
        return rng.integers(0, params.encoding.max, params.length, endpoint=True)
    return rng.normal(size=params.length)


class Cohort:
    """n clients and a server; each step keeps what was sent, by phase and client."""

    def __init__(
        self,
        params: RoundParams,
        ids: Iterable[int] | None = None,
        policy: ClientPolicy | None = None,
        seed: object = 0,
    ) -> None:
        self.params = params
        self.ids = list(range(params.n_clients) if ids is None else ids)
        self.entropy = {u: ReplayedEntropy((seed, u)) for u in self.ids}
        self.identities: dict[int, Identity] = {}
        self.registry: Registry | None = None
        if params.active:
            self.identities = {u: make_identity(u) for u in self.ids}
            self.registry = Registry({u: i.public for u, i in self.identities.items()})
        self.clients = {u: self.make_client(u, policy) for u in self.ids}
        self.server = Server(
            params, registry=self.registry, entropy=ReplayedEntropy((seed, "server"))
        )
        self.vectors = {u: make_vector(params, u) for u in self.ids}
        self.weights = {
            u: None if params.max_weight is None else 1 + u % params.max_weight
            for u in self.ids
        }
        self.sent: list[dict[int, bytes]] = []
        self.inbox: dict[int, bytes] = dict.fromkeys(self.ids, b"")

    def make_client(self, u: int, policy: ClientPolicy | None) -> Client:
        return Client(
            u,
            self.params,
            policy=policy,
            identity=self.identities.get(u),
            registry=self.registry,
            entropy=self.entropy[u],
        )

    def step(self, *, without: Iterable[int] = ()) -> dict[int, bytes]:
        """All but the missing send their message; return what they sent, undelivered."""
        call = self.calls()[len(self.sent)]
        out = {u: call(u, data) for u, data in self.inbox.items() if u not in set(without)}
        self.sent.append(out)
        return out

    def deliver(self, sent: dict[int, bytes]) -> dict[int, bytes]:
        for u, data in sent.items():
            self.server.receive(u, data)
        self.inbox = self.server.close_round()
        return self.inbox

    def advance(self, phases: int, *, without: Iterable[int] = ()) -> dict[int, bytes]:
        """Run whole phases; the missing vanish in the last of them."""
        for i in range(phases):
            self.deliver(self.step(without=without if i == phases - 1 else ()))
        return self.inbox

    def expected(self, survivors: Iterable[int]) -> list[int]:
        """The sum in plain integers."""
        total = [0] * self.params.length
        for u in survivors:
            weight = 1 if self.weights[u] is None else self.weights[u]
            encoding = self.params.encoding
            if isinstance(encoding, Integers):
                encoded = self.vectors[u].tolist()
            else:
                encoded = encoding.encode_integers(self.vectors[u])[0].tolist()
            total = [a + weight * b for a, b in zip(total, encoded, strict=True)]
        return total

    def phases(self) -> list[Phase]:
        return list(NEXT[self.params.security])

    def calls(self) -> list[Callable[[int, bytes], bytes]]:
        calls = [
            lambda u, _: self.clients[u].advertise_keys(),
            lambda u, data: self.clients[u].share_keys(data),
            lambda u, data: self.clients[u].masked_input(
                data, self.vectors[u], self.weights[u]
            ),
            lambda u, data: self.clients[u].check_consistency(data),
            lambda u, data: self.clients[u].unmask(data),
        ]
        if not self.params.active:
            del calls[3]
        return calls


def altered(data: bytes, kind: type[msgspec.Struct], **changes: object) -> bytes:
    """The same message with other fields."""
    message = msgspec.msgpack.decode(data[1:], type=kind)
    return messages.encode(msgspec.structs.replace(message, **changes))


def read(data: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct:
    return msgspec.msgpack.decode(data[1:], type=kind)


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]
