"""``secagg simulate``: a round on random vectors, with its sum checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer

from secagg import graph
from secagg._check import check_integer
from secagg.bench.cases import RandomVectors, check_sum
from secagg.bench.timing import peak_memory
from secagg.cli import console as options
from secagg.encoding import FixedPoint
from secagg.errors import ParameterError
from secagg.protocol import ClientPolicy, Phase, RoundParams
from secagg.simulate import SimulatedRound, simulate_round

EXAMPLES = """
[bold]Examples[/bold]

secagg simulate --clients 100 --length 100000 --dropout 0.1

secagg simulate --clients 1000 --length 10000 --neighbours 40 --threshold 22

secagg simulate --clients 50 --neighbours 0  [dim]# everyone shares with everyone[/dim]
"""

_LEAVING = (Phase.ADVERTISE_KEYS, Phase.SHARE_KEYS, Phase.MASKED_INPUT, Phase.UNMASKING)


def simulate(
    clients: options.Clients = 100,
    length: options.Length = 10_000,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="With how many others each shares keys: an even number, or 0 for all.",
            show_default="what `secagg params` finds for the same options",
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            help="How many holders it takes to rebuild a client's secrets.",
            show_default="what `secagg params` finds; with --neighbours two thirds",
        ),
    ] = None,
    dropout: options.Dropout = 0.05,
    corrupt: options.Corrupt = 0.05,
    sigma: options.Sigma = 40,
    clip: options.Clip = 8.0,
    modulus_bits: options.ModulusBits = None,
    seed: Annotated[int, typer.Option(help="Of the vectors and the dropouts.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Run one round on random vectors in this process, and check that its sum is exact.

    Of the clients, the fraction --dropout vanishes, each in a random phase.
    """
    with options.command():
        if neighbours is None:
            found = graph.recommend(clients, corrupt, dropout, sigma=sigma)
            k, t = found.neighbours, found.threshold
        else:
            k = neighbours or None
            t = -(-2 * (clients if k is None else k + 1) // 3)
        t = t if threshold is None else threshold
        params = options.round_params(clients, t, k, length, clip, modulus_bits)
        policy = ClientPolicy(corrupt=corrupt, dropout=dropout, sigma=sigma)
        with options.progress("clients", clients) as show:
            result = run(params, policy, dropout, seed, show)
        document: options.Document = {
            "survivors": len(result.survivors),
            "exact": True,
            "bytes_up": sum(result.bytes_up.values()) / clients,
            "bytes_down": sum(result.bytes_down.values()) / clients,
            "client_seconds": result.client_seconds / clients,
            "server_seconds": result.server_seconds,
            "peak_memory": peak_memory(),
        }
        facts = [
            ("sum", f"exact, of {len(result.survivors)} of {clients} vectors"),
            ("neighbours k", options.neighbours_text(params)),
            ("threshold t", str(t)),
        ]
        options.echo(params, document, facts, json=as_json)


def dropouts(clients: int, fraction: float, seed: int) -> dict[int, str]:
    """Draw the clients that drop out, ⌊fraction · clients⌋ of them, and the phase of each."""
    rng = np.random.default_rng([seed, clients])
    leaving = rng.permutation(clients)[: int(fraction * clients)]
    return {int(u): _LEAVING[rng.integers(len(_LEAVING))] for u in leaving}


def run(
    params: RoundParams,
    policy: ClientPolicy,
    dropout: float,
    seed: int,
    progress: Callable[[str, int, int], None],
) -> SimulatedRound:
    """Run a round on random vectors, and compare its sum with that of plain integers.

    Parameters
    ----------
    params : RoundParams
        Unweighted, with a FixedPoint that rounds to nearest.
    policy, progress
        See `secagg.simulate_round`.
    dropout : float
        Fraction of the clients that drops out, each in a random phase.
    seed : int
        0 ≤ seed < 2^32.

    Raises
    ------
    ParameterError
        A value is out of range, or the policy rejects the parameters.
    TooFewSurvivors
        Too many dropped out.
    SecAggError
        The sum is not exact, which is a defect of this library.
    """
    check_integer("seed", seed, 0, (1 << 32) - 1)
    encoding = params.encoding
    if not isinstance(encoding, FixedPoint):
        raise ParameterError(f"encoding must be a FixedPoint, not {encoding!r}")
    vectors = RandomVectors(params.n_clients, params.length, encoding.clip, seed)
    result = simulate_round(
        vectors,
        params,
        dropouts=dropouts(params.n_clients, dropout, seed),
        policy=policy,
        progress=progress,
    )
    check_sum(result.integers, result.survivors, vectors.__getitem__, encoding)
    return result
