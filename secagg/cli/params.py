"""``secagg params``: neighbours and threshold of a round, and its costs."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from secagg import graph
from secagg.cli import console as options
from secagg.cli.estimate import estimate
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
            help="The server: follows the protocol, or later asks different clients for "
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
    """Find neighbours and threshold, and say what a round costs.

    Times are of this machine's primitives, measured now; bytes are those of a client that
    stays to the end and loses nobody, who has the most.
    """
    with options.command():
        server = to_adversary(security)
        found = graph.recommend(clients, corrupt, dropout, server, sigma, eta)
        k, t, best = found.neighbours, found.threshold, found.highest_threshold
        chosen = options.round_params(clients, t, k, length, clip, modulus_bits)
        traffic = client_traffic(chosen, client_id=clients - 1)
        seconds = estimate(chosen, int(dropout * clients))
        document: options.Document = {
            "highest_threshold": best,
            "privacy_bits": _finite(found.privacy_bits),
            "completion_bits": _finite(found.completion_bits),
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
            ("neighbours k", options.neighbours_text(chosen)),
            ("threshold t", f"{t}" if best == t else f"{t} to {best}"),
            ("privacy", _chance(event, found.privacy_bits)),
            *caveat,
            ("completion", _chance("dropouts end the round", found.completion_bits)),
        ]
        options.echo(chosen, document, facts, json=as_json)


def _finite(bits: float) -> float | None:
    return None if bits == math.inf else bits


def _chance(event: str, bits: float) -> str:
    return f"{event}: " + ("never" if _finite(bits) is None else f"at most 2^-{bits:.1f}")
