"""Test rounds: inputs and dropouts, the expected sum, and a cohort that runs them.

`Round` describes a round before it runs. `Cohort` runs a round step by step, so that a test can
read and change every message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from secagg.client import Client, SealingKey
from secagg.client.client import answer_quietly
from secagg.encoding import Entropy, FixedPoint, Vector
from secagg.errors import ParameterError
from secagg.protocol import ClientPolicy, Identity, Phase, Registry, RoundParams, kem
from secagg.server import Server
from secagg.simulate import DROPOUT_PHASES


class InsecureReplayedEntropy:
    """Entropy source of pseudorandom bytes from a seed. **For tests only**: nothing is hidden.

    Parameters
    ----------
    seed : object
        Seed of any type; equal ``repr`` gives equal bytes.

    Attributes
    ----------
    drawn : list of bytes
        Results of all calls so far, in order.
    """

    def __init__(self, seed: object) -> None:
        self._state = hashlib.sha256(repr(seed).encode()).digest()
        self._count = 0
        self.drawn: list[bytes] = []

    def __call__(self, size: int, /) -> bytes:
        """Return the next `size` bytes."""
        out = b""
        while len(out) < size:
            self._count += 1
            out += hashlib.sha256(self._state + self._count.to_bytes(8, "little")).digest()
        self.drawn.append(out[:size])
        return out[:size]


def toy_policy(params: RoundParams) -> ClientPolicy:
    """Return a policy that accepts rounds too small to hide a client's input."""
    two = params.n_clients == 2
    return ClientPolicy(
        min_clients=2 if two else 3, allow_two_clients=two, corrupt=0, dropout=0
    )


def make_identity(client_id: int) -> Identity:
    """Return the signing key of a client in tests, always the same for the same id."""
    return Identity(InsecureReplayedEntropy(("identity", client_id))(32))


def make_registry(ids: Iterable[int]) -> Registry:
    """Return the registry of these clients in tests."""
    return Registry({u: make_identity(u).public for u in ids})


def plain_encoding(params: RoundParams, vector: Vector, weight: int | None) -> list[int]:
    """Return a vector's encoding, times the weight, as Python integers.

    In a weighted round the weight follows, and with `count_clipped` the number of clipped
    elements. Raise `ParameterError` if the encoding rounds stochastically, because the integers
    are then unpredictable.
    """
    numbers = vector.tolist()
    encoding = params.encoding
    clipped = 0
    if isinstance(encoding, FixedPoint):
        if encoding.rounding != "nearest":
            raise ParameterError(
                f"with rounding={encoding.rounding!r} the exact sum is unpredictable; test "
                "with rounding='nearest'"
            )
        clip, scale = encoding.clip, 2.0**encoding.fractional_bits
        # a power of two scales exactly, and round() takes ties to even as the encoding does
        clipped = sum(abs(x) > clip for x in numbers)
        numbers = [round(min(max(x, -clip), clip) * scale) for x in numbers]
    if weight is not None:
        numbers = [*(weight * x for x in numbers), weight]
    return [*numbers, clipped] if params.count_clipped else numbers


def plain_sum(
    params: RoundParams,
    vectors: Mapping[int, Vector],
    weights: Mapping[int, int | None],
    survivors: Iterable[int],
) -> list[int]:
    """Return the exact sum of `plain_encoding` over `survivors`."""
    total = [0] * params.elements
    for u in survivors:
        encoded = plain_encoding(params, vectors[u], weights[u])
        total = [a + b for a, b in zip(total, encoded, strict=True)]
    return total


def needed(params: RoundParams, phase: str) -> int:
    """Return the smallest number of messages that lets the server close `phase`."""
    if phase == Phase.UNMASKING:
        return params.threshold
    return params.least if phase == Phase.CONSISTENCY_CHECK else params.min_survivors


class _ReplayedClient(Client):
    """Client whose boxes are the same if a round is run again with the same entropy.

    ML-KEM takes randomness from the library, not from a client's entropy.
    """

    def _encapsulate(self, peer: int, public: bytes) -> tuple[bytes, bytes]:
        return _encapsulated(self.client_id, peer, public)


@lru_cache(1 << 12)  # some 10 MB
def _encapsulated(_sender: int, _receiver: int, public: bytes) -> tuple[bytes, bytes]:
    return kem.encapsulate(public)


