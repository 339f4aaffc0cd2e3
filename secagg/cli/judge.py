"""Command ``secagg judge``: a verdict, judged by the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secagg import blame
from secagg.blame.layout import unpack
from secagg.cli.console import Corrupt, Json, called, command, examples, file_option
from secagg.cli.files import read, read_registry
from secagg.graph.graph import CORRUPT
from secagg.kit.table import as_json as to_json
from secagg.protocol import ClientPolicy

EXAMPLES = examples(
    "secagg judge verdict.bin --registry clients.json",
    "secagg judge verdict.bin --registry clients.json --corrupt 0.1 --json",
)
FAULTS = {
    "shares": "dealt shares that do not give the secret that it published",
    "answer": "revealed another share than it had accepted",
    "complaints": "dealt shares of which more clients complain than may collude",
    "contribution": "dealt parts of masks that are not of its seed",
    "complainer": "complained of more clients than may be at fault",
}
"""Faults in words, by the kind of a verdict."""


def judge(
    verdict: Annotated[
        Path, typer.Argument(metavar="FILE", help="Verdict, verdict-*.bin beside a record.")
    ],
    registry: Annotated[Path, file_option("Registry of all clients.", "--registry")],
    corrupt: Corrupt = CORRUPT,
    as_json: Json = False,
) -> None:
    """Judge a verdict: print the client that broke the protocol, or fail.

    A verdict is a proof, which the server of an active round makes. It is judged by the
    registry of the round alone, and by no word of the server. The exit status is 2 if the bytes
    prove nothing, or if clients with this --corrupt reject the parameters. For two clients, or
    an encoding of an application's own, call secagg.blame.check with the clients' policy.
    """
    with command():
        known = read_registry(registry)
        data = read(verdict)
        client = blame.check(data, known, ClientPolicy(corrupt=corrupt))
        kind = unpack(data).kind
        if as_json:
            typer.echo(to_json({"client": client, "name": known.called(client), "kind": kind}))
        else:
            typer.echo(f"client {called(client)} {FAULTS[kind]}")
