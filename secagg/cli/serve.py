"""Command ``secagg serve``: private sums as a service over HTTP."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secagg._check import check_integer
from secagg.cli import console as options
from secagg.cli.addresses import (
    AggregatorKey,
    Authority,
    CertificateFile,
    Deadline,
    HelpersFile,
    Host,
    KeyFile,
    Name,
    OperatorPort,
    PlainHttp,
    Port,
    RegistryFile,
    SecurityOption,
    State,
)
from secagg.cli.files import read_registry
from secagg.cli.hosting import Hosting
from secagg.cli.notices import notices
from secagg.cli.sums import Aggregator, Sums, prepare, summed, write
from secagg.encoding import FixedPoint
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotParams

if TYPE_CHECKING:
    from secagg.session import Session

_PATIENCE = 5.0
"""Seconds to wait for a helper before the server listens, while no client waits."""
EXAMPLES = options.examples(
    "secagg serve clients.json --length 1000 --clip 8 --out sums",
    "secagg serve clients.json --length 1000 --clip 8 --out sums --rounds 30 --folder state",
    "secagg serve clients.json --length 1000 --clip 8 --out sums "
    "--helpers h.json --identity a.pem",
)


def serve(
    registry: RegistryFile,
    length: options.Length,
    clip: options.Clip,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sums.")],
    rounds: Annotated[int, typer.Option(help="Number of sums.")] = 1,
    folder: State = None,
    name: Name = "session",
    threshold: Annotated[
        int | None,
        typer.Option(
            help="Number of shares that rebuild a client's secret; with --helpers, number of "
            "helpers that open a sum.",
            show_default="recommended by `secagg params`; 2 with --helpers",
        ),
    ] = None,
    security: SecurityOption = "semi-honest",
    corrupt: options.Corrupt = CORRUPT,
    dropout: options.Dropout = DROPOUT,
    modulus_bits: options.FittingBits = None,
    deadline: Deadline = 600.0,
    helpers: HelpersFile = None,
    identity: AggregatorKey = None,
    authority: Authority = None,
    host: Host = "127.0.0.1",
    port: Port = 8443,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    operator_port: OperatorPort = 8445,
    allow_plain_http: PlainHttp = False,
    as_json: options.Json = False,
) -> None:
    """Add the vectors of all clients that come, and write each sum into a folder.

    Clients run `secagg join`. The page at the operator's port shows the rounds live.
    """
    with options.command():
        known = read_registry(registry)
        check_integer("rounds", rounds, 1, 1 << 20)
        kind = options.as_security(security)
        sums = Sums(
            known,
            length,
            FixedPoint(clip),
            modulus_bits,
            threshold,
            kind,
            corrupt=corrupt,
            dropout=dropout,
            name=name,
            # a resumed run must name its one-shot sums as before
            run=b"" if folder is not None else os.urandom(8),
        )
        aggregator = Aggregator.of(helpers, identity, authority, plain=allow_plain_http)
        # an error is shown before any client waits
        first = sums.params(0, aggregator)
        prepare(out, rounds, folder)
        hosting = Hosting(
            known, name, folder, deadline, kind, host, port, certificate, key, operator_port,
            allow_plain_http,
        )  # fmt: skip
        found: list[options.Document] = []

        async def add(session: Session) -> None:
            for number in range(rounds):
                result = await sums.next(session, number, aggregator)
                found.append(write(out, number, result))
                if not as_json:
                    typer.echo(f"{found[-1]['out']}: {summed(result, known)}")

        async def run() -> None:
            if aggregator is not None and isinstance(first, OneShotParams):
                async with aggregator.reach(first, _PATIENCE):
                    pass  # all helpers endorse
            await hosting.run(add)

        try:
            with notices():
                asyncio.run(run())
        finally:
            # the sums before a failure are written, so they are listed
            if as_json and found:
                typer.echo(to_json({"session": name, "sums": found}))
