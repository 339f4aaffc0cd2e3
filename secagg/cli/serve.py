"""Command ``secagg serve``: private sums as a service over HTTP."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from secagg._check import check_integer
from secagg.cli import addresses
from secagg.cli import console as options
from secagg.cli.files import read_registry
from secagg.cli.notices import notices
from secagg.cli.sums import Aggregator, Sums, prepare, summed, write
from secagg.encoding import FixedPoint
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotParams

_PATIENCE = 5.0
"""Seconds to wait for a helper before the server listens, while no client waits."""
EXAMPLES = options.examples(
    "secagg serve clients.json --length 1000 --clip 8 --out sums",
    "secagg serve clients.json --length 1000 --clip 8 --out sums --rounds 30 --folder state",
    "secagg serve clients.json --length 1000 --clip 8 --out sums "
    "--helpers h.json --identity a.pem",
)


def serve(
    registry: Annotated[
        Path, typer.Argument(metavar="REGISTRY", help="JSON file with all clients' keys.")
    ],
    length: options.Length,
    clip: options.Clip,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sums.")],
    rounds: Annotated[int, typer.Option(help="Number of sums.")] = 1,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="State of the session; a killed server goes on with this state.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(help="Name of the session, new for each session.")
    ] = "session",
    threshold: Annotated[
        int | None,
        typer.Option(
            help="Number of shares that rebuild a client's secret; with --helpers, number of "
            "helpers that open a sum.",
            show_default="recommended by `secagg params`; 2 with --helpers",
        ),
    ] = None,
    security: Annotated[
        str, typer.Option(metavar="semi-honest|active", help="Security of the sums.")
    ] = "semi-honest",
    corrupt: options.Corrupt = CORRUPT,
    dropout: options.Dropout = DROPOUT,
    modulus_bits: options.FittingBits = None,
    deadline: Annotated[float, typer.Option(help="Seconds for each phase.")] = 600.0,
    helpers: addresses.HelpersFile = None,
    identity: Annotated[
        Path | None, options.file_option("Private key of the aggregator, with --helpers.")
    ] = None,
    authority: addresses.Authority = None,
    host: addresses.Host = "127.0.0.1",
    port: addresses.Port = 8443,
    certificate: addresses.CertificateFile = None,
    key: addresses.KeyFile = None,
    operator_port: Annotated[
        int, typer.Option(help="Port of status page and metrics, on loopback; 0 for any.")
    ] = 8445,
    allow_plain_http: addresses.PlainHttp = False,
    as_json: options.Json = False,
) -> None:
    """Add the vectors of all clients that come, and write each sum into a folder.

    Clients run `secagg join`. The page at the operator's port shows the rounds live.
    """
    with options.command():
        known = read_registry(registry)
        check_integer("rounds", rounds, 1, 1 << 20)
        sums = Sums(
            known,
            length,
            FixedPoint(clip),
            modulus_bits,
            threshold,
            options.as_security(security),
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
        found: list[options.Document] = []

        async def run() -> None:
            from secagg import http
            from secagg.session import Session

            if aggregator is not None and isinstance(first, OneShotParams):
                async with aggregator.reach(first, _PATIENCE):
                    pass  # all helpers endorse
            session = Session(
                known,
                name=name,
                folder=folder,
                deadlines=deadline,
                registry=known if security == "active" else None,
            )
            served = http.serve(
                session,
                known,
                host=host,
                port=port,
                tls=addresses.as_certificate(certificate, key),
                operator_port=operator_port,
                allow_plain_http=allow_plain_http,
            )
            failed: Exception | None = None
            async with served as at:
                typer.echo(f"members: {at.url}\noperator: {at.operator_url}", err=True)
                try:
                    for number in range(rounds):
                        result = await sums.next(session, number, aggregator)
                        found.append(write(out, number, result))
                        if not as_json:
                            typer.echo(f"{found[-1]['out']}: {summed(result, known)}")
                except Exception as error:
                    # an error out of the block leaves the session open, and the clients wait:
                    # the same command tries again with the state in the folder
                    if folder is not None:
                        raise
                    # without state no command can go on, so the session must end first
                    failed = error
            if failed is not None:
                raise failed

        try:
            with notices():
                asyncio.run(run())
        finally:
            # the sums before a failure are written, so they are listed
            if as_json and found:
                typer.echo(to_json({"session": name, "sums": found}))
