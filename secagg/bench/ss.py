"""System of secret sharing: whole rounds of this library's protocol, never samples."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from secagg.bench import cases
from secagg.bench.cases import ENCODING, F64, Case, Figure, Load, Row, System, Vectors
from secagg.bench.roles import Role
from secagg.client import Client
from secagg.encoding import Entropy
from secagg.protocol import NEXT, ClientPolicy, Phase, RoundParams
from secagg.protocol.suites import SuiteName
from secagg.server import RoundResult, Server

DROPOUT = 0.1  # fraction of the clients that drop out
SUITE: SuiteName = "x25519"  # no other system withstands a quantum computer
ALONE = 0  # client in a separate process, to measure the client's memory; it never drops out

SS = System(
    name="ss",
    label="SS",
    family="ss",
    messages=4,
    dropouts=f"{DROPOUT:.0%} may drop out in any phase; nobody waits for them",
    decrypts="the server with t clients; the server sees the sum",
)

Progress = Callable[[str, int, int], None]


class Crowd:
    """Clients `ids` of a round, in one process; ``vector(u)`` makes the vector of client u."""

    def __init__(
        self,
        params: RoundParams,
        ids: Iterable[int],
        vector: Vectors,
        policy: ClientPolicy | None = None,
    ) -> None:
        self._clients = {u: Client(u, params, policy=policy) for u in ids}
        self._vector = vector
        self._drawn: F64 | None = None

    def draw(self, u: int) -> None:
        """Make client u's vector before the measured step, if that step needs the vector."""
        wanted = self._clients[u].phase == Phase.MASKED_INPUT
        self._drawn = self._vector(u) if wanted else None

    def answer(self, u: int, data: bytes) -> bytes:
        """Return client u's answer to a message of the server."""
        return self._clients[u].answer(data, self._drawn)


@dataclass(frozen=True)
class Costs:
    """Result and costs of a round: seconds and bytes by client id, and seconds of the server.

    Memory is the peak of a process, in bytes beyond the library itself. `client_memory` is the
    peak of client `ALONE`.
    """

    result: RoundResult
    u2: list[int]  # the clients that shared keys; the graph was drawn among them
    client_seconds: Mapping[int, float]
    server_seconds: float
    client_memory: int
    server_memory: int
    bytes_up: Mapping[int, int]
    bytes_down: Mapping[int, int]


def run_round(
    params: RoundParams,
    vector: Vectors,
    leaving: Collection[int],
    progress: Progress,
    entropy: Entropy = os.urandom,
    policy: ClientPolicy | None = None,
) -> Costs:
    """Run a round in three processes: the server, client `ALONE`, and all other clients.

    The clients in `leaving` drop out after sharing keys, when dropouts cost the server most;
    `ALONE` must stay. `vector` and the server's `entropy` must be picklable.
    """
    ids = range(params.n_clients)
    groups = {"client": [ALONE], "clients": [u for u in ids if u != ALONE]}
    up, down, seconds = dict.fromkeys(ids, 0), dict.fromkeys(ids, 0), dict.fromkeys(ids, 0.0)
    u2: list[int] = []
    with ExitStack() as stack:
        server = stack.enter_context(
            Role("server", partial(Server, params, policy=policy, entropy=entropy))
        )
        alone, crowd = (
            stack.enter_context(Role(name, partial(Crowd, params, group, vector, policy)))
            for name, group in groups.items()
        )
        server_seconds, inbox = 0.0, dict.fromkeys(ids, b"")
        for phase in NEXT[params.security]:
            if phase == Phase.MASKED_INPUT:
                u2 = sorted(inbox)
                inbox = {u: data for u, data in inbox.items() if u not in leaving}
            asked = sorted(inbox)
            for done, u in enumerate(asked, start=1):
                # popped, so that the memory of a message is free after its use
                party, data = alone if u == ALONE else crowd, inbox.pop(u)
                party.do(Crowd.draw, u)
                answer = party.do(Crowd.answer, u, data)
                server_seconds += server.do(Server.receive, u, answer.result).seconds
                seconds[u] += answer.seconds
                up[u] += len(answer.result)
                down[u] += len(data)
                progress(phase, done, len(asked))
            closed = server.do(Server.close_round)
            server_seconds += closed.seconds
            inbox = closed.result
        result = server.do(Server.result).result
        memory = alone.memory, server.memory
        return Costs(result, u2, seconds, server_seconds, *memory, up, down)


def parameters(case: Case) -> RoundParams:
    """Return the parameters of a case, with the suggested graph and threshold."""
    found = RoundParams.suggest(
        case.clients, case.length, ENCODING, dropout=DROPOUT, suite=SUITE
    )
    return replace(found, modulus_bits=None)  # 32 bits need no packing


def measure(case: Case, progress: Progress) -> Row:
    """Run a round of a case, check the sum and return the costs; see `parameters`."""
    params, gone = parameters(case), cases.leaving(case.clients, DROPOUT)
    costs = run_round(params, case.vector, gone, progress)
    survivors = costs.result.survivors
    cases.check_sum(costs.result.integers, survivors, case.vector)
    neighbours = "all others" if params.neighbours is None else params.neighbours
    median = statistics.median(costs.client_seconds[u] for u in survivors)
    return Row(
        system=SS,
        case=case,
        setting=f"{SUITE}, k = {neighbours}, t = {params.threshold}, {len(gone)} drop out",
        clients_run=case.clients,
        client=Load(Figure(median), costs.client_memory),
        server=Load(Figure(costs.server_seconds), costs.server_memory),
        # the largest, since clients that dropped out exchanged less
        bytes_up=Figure(max(costs.bytes_up.values())),
        bytes_down=Figure(max(costs.bytes_down.values())),
    )
