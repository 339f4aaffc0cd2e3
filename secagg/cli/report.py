"""Command ``secagg report``: a client's single message to a collection."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from secagg.cli import addresses
from secagg.cli import console as options
from secagg.cli.files import read, read_helpers, read_identity, read_vector
from secagg.cli.notices import notices
from secagg.encoding import FixedPoint
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotPolicy
from secagg.protocol.key_files import client_of
from secagg.protocol.shape import Bounds

EXAMPLES = options.examples(
    "secagg report https://sums.example:8443 --client alice --identity alice.pem "
    "--vector v.npy --clip 8 --helpers helpers.json"
)


def report(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the collection.")],
    client: addresses.Client,
    vector: Annotated[Path, options.file_option("Vector in numpy's format.")],
    clip: options.Clip,
    helpers: Annotated[
        Path, options.file_option("JSON array of the helpers that this client trusts.")
    ],
    identity: Annotated[
        Path | None,
        options.file_option("Private key, if security is active.", "--identity"),
    ] = None,
    authority: addresses.Authority = None,
    patience: addresses.Patience = 600.0,
    allow_plain_http: addresses.PlainHttp = False,
    as_json: options.Json = False,
) -> None:
    """Send one vector to a collection, and leave when it is stored.

    Only parameters with this clip and these helpers, which all endorse them, get the vector.
    """
    with options.command():
        key = None if identity is None else read_identity(identity)
        trusted = frozenset(one.ed25519 for one in read_helpers(helpers))
        policy = OneShotPolicy(helpers=trusted, bounds=Bounds(FixedPoint(clip)))
        given, name = read_vector(vector), client_of(client)
        options.call_clients([name])
        if authority is not None:
            # the error of ssl would not name the file
            read(authority)

        async def run() -> bytes:
            from secagg.http import send_report
            from secagg.http.address import client_context

            params = await send_report(
                url,
                given,
                name,
                policy=policy,
                identity=key,
                tls=client_context(authority) if url.startswith("https:") else None,
                allow_plain_http=allow_plain_http,
                patience=patience,
            )
            return params.digest

        with notices():
            digest = asyncio.run(run()).hex()
        typer.echo(to_json({"parameters": digest}) if as_json else f"stored under {digest}")
