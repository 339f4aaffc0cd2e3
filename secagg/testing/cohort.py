"""A round taken apart: clients and a server whose every message the test can touch."""

from __future__ import annotations

from collections.abc import Iterable

from secagg.client import Client
from secagg.encoding import Vector
from secagg.protocol import Phase
from secagg.testing.case import Round, plain_sum

__all__ = ["Cohort", "answer"]


def answer(client: Client, data: bytes, vector: Vector, weight: int | None) -> bytes:
    """Return what a client answers to the server's message, whichever phase it is in.

    Raises
    ------
    LocalProtocolError, RemoteProtocolError
        As the client's own methods.
    """
    match client.phase:
        case Phase.ADVERTISE_KEYS:
            return client.advertise_keys()
        case Phase.SHARE_KEYS:
            return client.share_keys(data)
        case Phase.MASKED_INPUT:
            return client.masked_input(data, vector, weight)
        case Phase.CONSISTENCY_CHECK:
            return client.check_consistency(data)
        case _:  # and a client that has ended says so
            return client.unmask(data)


class Cohort:
    """The clients of a round and its server; each step keeps what was sent.

    ``step`` and ``deliver`` in turn run the protocol; what lies between them is the test's.

    Parameters
    ----------
    round : Round
        Its dropouts are not followed: the test says who vanishes.

    Attributes
    ----------
    ids : list of int
    clients : dict of id to Client
    server : Server
    entropy : dict of id to InsecureReplayedEntropy
        What each client draws from, with all it has drawn.
    vectors, weights : dict by id
    registry : Registry or None
        In the active variant.
    sent : list of dict of id to bytes
        What the clients sent, a dict for each phase.
    inbox : dict of id to bytes
        What the server answered last.
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
        return answer(self.clients[u], data, self.vectors[u], self.weights[u])

    def step(self, *, without: Iterable[int] = ()) -> dict[int, bytes]:
        """All but the missing make their message; return these, undelivered."""
        missing = set(without)
        out = {u: self.answer(u, data) for u, data in self.inbox.items() if u not in missing}
        self.sent.append(out)
        return out

    def deliver(self, sent: dict[int, bytes]) -> dict[int, bytes]:
        """Hand the messages to the server, close the phase, return its answers."""
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
        """Return the sum of the survivors' vectors in plain integers, without the weights'."""
        total = plain_sum(self.params, self.vectors, self.weights, survivors)
        return total[: self.params.length]
