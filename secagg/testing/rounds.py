"""Test rounds: inputs and dropouts, the plain sum, and a cohort to run them.

`Round` describes a round before it runs. `Cohort` runs it step by step, and the test sees every
message between clients and server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from secagg.client import Client
from secagg.encoding import Entropy, FixedPoint, Vector
from secagg.errors import ParameterError
from secagg.protocol import ClientPolicy, Identity, Phase, Registry, RoundParams
from secagg.server import Server
from secagg.simulate import DROPOUT_PHASES

__all__ = [
    "Cohort",
    "InsecureReplayedEntropy",
    "Round",
    "make_identity",
    "needed",
    "plain_encoding",
    "plain_sum",
    "toy_policy",
]


class InsecureReplayedEntropy:
    """Pseudorandom bytes from a seed. **For tests only**: they hide nothing.

    Parameters
    ----------
    seed : object
        Its ``repr`` selects the stream.

    Attributes
    ----------
    drawn : list of bytes
        All draws, in order.
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
    """Return a policy that lets a client take part in a round too small to hide it."""
    two = params.n_clients == 2
    return ClientPolicy(
        min_clients=2 if two else 3, allow_two_clients=two, corrupt=0, dropout=0
    )


def make_identity(client_id: int) -> Identity:
    """Return the signing key that a test's client always has."""
    return Identity(InsecureReplayedEntropy(("identity", client_id))(32))


def plain_encoding(params: RoundParams, vector: Vector, weight: int | None) -> list[int]:
    """Return a vector's encoding as plain integers; the weight, if any, is the last.

    Raises
    ------
    ParameterError
        The encoding rounds stochastically, so that only the client knows its integers.
    """
    numbers = vector.tolist()
    encoding = params.encoding
    if isinstance(encoding, FixedPoint):
        if encoding.rounding != "nearest":
            raise ParameterError(
                f"with rounding={encoding.rounding!r} the exact sum is unpredictable; test "
                "with rounding='nearest'"
            )
        clip, scale = encoding.clip, 2.0**encoding.fractional_bits
        # a power of two scales exactly, and round() takes ties to even as the encoding does
        numbers = [round(min(max(x, -clip), clip) * scale) for x in numbers]
    return numbers if weight is None else [*(weight * x for x in numbers), weight]


def plain_sum(
    params: RoundParams,
    vectors: Mapping[int, Vector],
    weights: Mapping[int, int | None],
    survivors: Iterable[int],
) -> list[int]:
    """Return the exact sum over `survivors`, the weights' sum last if the round is weighted."""
    total = [0] * params.elements
    for u in survivors:
        encoded = plain_encoding(params, vectors[u], weights[u])
        total = [a + b for a, b in zip(total, encoded, strict=True)]
    return total


def needed(params: RoundParams, phase: str) -> int:
    """Return the number of answers that `phase` needs to be closed."""
    return params.threshold if phase == Phase.UNMASKING else params.min_survivors


@dataclass(frozen=True, eq=False, kw_only=True)
class Round:
    """A round before it runs; ``testing.rounds()`` draws it.

    Attributes
    ----------
    params : RoundParams
    vectors, weights, dropouts
        See `secagg.simulate_round`; mappings by client id, at most ``params.n_clients``.
    policy : ClientPolicy
        Every client's.
    seed : object
        Seed of the replayed entropy of clients and server.
    """

    params: RoundParams
    vectors: Mapping[int, Vector]
    weights: Mapping[int, int] | None
    dropouts: Mapping[int, str]
    policy: ClientPolicy
    seed: object = 0

    def client(self, client_id: int, entropy: Entropy | None = None) -> Client:
        """Return a new client of this round; its entropy is replayed unless given."""
        if entropy is None:
            entropy = self.entropy(client_id)
        return Client(
            client_id,
            self.params,
            policy=self.policy,
            identity=make_identity(client_id) if self.params.active else None,
            registry=self.registry,
            entropy=entropy,
        )

    def server(self) -> Server:
        """Return a new server for this round, with replayed entropy."""
        return Server(self.params, registry=self.registry, entropy=self.entropy("server"))

    @cached_property
    def registry(self) -> Registry | None:
        """All public identity keys, in the active variant."""
        if not self.params.active:
            return None
        return Registry({u: make_identity(u).public for u in self.vectors})

    def entropy(self, who: object) -> InsecureReplayedEntropy:
        """Return the entropy of one party, from its beginning."""
        return InsecureReplayedEntropy((self.seed, who))

    def weight(self, client_id: int) -> int | None:
        """Return a client's weight, None in an unweighted round."""
        return None if self.weights is None else self.weights[client_id]

    def present(self, phase: str) -> frozenset[int]:
        """Return the clients that have not dropped out before their message of `phase`."""
        order = DROPOUT_PHASES.index
        return frozenset(
            u
            for u in self.vectors
            if u not in self.dropouts or order(self.dropouts[u]) > order(phase)
        )

    def exact_sum(self, survivors: Iterable[int]) -> list[int]:
        """Return the plain integer sum over `survivors`; last the weights', if weighted."""
        weights = {u: self.weight(u) for u in self.vectors}
        return plain_sum(self.params, self.vectors, weights, survivors)


class Cohort:
    """The clients of a round and its server; each step keeps the messages.

    ``step`` and ``deliver`` in turn run the protocol; the test may change messages between
    them. The test also chooses the dropouts, not the round.

    Attributes
    ----------
    ids : list of int
    clients : dict of id to Client
    server : Server
    entropy : dict of id to InsecureReplayedEntropy
        Entropy source of each client, with all its draws.
    vectors, weights : dict by id
    registry : Registry or None
        In the active variant.
    sent : list of dict of id to bytes
        The clients' messages of each phase.
    inbox : dict of id to bytes
        The server's last answers.
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
        """Return client u's answer to a message."""
        return self.clients[u].answer(data, self.vectors[u], self.weights[u])

    def step(self, *, without: Iterable[int] = ()) -> dict[int, bytes]:
        """Return the messages of all but the missing, undelivered."""
        missing = set(without)
        out = {u: self.answer(u, data) for u, data in self.inbox.items() if u not in missing}
        self.sent.append(out)
        return out

    def deliver(self, sent: dict[int, bytes]) -> dict[int, bytes]:
        """Deliver messages to the server, close the phase, return its answers."""
        for u, data in sent.items():
            self.server.receive(u, data)
        self.inbox = self.server.close_round()
        return self.inbox

    def advance(self, phases: int, *, without: Iterable[int] = ()) -> dict[int, bytes]:
        """Run whole phases; the missing drop out in the last of them."""
        for i in range(phases):
            self.deliver(self.step(without=without if i == phases - 1 else ()))
        return self.inbox

    def expected(self, survivors: Iterable[int]) -> list[int]:
        """Return the sum of the survivors' vectors in plain integers, without the weights'."""
        total = plain_sum(self.params, self.vectors, self.weights, survivors)
        return total[: self.params.length]
