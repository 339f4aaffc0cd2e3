"""Command ``secagg collect begin``: a session, which all helpers endorse."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from secagg.cli import addresses, collecting
from secagg.cli import console as options
from secagg.cli.collecting import DATABASE, KEYS
from secagg.cli.files import read_registry
from secagg.cli.notices import notices
from secagg.encoding import FixedPoint
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.oneshot import OneShotParams

EXAMPLES = options.examples(
    f"secagg collect begin {DATABASE} clients.json --length 1000 --clip 8 {KEYS}"
)


def begin(
    database: collecting.Where,
    registry: addresses.RegistryFile,
    length: options.Length,
    clip: options.Clip,
    helpers: collecting.Helpers,
    identity: collecting.Key,
    name: addresses.Name = "session",
    clients: Annotated[
        int | None,
        typer.Option(help="Most clients of a batch.", show_default="all of the registry"),
    ] = None,
    threshold: Annotated[int | None, typer.Option(help="Helpers that open a sum.")] = None,
    security: addresses.SecurityOption = "active",
    corrupt: options.Corrupt = CORRUPT,
    dropout: options.Dropout = DROPOUT,
    modulus_bits: options.FittingBits = None,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
    as_json: options.Json = False,
) -> None:
    """Begin a session: let all helpers endorse its parameters, and open its first batch."""
    with options.command(), collecting.opened(database) as opened:
        aggregator = collecting.aggregator_of(helpers, identity, authority, allow_plain_http)
        params = OneShotParams.suggest(
            len(read_registry(registry)) if clients is None else clients,
            length,
            FixedPoint(clip),
            helpers=[(one.hpke, one.ed25519) for one in aggregator.helpers],
            security=options.as_security(security),
            corrupt=corrupt,
            dropout=dropout,
            threshold=threshold,
            session=name.encode(),
            modulus_bits=modulus_bits,
        )

        async def run() -> list[bytes]:
            async with aggregator.endorsed(params) as (_, endorsements):
                return endorsements

        with notices():
            endorsements = asyncio.run(run())
        from secagg.collect import batches

        with opened.transaction() as tx:
            session = batches.begin(tx, params, endorsements)
        document = {"session": session.number, "parameters": params.digest.hex()}
        collecting.echo(
            document, f"session {session.number}: {params.digest.hex()}", json=as_json
        )
