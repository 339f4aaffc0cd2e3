"""Simulation of a whole round in one process, with dropouts, and a report of the costs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from secagg._check import check_kind
from secagg._secrets import without_frames
from secagg.client import Client
from secagg.client.client import answer_quietly
from secagg.encoding import Entropy, Vector
from secagg.encoding.clipping import is_lost, warn_of_losses
from secagg.errors import ParameterError
from secagg.protocol import NEXT, ClientPolicy, Identity, Phase, Registry, RoundParams
from secagg.protocol.client_ids import ByClient, ClientKey, Names
from secagg.server import RoundResult, Server
from secagg.simulate.inputs import keys_of, timed, weights_of
from secagg.simulate.session import SimulatedSession

DROPOUT_PHASES = tuple(phase.value for phase in NEXT["active"])
"""Names of the paper's rounds 0 to 4: a client drops out before the message of that round.

The semi-honest variant has no round 3, consistency_check; that name then means round 4.
"""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SimulatedRound(RoundResult):
    """Result and costs of a simulated round; see `RoundResult` for the sum.

    Attributes
    ----------
    clipped : int
        Number of clipped elements in the vectors of all survivors, which the simulation knows
        without `count_clipped`, too.
    client_seconds, server_seconds : float
        Seconds that all clients together took, and seconds that the server took.
    bytes_up, bytes_down : dict of id to int
        Bytes that each client sent to the server, and bytes that each client received.
    """

    clipped: int
    client_seconds: float
    server_seconds: float
    bytes_up: Mapping[int, int] = field(repr=False)
    bytes_down: Mapping[int, int] = field(repr=False)


@without_frames
def simulate_round(
    vectors: ByClient[Vector] | Sequence[Vector] | Vector,
    params: RoundParams,
    *,
    dropouts: ByClient[str] | None = None,
    weights: ByClient[int] | Sequence[int] | None = None,
    policy: ClientPolicy | None = None,
    session: SimulatedSession | None = None,
    entropy: Entropy = os.urandom,
    progress: Callable[[str, int, int], None] | None = None,
) -> SimulatedRound:
    """Run one round with real clients and a real server that exchange bytes.

    A `ClippingWarning` has the number of clipped elements, if there are any.
    A vector that `Bounded` scales down gives no warning, but counts in `clipped`.

    Parameters
    ----------
    vectors : mapping of client id to vector, sequence of vectors, or matrix with a row each
        Inputs of the clients. In a sequence or matrix the ids are the positions. Each vector is
        looked up once, when the client masks the vector, so a mapping may compute the vector
        then. In all mappings a name stands for its `client_id`; the result has ids only.
    params : RoundParams
        Parameters of the round, with `n_clients` at least the number of vectors.
    dropouts : mapping of client id to phase, optional
        Clients that drop out, each with a phase of ``DROPOUT_PHASES``. A client drops out
        before the client's message of that phase.
    weights : mapping of client id to int or sequence of int, optional
        Weight of each vector. Required if the parameters have a `max_weight`, an error if not.
    policy : ClientPolicy, optional
        Policy of all clients.
    session : SimulatedSession, optional
        Session of this round. None: the round belongs to no session.
    entropy : callable, optional
        Source of random bytes, replaced only to replay a round in a test.
    progress : callable, optional
        Function called as ``progress(phase, done, total)`` after each client's message.

    Raises
    ------
    ParameterError
        An argument is of the wrong type, a dropout names an unknown client or phase, two
        clients have the same id, or a vector or weight is invalid.
    TooFewSurvivors
        Too many clients dropped out.
    RemoteProtocolError
        Check "size": too few clients advertised keys for the policy. Or "sum" or "weight".
    """
    check_kind("params", params, RoundParams, "a secagg.RoundParams")
    names = Names()
    keys = keys_of(vectors, names)
    ids = keys.keys()
    if len(ids) > params.n_clients:
        raise ParameterError(
            f"{len(ids)} vectors were given, but n_clients is {params.n_clients}"
        )
    vector_of = cast("Mapping[ClientKey, Vector]", vectors)  # or a sequence, by positions
    weight_of = weights_of(weights, keys, names)
    leaving = _check_dropouts({} if dropouts is None else dropouts, ids, params, names)
    identities = {u: Identity.generate(entropy) for u in ids} if params.active else {}
    registry = Registry({u: i.public for u, i in identities.items()}) if identities else None
    seconds = {"client": 0.0, "server": 0.0}
    up, down = Counter[int](), Counter[int]()
    if session is not None:
        check_kind("session", session, SimulatedSession, "a secagg.SimulatedSession")
    graph_seed = None if session is None else session.begin(params)
    server = Server(
        params, registry=registry, policy=policy, graph_seed=graph_seed, entropy=entropy
    )
    with timed(seconds, "client"):
        clients = {
            u: Client(
                u,
                params,
                policy=policy,
                identity=identities.get(u),
                registry=registry,
                sealing_key=None if session is None else session.sealing_key(u, params),
                entropy=entropy,
            )
            for u in ids
        }

    def step(u: int, data: bytes) -> bytes:
        # looked up only now, since a mapping may compute its vectors at the look-up
        vector = vector_of[keys[u]] if clients[u].phase is Phase.MASKED_INPUT else None
        try:
            answer = answer_quietly(clients[u], data, vector, weight_of.get(u))
        except ParameterError as error:
            raise ParameterError(f"client {keys[u]}: {error}") from None
        if vector is not None and is_lost(vector, params.encoding):
            lost.add(u)
        return answer

    lost: set[int] = set()
    inbox = dict.fromkeys(ids, b"")
    for phase in NEXT[params.security]:
        asked = {u: data for u, data in inbox.items() if leaving.get(u) != phase}
        for done, (u, data) in enumerate(asked.items(), start=1):
            with timed(seconds, "client"):
                answer = step(u, data)
            down[u] += len(data)
            up[u] += len(answer)
            with timed(seconds, "server"):
                server.receive(u, answer)
            if progress is not None:
                progress(phase, done, len(asked))
        with timed(seconds, "server"):
            inbox = server.close_round()
    result = server.result()
    # the sum has only the survivors' elements, so only these count
    clipped = sum(clients[u].clipped for u in result.survivors)
    elements = len(result.survivors) * params.length
    warn_of_losses(params.encoding, clipped, elements, len(lost.intersection(result.survivors)))
    return SimulatedRound(
        **vars(result) | {"clipped": clipped},
        client_seconds=seconds["client"],
        server_seconds=seconds["server"],
        bytes_up=dict(up),
        bytes_down=dict(down),
    )


def _check_dropouts(
    dropouts: ByClient[str], ids: Collection[int], params: RoundParams, names: Names
) -> dict[int, Phase]:
    check_kind("dropouts", dropouts, Mapping, "a mapping of client id to phase")
    leaving = {}
    for u, client in names.keys(dropouts).items():
        name = cast("Mapping[ClientKey, str]", dropouts)[client]
        if u not in ids:
            raise ParameterError(f"dropouts names client {client}, which has no vector")
        if name not in DROPOUT_PHASES:
            raise ParameterError(
                f"client {client} cannot drop out in {name!r}; the phases are "
                f"{', '.join(DROPOUT_PHASES)}"
            )
        phase = Phase(name)
        # without a round 3 the client stays until its message of round 4 is due
        skipped = phase not in NEXT[params.security]
        leaving[u] = NEXT["active"][phase] if skipped else phase
    return leaving
