"""Cases of secagg and fedmf, written for this release and the earlier ones of `releases`.

A case takes its sizes and returns the measure of one run; what it prepares is not timed. All
imports of secagg are those of the release whose process this is.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import secagg
from benches.plain import CLIP, F64
from benches.speed.clock import Measure, timed
from benches.speed.moved import find, x25519

STARTS = 5
"""Starts of an interpreter, whose times have more noise than what an import adds."""


def masks(keys: int, length: int, bits: int) -> Measure:
    """Return the measure of adding k masks to d words of 32 or 64 bits."""
    rng, ring = np.random.default_rng(0), find("Ring")(1 << bits)
    acc, sums = np.zeros(length, f"uint{bits}"), find("MaskSum")()
    for j in range(keys):
        sums.add(rng.bytes(16), negate=bool(j % 2))
    return timed(lambda: sums.apply(acc, ring))


class Transcript(NamedTuple):
    """Messages of a round whose random bytes come from seeds.

    A party can so be run again alone. `inbox` has what the last client receives, and `answers`
    the messages of all clients, phase by phase.
    """

    params: secagg.RoundParams
    inbox: list[bytes]
    answers: list[dict[int, bytes]]


def client(n: int, threshold: int, length: int, dropped: int) -> Measure:
    """Return the measure of a surviving client's whole round on the complete graph."""
    vector = _vector(length)
    played = _played(n, threshold, length, dropped)

    def run() -> None:
        one = _client(n - 1, played.params)
        for phase, data in enumerate(played.inbox):
            _answer(one, phase, data, vector)

    return timed(run)


def server(n: int, threshold: int, length: int, dropped: int) -> Measure:
    """Return the measure of a server's whole round on the complete graph.

    So many clients drop out after sharing keys, when it costs the server most. The sum is
    checked in each run.
    """
    played, due = _played(n, threshold, length, dropped), (n - dropped) * _vector(length)

    def run() -> None:
        one = _server(played.params)
        for answers in played.answers:
            for u, answer in answers.items():
                one.receive(u, answer)
            one.close_round()
        error = np.abs(np.asarray(one.result().sum) - due).max()
        assert error <= n * 2.0**-16, error

    return timed(run)


def round_part(
    part: str, n: int, neighbours: int | None, length: int, dropout: float
) -> Measure:
    """Return the measure of a "client", in the mean, or of the "server" in a simulated round.

    Two thirds of the shares rebuild a secret. A fraction `dropout` of the clients drops out
    after sharing keys.
    """
    holders = n if neighbours is None else neighbours + 1
    params = secagg.RoundParams(
        n_clients=n,
        threshold=-(-2 * holders // 3),
        length=length,
        encoding=secagg.FixedPoint(CLIP, 10),
        neighbours=neighbours,
        **x25519(secagg.RoundParams),
    )
    rows = np.broadcast_to(_vector(length), (n, length))
    gone = dict.fromkeys(range(int(dropout * n)), "masked_input")

    def run() -> float:
        # costs of a fixed k are measured, also where k suits fewer colluders than the default's
        policy = secagg.ClientPolicy(corrupt=0.05, dropout=0.05)
        done = secagg.simulate_round(rows, params, dropouts=gone, policy=policy)
        return done.client_seconds / n if part == "client" else done.server_seconds

    return run


def later_rounds(users: int, items: int, ratings: int, neighbours: int | None) -> Measure:
    """Return the measure of a training's sums after its first round.

    The ratings are simulated in the shape of a data set, whose values a sum does not depend on.
    The seconds are those of all clients and the server together, the median of three rounds.
    """
    from fedmf import FedMF, SecAggSum, Trainer

    drawn = find("simulate")(users, items, ratings)

    def run() -> float:
        model = FedMF(k=20, update="paper", rate=0.0005)
        summing = SecAggSum(neighbours=neighbours, **x25519(SecAggSum))
        trained = Trainer(model, summing, rounds=4).fit(drawn)
        later = trained.history_.rounds[1:]
        return median(one.client_seconds + one.server_seconds for one in later)

    return run


def one_shot(length: int, clients: int, suite: Any) -> Measure:
    """Return the measure of a client's message in a one-shot sum with 2 of 2 helpers."""
    from secagg.oneshot import OneShotParams, report
    from secagg.simulate import temporary_journals

    with temporary_journals(2, suite) as journals:
        params = OneShotParams(
            n_clients=clients,
            length=length,
            encoding=secagg.FixedPoint(CLIP, rounding="nearest"),
            helpers=tuple(journal.public for journal in journals),
            threshold=2,
            min_clients=-(-7 * clients // 10),
            suite=suite,
            session=b"bench",
        )
    vector, identity = _vector(length), secagg.Identity.generate()
    return timed(lambda: report(vector, params, 0, identity=identity))


def imports(statement: str) -> Measure:
    """Return the measure of a statement in a fresh interpreter, beyond ``import numpy``.

    Both are started in turn, `STARTS` times; the measure is the difference of the least times.
    """

    def seconds(text: str) -> float:
        start = perf_counter()
        subprocess.run([sys.executable, "-c", text], check=True)  # noqa: S603 - of `rows`
        return perf_counter() - start

    def run() -> float:
        with_it = f"import numpy; {statement}"
        taken = [(seconds("import numpy"), seconds(with_it)) for _ in range(STARTS)]
        return min(both for _, both in taken) - min(numpy for numpy, _ in taken)

    return run


def _played(n: int, threshold: int, length: int, dropped: int) -> Transcript:
    params = secagg.RoundParams(
        n_clients=n,
        threshold=threshold,
        length=length,
        encoding=secagg.FixedPoint(CLIP),
        **x25519(secagg.RoundParams),
    )
    vector, server = _vector(length), _server(params)
    clients = {u: _client(u, params) for u in range(n)}
    inbox = dict.fromkeys(range(n), b"")
    received: list[bytes] = []
    messages: list[dict[int, bytes]] = []
    for phase in range(4):
        if phase == 2:
            inbox = {u: data for u, data in inbox.items() if u >= dropped}
        answers = {}
        for u in list(inbox):
            data = inbox.pop(u)
            if u == n - 1:
                received.append(data)
            answers[u] = _answer(clients[u], phase, data, vector)
            server.receive(u, answers[u])
        messages.append(answers)
        inbox = server.close_round()
    return Transcript(params, received, messages)


def _answer(one: secagg.Client, phase: int, data: bytes, vector: F64) -> bytes:
    match phase:
        case 0:
            return one.advertise_keys()
        case 1:
            return one.share_keys(data)
        case 2:
            return one.masked_input(data, vector)
        case _:
            return one.unmask(data)


def _client(u: int, params: secagg.RoundParams) -> secagg.Client:
    return secagg.Client(u, params, entropy=np.random.default_rng(u).bytes)


def _server(params: secagg.RoundParams) -> secagg.Server:
    return secagg.Server(params, entropy=np.random.default_rng(params.n_clients).bytes)


def _vector(length: int) -> F64:
    return np.random.default_rng(0).uniform(-CLIP, CLIP, length)
