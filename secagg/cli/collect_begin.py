"""Command ``secagg collect begin``: a session, which all helpers endorse."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from secagg.cli import addresses, collecting
from secagg.cli import console as options
from secagg.cli.collecting import DATABASE, KEYS
from secagg.cli.files import read_registry
from secagg.cli.lines import log_as
from secagg.cli.notices import notices
from secagg.cli.privacy import NoiseSigma, as_noise, told
from secagg.cli.requests import Request
from secagg.cli.summands import Columns, Length, Whole, encoding_of, named
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.oneshot import OneShotParams

EXAMPLES = options.examples(
    f"secagg collect begin {DATABASE} clients.json --length 1000 --clip 8 {KEYS}",
    f"secagg collect begin {DATABASE} clients.json --columns visits,deaths --integers "
    f"--clip 100000 {KEYS}",
)


def begin(
    database: collecting.Where,
    registry: addresses.RegistryFile,
    clip: options.Clip,
    helpers: collecting.Helpers,
    identity: collecting.Key,
    length: Length = None,
    columns: Columns = None,
    integers: Whole = False,
    noise: NoiseSigma = None,
    name: addresses.Name = "session",
    clients: Annotated[
        int | None,
        typer.Option(help="Most clients of a batch.", show_default="all of the registry"),
    ] = None,
    min_clients: Annotated[
        int | None,
        typer.Option(
            help="Least number of clients in a sum; a sum over fewer is never opened.",
            show_default="70 % of the most clients",
        ),
    ] = None,
    threshold: Annotated[
        int | None, typer.Option(help="Helpers that open a sum.", show_default="2")
    ] = None,
    security: addresses.SecurityOption = "active",
    corrupt: options.Corrupt = CORRUPT,
    dropout: options.Dropout = DROPOUT,
    modulus_bits: options.FittingBits = None,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    as_json: options.Json = False,
) -> None:
    """Begin a session: let all helpers endorse its parameters, and open its first batch.

    Security is active by default, other than of `secagg serve`: the service of a collection
    has no login, and each report has the signature of its client.
    """
    with options.command(), collecting.opened(database, new=True) as opened:
        log_as(log, json=log_json)
        from secagg.collect import batches, sessions
        from secagg.session import bind

        aggregator = collecting.aggregator_of(helpers, identity, authority, allow_plain_http)
        names, size = named(columns, length)
        message = Request(columns=names).to_bytes()
        params = OneShotParams.suggest(
            len(read_registry(registry)) if clients is None else clients,
            size,
            encoding_of(clip, integers=integers),
            helpers=[(one.hpke, one.ed25519) for one in aggregator.helpers],
            security=options.as_security(security),
            corrupt=corrupt,
            dropout=dropout,
            threshold=threshold,
            min_clients=min_clients,
            session=bind(name.encode(), message),
            modulus_bits=modulus_bits,
            noise=as_noise(noise),
        )
        sessions.check_lists(params)  # before the helpers endorse
        privacy = told(params)

        async def run() -> list[bytes]:
            async with aggregator.endorsed(params) as (_, endorsements):
                return endorsements

        with notices():
            endorsements = asyncio.run(run())
        with opened.transaction() as tx:
            session = batches.begin(tx, params, endorsements, message)
            if batches.current(tx, session) is None:
                raise ParameterError(
                    f"session {session.number} has these parameters, and its batches are "
                    "closed; take another --name"
                )
        document = {"session": session.number, "parameters": params.digest.hex(), **privacy}
        text = f"session {session.number}: {params.digest.hex()}"
        collecting.echo(document, text, json=as_json)