@dataclass(frozen=True, eq=False, kw_only=True)
class Round:
    """Inputs, dropouts and entropy of a round to run, drawn by ``testing.rounds()``.

    Attributes
    ----------
    params : RoundParams
    vectors, weights, dropouts : mappings by client id
        See `secagg.simulate_round`. There are at most ``params.n_clients`` vectors; `weights`
        is None in an unweighted round.
    policy : ClientPolicy
        Policy of all clients.
    seed : object
        Seed of the entropy of clients and server.
    sealing_keys : mapping of id to SealingKey
        Keys of clients that are in other rounds of the session, too; by default none.
    """

    params: RoundParams
    vectors: Mapping[int, Vector]
    weights: Mapping[int, int] | None
    dropouts: Mapping[int, str]
    policy: ClientPolicy
    seed: object = 0
    sealing_keys: Mapping[int, SealingKey] = field(default_factory=dict)

    def client(self, client_id: int, entropy: Entropy | None = None) -> Client:
        """Return a new client of this round; by default the entropy follows from the seed."""
        return _ReplayedClient(
            client_id,
            self.params,
            policy=self.policy,
            identity=make_identity(client_id) if self.params.active else None,
            registry=self.registry,
            sealing_key=self.sealing_keys.get(client_id),
            entropy=entropy or self.entropy(client_id),
        )

    def server(self) -> Server:
        """Return a new server for this round, with entropy from the seed."""
        return Server(self.params, registry=self.registry, entropy=self.entropy("server"))

    @cached_property
    def registry(self) -> Registry | None:
        """Registry of all clients' identities; None in the semi-honest variant."""
        return make_registry(self.vectors) if self.params.active else None

    def entropy(self, who: object) -> InsecureReplayedEntropy:
        """Return a new entropy source of a party, which is a client's id or "server"."""
        return InsecureReplayedEntropy((self.seed, who))

    def weight(self, client_id: int) -> int | None:
        """Return a client's weight; None in an unweighted round."""
        return None if self.weights is None else self.weights[client_id]

    def present(self, phase: str) -> frozenset[int]:
        """Return the clients that send a message in `phase`: they drop out later or never."""
        order = DROPOUT_PHASES.index
        return frozenset(
            u
            for u in self.vectors
            if u not in self.dropouts or order(self.dropouts[u]) > order(phase)
        )

    def exact_sum(self, survivors: Iterable[int]) -> list[int]:
        """Return the exact sum over `survivors`; see `plain_sum`."""
        weights = {u: self.weight(u) for u in self.vectors}
        return plain_sum(self.params, self.vectors, weights, survivors)


class Cohort:
    """Clients of a round and the server, run step by step.

    Call `step` and `deliver` in turn to run the protocol; change messages in between. Clients
    drop out only if the test leaves them out; ``round.dropouts`` has no effect.

    Attributes
    ----------
    ids : list of int
    clients : dict of id to Client
    server : Server
    entropy : dict of id to InsecureReplayedEntropy
        Entropy source of each client.
    vectors, weights : dict by id
    registry : Registry or None
        Public identity keys; None in the semi-honest variant.
    sent : list of dict of id to bytes
        Messages of the clients in each phase so far.
    inbox : dict of id to bytes
        Last answers of the server.
    """

    def __init__(self, round: Round) -> None:
        self.params = round.params
        self.ids = list(round.vectors)
        self.entropy = {u: round.entropy(u) for u in self.ids}
        self.clients = {u: round.client(u, self.entropy[u]) for u in self.ids}
        self.server = round.server()
        self.vectors = dict(round.vectors)
        self.registry = round.registry
        self.weights = {u: round.weight(u) for u in self.ids}
        self.sent: list[dict[int, bytes]] = []
        self.inbox: dict[int, bytes] = dict.fromkeys(self.ids, b"")

    def answer(self, u: int, data: bytes) -> bytes:
        """Return client u's answer to a message of the server."""
        return answer_quietly(self.clients[u], data, self.vectors[u], self.weights[u])

    def step(self, *, without: Iterable[int] = ()) -> dict[int, bytes]:
        """Return the answers of all clients to the inbox, except of those in `without`."""
        missing = set(without)
        out = {u: self.answer(u, data) for u, data in self.inbox.items() if u not in missing}
        self.sent.append(out)
        return out

    def deliver(self, sent: dict[int, bytes]) -> dict[int, bytes]:
        """Deliver messages to the server, close the phase and return the server's answers."""
        for u, data in sent.items():
            self.server.receive(u, data)
        self.inbox = self.server.close_round()
        return self.inbox

    def advance(self, phases: int, *, without: Iterable[int] = ()) -> dict[int, bytes]:
        """Run `phases` phases; the clients in `without` drop out in the last phase."""
        for i in range(phases):
            self.deliver(self.step(without=without if i == phases - 1 else ()))
        return self.inbox

    def expected(self, survivors: Iterable[int]) -> list[int]:
        """Return the exact sum of the survivors' encoded vectors, without their weights."""
        total = plain_sum(self.params, self.vectors, self.weights, survivors)
        return total[: self.params.length]
