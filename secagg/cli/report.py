"""Command ``secagg report``: a client's single message to a collection."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Annotated

import typer

from secagg.cli import addresses
from secagg.cli import console as options
from secagg.cli.budgets import (
    BudgetDelta,
    BudgetEpsilon,
    BudgetLedger,
    open_spending,
    spent_as_document,
    spent_in_words,
)
from secagg.cli.files import read, read_identity
from secagg.cli.hosting import one_shot_policy
from secagg.cli.inputs import read_any
from secagg.cli.lines import log_as
from secagg.cli.notices import notices, tell
from secagg.cli.requests import Request
from secagg.cli.suites import RequireHybrid
from secagg.cli.summands import encoding_of
from secagg.cli.vectors import check_given
from secagg.errors import ParameterError
from secagg.kit.table import as_json as to_json
from secagg.protocol.bounds import Bounds
from secagg.protocol.key_files import client_of

EXAMPLES = options.examples(
    "secagg report https://sums.example:8443 --client alice --identity alice.pem "
    "--vector v.npy --clip 8 --helpers helpers.json",
    "secagg report https://sums.example:8443 --client alice --identity alice.pem "
    "--vector counts.csv --integers --clip 100000 --helpers helpers.json --min-clients 100",
    "secagg report https://sums.example:8443 --client alice --identity alice.pem "
    "--vector v.npy --clip 8 --helpers helpers.json --budget 2 --ledger alice.ledger",
)


def report(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the collection.")],
    client: addresses.Client,
    vector: Annotated[
        Path,
        options.file_option(
            "Vector: a CSV file with column names and one row of numbers, or a file in numpy's "
            "format."
        ),
    ],
    clip: options.Clip,
    helpers: Annotated[
        Path, options.file_option("JSON array of the helpers that this client trusts.")
    ],
    identity: Annotated[
        Path | None,
        options.file_option("Private key, if security is active.", "--identity"),
    ] = None,
    integers: Annotated[
        bool, options.flag("--integers", "The vector is of whole numbers, 0 to --clip.")
    ] = False,
    min_clients: addresses.LeastClients = None,
    require_hybrid: RequireHybrid = False,
    parameters: Annotated[
        str | None,
        typer.Option(
            metavar="DIGEST",
            help="Report under these parameters only, to try again after an error.",
            show_default="the newest",
        ),
    ] = None,
    budget: BudgetEpsilon = None,
    delta: BudgetDelta = None,
    ledger: BudgetLedger = None,
    authority: addresses.Authority = None,
    patience: addresses.Patience = 600.0,
    allow_plain_http: addresses.PlainHttp = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    as_json: options.Json = False,
) -> None:
    """Send one vector to a collection, and leave when it is stored.

    Only parameters with this clip and these helpers, which all endorse them, get the vector.
    The column names of a CSV file must be the names of the collection. In place of numbers that
    the sum does not take, zeros are sent, and the command then fails.
    """
    with options.command():
        log_as(log, json=log_json)
        active = identity is not None
        spending = open_spending(ledger, budget, delta, active=active, helped=True)
        key = None if identity is None else read_identity(identity)
        policy = one_shot_policy(
            helpers,
            min_clients,
            Bounds(encoding_of(clip, integers=integers)),
            require_hybrid=require_hybrid,
        )
        wanted = None if parameters is None else _digest(parameters)
        given, name = read_any(vector, integers=integers), client_of(client)
        options.call_clients([name])
        if authority is not None:
            # the error of ssl would not name the file
            read(authority)

        async def run() -> bytes:
            from secagg.http import get_offer, send_report
            from secagg.http.address import client_context
            from secagg.http.reporting import may_be_stored, naming, zeros_stored

            tls = client_context(authority) if url.startswith("https:") else None
            offer = await get_offer(
                url,
                policy=policy,
                digest=wanted,
                tls=tls,
                allow_plain_http=allow_plain_http,
                patience=patience,
            )
            request = Request.from_bytes(offer.message)
            check_given(given, request, offer.params, integers=integers)
            digest = offer.params.digest
            try:
                with naming(digest):
                    await send_report(
                        url,
                        given.vector,
                        name,
                        policy=policy,
                        identity=key,
                        spending=spending,
                        offer=offer,
                        tls=tls,
                        allow_plain_http=allow_plain_http,
                        patience=patience,
                    )
            except asyncio.CancelledError:  # Ctrl-C
                tell(may_be_stored(digest))
                raise
            if given.wrong:
                raise zeros_stored(given.wrong, digest)
            return digest

        with notices():
            digest = asyncio.run(run()).hex()
        if as_json:
            typer.echo(to_json({"parameters": digest} | spent_as_document(spending)))
            return
        typer.echo(f"stored under {digest}")
        if spending is not None:
            typer.echo(spent_in_words(spending))


def _digest(text: str) -> bytes:
    """Return the digest of parameters from hexadecimal."""
    if re.fullmatch("[0-9a-f]{64}", text) is None:
        raise ParameterError(f"--parameters is 64 hexadecimal digits, not {text[:80]!r}")
    return bytes.fromhex(text)
