"""Command ``secagg simulate``: a round on random vectors, and a check of the sum."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import typer

from secagg._check import check_integer
from secagg.bench.cases import RandomVectors, check_sum, round_params
from secagg.cli import console as options
from secagg.cli import output, planned_noise, suites
from secagg.encoding import FixedPoint
from secagg.errors import SecAggError, TooFewSurvivors
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.kit.timing import peak_memory
from secagg.protocol import NEXT, ClientPolicy
from secagg.protocol.suggestion import suggest_pair
from secagg.server import RoundResult
from secagg.simulate import simulate_round

EXAMPLES = options.examples(
    "secagg simulate --clients 100 --length 100000 --dropout 0.1",
    "secagg simulate --clients 1000 --length 10000 --neighbours 80 --threshold 48",
    "secagg simulate --clients 50 --neighbours 0  [dim]# the complete graph[/dim]",
    "secagg simulate --clients 100 --length 1000 --epsilon 2 --norm 1",
)

# without the first phase, as a client without keys is not in the cohort
_PHASES = list(NEXT["semi-honest"])[1:]


def simulate(
    clients: options.Clients = 100,
    length: options.Length = 10_000,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="Neighbours of a client: an even number, or 0 for all other clients.",
            show_default="recommended by `secagg params`",
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            help="Number of shares that rebuild a client's secret.",
            show_default="recommended by `secagg params`; 70 % of the holders with "
            "--neighbours",
        ),
    ] = None,
    dropout: options.Dropout = DROPOUT,
    corrupt: options.Corrupt = CORRUPT,
    sigma: options.Sigma = 40,
    suite: suites.SuiteOption = None,
    clip: options.Clip = 8.0,
    modulus_bits: options.ModulusBits = None,
    epsilon: planned_noise.Epsilon = None,
    delta: planned_noise.Delta = None,
    rounds: planned_noise.Rounds = None,
    norm: planned_noise.Norm = None,
    seed: Annotated[int, typer.Option(help="Seed of the vectors and the dropouts.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Run one round on random vectors in this process, and check that the sum is exact.

    The fraction --dropout of the clients drops out, each in a random phase after the first.
    With --epsilon the clients add noise, and the error is printed beside the plan's.
    """
    with options.command():
        chosen: int | Literal["auto"] | None = "auto"
        if neighbours is not None:
            chosen = neighbours or None
        plan = planned_noise.planned(
            clients, length, corrupt, dropout,
            epsilon=epsilon, delta=delta, rounds=rounds, norm=norm, bits=modulus_bits,
        )  # fmt: skip
        encoding, asked = FixedPoint(clip, rounding="nearest"), suites.as_chosen(suite)
        if plan is None:
            k, t = suggest_pair(
                clients, corrupt, dropout, "semi-honest", chosen, threshold, sigma
            )
            params = round_params(clients, t, k, length, encoding, modulus_bits, asked)
            params = suites.as_served(params, asked, modulus_bits)
        else:
            params = plan.params(neighbours=chosen, threshold=threshold, suite=asked)
            clip = 0.9 * plan.norm * (3 / length) ** 0.5  # norms of about 0.9 of the largest
        check_integer("seed", seed, 0, (1 << 32) - 1)
        vectors = RandomVectors(clients, length, clip, seed)
        with output.progress("clients", clients) as show:
            try:
                result = simulate_round(
                    vectors,
                    params,
                    dropouts=dropouts(clients, dropout, seed),
                    policy=ClientPolicy(corrupt=corrupt, dropout=dropout, sigma=sigma),
                    progress=show,
                )
            except TooFewSurvivors as error:
                # another simulation would fail, too
                left = f"{error.survivors} clients are left, but {error.needed} are needed"
                remedy = "lower --threshold or --dropout"
                raise SecAggError(f"{error.phase}: {left}; {remedy}") from None
        if plan is None:
            check_sum(result.integers, result.survivors, vectors.__getitem__, encoding)
        document: options.Document = {
            **suites.as_document(params, asked),
            "survivors": len(result.survivors),
            "exact": plan is None,
            "bytes_up": sum(result.bytes_up.values()) / clients,
            "bytes_down": sum(result.bytes_down.values()) / clients,
            "client_seconds": result.client_seconds / clients,
            "server_seconds": result.server_seconds,
            "peak_memory": peak_memory(),
        }
        kind = "exact" if plan is None else "with noise"
        stayed = f"{kind}, of {len(result.survivors)} of {clients} vectors"
        facts, further = [("threshold t", str(params.threshold)), ("sum", stayed)], []
        facts.append(("suite", f"{params.suite}, {suites.in_words(params, asked)}"))
        if plan is not None:
            found = _error(result, vectors, plan.norm)
            document |= {"error": found, "privacy": planned_noise.as_document(plan, params)}
            further = [
                *planned_noise.in_words(plan, params, asked),
                ("measured", f"{found:.3g} an element"),
            ]
        output.echo(params, document, facts, further, json=as_json)


def _error(result: RoundResult, vectors: RandomVectors, norm: float) -> float:
    """Return the root mean square of the mean's error, clipping left out."""
    expected = np.zeros(result.sum.size)
    for vector in map(vectors.__getitem__, result.survivors):
        expected += vector * min(1.0, norm / float(np.linalg.norm(vector)))
    return float(np.sqrt(np.mean((result.sum - expected) ** 2)) / len(result.survivors))


def dropouts(clients: int, fraction: float, seed: int) -> dict[int, str]:
    """Return ⌊fraction · clients⌋ random clients that drop out, with the phase of each."""
    rng = np.random.default_rng([seed, clients])
    leaving = rng.permutation(clients)[: int(fraction * clients)]
    return {int(u): _PHASES[rng.integers(len(_PHASES))] for u in leaving}
