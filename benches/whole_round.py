"""One whole round, client and server apart, against the plain version of the same work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import median

import numpy as np

from benches.plain_round import PlainClient, PlainServer
from benches.ratio import Row
from secagg import Client, FixedPoint, Phase, RoundParams, Server

__all__ = ["ROWS", "one_round"]

N, THRESHOLD, LENGTH, DROPPED = 100, 67, 100_000, 10
REPEATS = 5
PLAIN = "cryptography + numpy + Python integers, no checks"


def whole_round() -> Iterable[Row]:
    """Measure n = 100, d = 100,000, complete graph, 10 % dropped before the masked input."""
    vector = np.random.default_rng(0).normal(size=LENGTH)
    plain_client = PlainClient(N, THRESHOLD, vector)
    plain_server = PlainServer(N, THRESHOLD, LENGTH, DROPPED)
    ours, theirs = [], []
    for _ in range(REPEATS):
        theirs.append((_seconds(plain_client.run), _seconds(plain_server.run)))
        ours.append(one_round(vector))
    setting = f"n = {N}, d = {LENGTH:,}, {DROPPED} dropped"
    for i, who in enumerate(("client", "server")):
        yield Row(
            f"whole {who}, {setting}",
            PLAIN,
            median(pair[i] for pair in ours),
            median(pair[i] for pair in theirs),
        )


def one_round(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    """Return the seconds of one surviving client and of the server."""
    params = RoundParams(
        n_clients=N, threshold=THRESHOLD, length=vector.size, encoding=FixedPoint(clip=8.0)
    )
    clients = [Client(u, params) for u in range(N)]
    server = Server(params)
    watched = N - 1
    client_seconds = server_seconds = 0.0
    inbox = dict.fromkeys(range(N), b"")
    while server.phase is not Phase.FINISHED:
        if server.phase is Phase.MASKED_INPUT:
            inbox = {u: data for u, data in inbox.items() if u >= DROPPED}
        answers = {}
        for u, data in inbox.items():
            start = time.perf_counter()
            answers[u] = clients[u].answer(data, vector)
            client_seconds += (time.perf_counter() - start) if u == watched else 0.0
        start = time.perf_counter()
        for u, answer in answers.items():
            server.receive(u, answer)
        inbox = server.close_round()
        server_seconds += time.perf_counter() - start
    return client_seconds, server_seconds


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


ROWS: list[Callable[[], Iterable[Row]]] = [whole_round]
