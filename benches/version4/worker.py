"""Round in a process of its own: ``python -m benches.version4.worker`` with a case in JSON.

The case is read from stdin, and the costs are printed as JSON. All imports of secagg are of the
release in the working folder, which may be version 3.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import secagg

CLIP = 8.0
_INPUT = 2  # the phase in which clients send their vectors
_POLICY = secagg.ClientPolicy(corrupt=0.05, dropout=0.1)
"""Policy that accepts the graph of each case; the cost does not depend on it."""


def costs(
    clients: int,
    neighbours: int | None,
    threshold: int,
    length: int,
    dropped: int,
    *,
    active: bool,
    suite: str | None,
) -> dict[str, float]:
    """Return the costs of a round whose sum is checked.

    Parameters
    ----------
    clients, neighbours, threshold, length
        Parameters of the round.
    dropped : int
        Number of clients that drop out after they shared their keys.
    active : bool
    suite : str or None
        None: version 3, which has no suites.

    Returns
    -------
    dict
        "client" and "server", seconds of the processor; the client's are the median of the
        clients that stay. "up" and "down", the largest bytes of such a client.
    """
    more: dict[str, Any] = {} if suite is None else {"suite": suite}
    more |= {"session": b"costs", "security": "active"} if active else {}
    params = secagg.RoundParams(
        n_clients=clients,
        threshold=threshold,
        length=length,
        encoding=secagg.FixedPoint(CLIP),
        neighbours=neighbours,
        **more,
    )
    vectors = np.random.default_rng(0).uniform(-CLIP, CLIP, (clients, length))
    identities = {
        u: secagg.Identity(bytes([1 + u // 256, u % 256]) * 16) for u in range(clients)
    }
    keys = secagg.Registry({u: one.public for u, one in identities.items()}) if active else None
    seconds, up, down = np.zeros(clients), np.zeros(clients, int), np.zeros(clients, int)
    spent = 0.0

    def timed(call: Callable[..., Any], *arguments: object) -> tuple[Any, float]:
        start = process_time()
        return call(*arguments), process_time() - start

    parties = {
        u: secagg.Client(
            u, params, policy=_POLICY, identity=identities[u] if active else None, registry=keys
        )
        for u in range(clients)
    }
    server = secagg.Server(params, registry=keys)
    inbox = dict.fromkeys(range(clients), b"")
    for phase in range(5 if active else 4):
        if phase == _INPUT:
            inbox = {u: data for u, data in inbox.items() if u >= dropped}
        for u, data in inbox.items():
            vector = vectors[u] if phase == _INPUT else None
            answer, taken = timed(parties[u].answer, data, vector)
            seconds[u] += taken
            up[u] += len(answer)
            down[u] += len(data)
            spent += timed(server.receive, u, answer)[1]
        inbox, taken = timed(server.close_round)
        spent += taken
    error = np.abs(server.result().sum - vectors[dropped:].sum(axis=0)).max()
    assert error <= clients * 2.0**-16, error
    stayed = slice(dropped, None)
    return {
        "client": median(seconds[stayed].tolist()),
        "server": spent,
        "up": int(up[stayed].max()),
        "down": int(down[stayed].max()),
    }


def main() -> None:
    """Run the case of stdin, after a small round that warms up."""
    case = json.loads(sys.stdin.read())
    costs(6, None, 5, 10, 1, active=case["active"], suite=case["suite"])
    print(json.dumps({"code": secagg.__file__, **costs(**case)}))


if __name__ == "__main__":
    main()
