"""``secagg params``: neighbours and threshold of a round, and its costs."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from secagg import graph
from secagg.bench.cases import round_params
from secagg.cli import console as options
from secagg.cli.estimate import estimate
from secagg.encoding import FixedPoint
from secagg.graph.assumptions import to_adversary
from secagg.protocol.traffic import client_traffic

EXAMPLES = """
[bold]Examples[/bold]

secagg params --clients 1000 --corrupt 0.05 --dropout 0.05

secagg params --clients 10000 --corrupt 0.33 --dropout 0.1 --length 1000000 --json
"""


def params(
    clients: options.Clients,
    corrupt: options.Corrupt = 0.05,
    dropout: options.Dropout = 0.05,
    security: Annotated[
        str,
        typer.Option(
            metavar="semi-honest|semi-malicious",
            help="The server follows the protocol, or later asks different clients for "
            "different kinds of share.",
        ),
    ] = "semi-honest",
    length: options.Length = 100_000,
    clip: options.Clip = 8.0,
    modulus_bits: options.ModulusBits = None,
    sigma: options.Sigma = 40,
    eta: Annotated[
        int, typer.Option(help="The round fails with probability 2^-eta at most.")
    ] = 30,
    as_json: options.Json = False,
) -> None:
    """Find neighbours and threshold, and estimate the costs of a round.

    Times are of this machine's primitives, measured now. Bytes are the most of any client: it
    stays to the end, and no neighbour drops out.
    """
    with options.command():
        server = to_adversary(security)
        found = graph.recommend(clients, corrupt, dropout, server, sigma, eta)
        t, best = found.threshold, found.highest_threshold
        encoding = FixedPoint(clip, rounding="nearest")
        chosen = round_params(clients, t, found.neighbours, length, encoding, modulus_bits)
        traffic = client_traffic(chosen, client_id=clients - 1)
        seconds = estimate(chosen, int(dropout * clients))
        bits = (found.privacy_bits, found.completion_bits)
        privacy, completion = (None if one == math.inf else one for one in bits)
        document: options.Document = {
            "highest_threshold": best,
            "privacy_bits": privacy,
            "completion_bits": completion,
            "bytes_up": sum(phase.up for phase in traffic.values()),
            "bytes_down": sum(phase.down for phase in traffic.values()),
            "phases": {
                str(phase): {"bytes_up": each.up, "bytes_down": each.down}
                for phase, each in traffic.items()
            },
            "client_seconds": seconds.client,
            "server_seconds": seconds.server,
        }
        event, caveat = "a client is exposed", []
        if server == "semi-malicious":
            event = "both secrets of one client are rebuilt"
            caveat = [("", "not counted: dropouts that such a server invents")]
        facts = [
            ("threshold t", f"{t}" if best == t else f"{t} to {best}"),
            ("privacy", f"{event}: {_chance(privacy)}"),
            *caveat,
            ("completion", f"dropouts end the round: {_chance(completion)}"),
        ]
        options.echo(chosen, document, facts, json=as_json)


def _chance(bits: float | None) -> str:
    return "never" if bits is None else f"at most 2^-{bits:.1f}"
