"""A round to test with: who has which vector, who vanishes when, and what must come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from secagg.client import Client
from secagg.encoding import Entropy, FixedPoint, Vector
from secagg.errors import ParameterError
from secagg.protocol import ClientPolicy, Identity, Phase, Registry, RoundParams
from secagg.server import Server
from secagg.simulate import DROPOUT_PHASES
from secagg.testing.entropy import InsecureReplayedEntropy

__all__ = ["Round", "make_identity", "needed", "plain_encoding", "plain_sum", "toy_policy"]


def toy_policy(params: RoundParams) -> ClientPolicy:
    """Return a policy that lets a client take part in a round too small to hide it.

    The one place that says what a test's round may do and a real one may not.
    """
    two = params.n_clients == 2
    return ClientPolicy(
        min_clients=2 if two else 3, allow_two_clients=two, corrupt=0, dropout=0
    )


def make_identity(client_id: int) -> Identity:
    """Return the signing key that a test's client always has."""
    return Identity(InsecureReplayedEntropy(("identity", client_id))(32))


def plain_encoding(params: RoundParams, vector: Vector, weight: int | None) -> list[int]:
    """Return what a client adds to the sum, in Python's integers and by no code of the library.

    Parameters
    ----------
    params : RoundParams
        With Integers, or a FixedPoint that rounds to nearest.
    vector : array, shape (d,)
    weight : int or None
        In a weighted round it is the last element of what is returned.

    Raises
    ------
    ParameterError
        The encoding rounds stochastically, so that nobody but the client knows its integers.
    """
    numbers = vector.tolist()
    encoding = params.encoding
    if isinstance(encoding, FixedPoint):
        if encoding.rounding != "nearest":
            raise ParameterError(
                f"with rounding={encoding.rounding!r} the exact sum cannot be foretold; test "
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
    """Return how many clients must have answered for `phase` to be closed."""
    return params.threshold if phase == Phase.UNMASKING else params.min_survivors


@dataclass(frozen=True, eq=False, kw_only=True)
class Round:
    """Everything about one round before it runs; as ``testing.rounds()`` draws it.

    Attributes
    ----------
    params : RoundParams
    vectors : mapping of client id to vector
        As many clients as take part, at most ``params.n_clients``.
    weights : mapping of client id to int, or None
        Given exactly when the parameters have a `max_weight`.
    dropouts : mapping of client id to phase
        Before which message of ``simulate.DROPOUT_PHASES`` a client vanishes.
    policy : ClientPolicy
        Every client's.
    seed : object
        What the replayed entropy of clients and server follows from.
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
        """Everyone's public identity keys, in the active variant."""
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
        """Return the clients that have not vanished before their message of `phase`."""
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
