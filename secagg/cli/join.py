"""Command ``secagg join``: a client of private sums over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from secagg.cli.addresses import Authority, HelpersFile, PlainHttp
from secagg.cli.console import Json, call_clients, command, examples, file_option
from secagg.cli.files import read, read_helpers, read_identity, read_registry
from secagg.cli.notices import notices
from secagg.cli.vectors import Vectors
from secagg.errors import LinkError, SecAggError
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotPolicy
from secagg.protocol.key_files import client_of
from secagg.session import Completed

EXAMPLES = examples(
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --vector v.npy",
    "secagg join http://127.0.0.1:8443 --client 7 --identity 7.pem "
    "--vector mon.npy --vector tue.npy",
)


def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="Server of the session.")],
    client: Annotated[str, typer.Option(help="Name or id of this client.")],
    identity: Annotated[Path, file_option("Private key, of secagg identity keygen.")],
    vector: Annotated[
        list[Path],
        file_option(
            "Vector in numpy's format: the first is for sum 0 of the session, the next "
            "for sum 1. After a restart give them all again."
        ),
    ],
    registry: Annotated[
        Path | None, file_option("Registry of all clients, if security is active.")
    ] = None,
    helpers: HelpersFile = None,
    authority: Authority = None,
    patience: Annotated[
        float, typer.Option(help="Seconds to wait for a server that does not answer.")
    ] = 600.0,
    allow_plain_http: PlainHttp = False,
    as_json: Json = False,
) -> None:
    """Add a vector to each of the server's sums, until the session ends.

    Each sum gets the vector with the sum's number, once: the difference of two sums over almost
    the same clients can be a single vector. The client ends at a sum without a vector.
    """
    with command():
        train = Vectors(vector)

        key, name = read_identity(identity), client_of(client)
        call_clients([name])

        async def run() -> Completed:
            from secagg import http
            from secagg.http.address import client_context

            policy = None
            if helpers is not None:
                trusted = frozenset(one.ed25519 for one in read_helpers(helpers))
                policy = OneShotPolicy(helpers=trusted)
            if authority is not None:
                # the error of ssl would not name the file
                read(authority)
            try:
                return await http.join(
                    url,
                    name,
                    train,
                    identity=key,
                    registry=None if registry is None else read_registry(registry),
                    one_shot_policy=policy,
                    tls=client_context(authority) if url.startswith("https:") else None,
                    allow_plain_http=allow_plain_http,
                    patience=patience,
                )
            except LinkError as error:
                if error.check != "signature":
                    raise
                raise LinkError(
                    f"{error}; check that --identity {identity} is the key of --client "
                    f"{client}, and that the server's registry has {key.public.hex()} for it",
                    check=error.check,
                ) from None

        with notices() as noted:
            sums = asyncio.run(run())
        if as_json:
            counts = {"sums": len(sums.rounds), "reports": len(sums.reports)}
            numbers = sorted(sums.rounds + sums.reports)
            typer.echo(to_json({"client": client, **counts, "numbers": numbers}))
        else:
            typer.echo(_counted(sums, len(vector)))
        # the session ended in order, but a script must see the failure
        if not sums:
            remedy = noted.hint or (
                "; join before the server has its clients, in one process, and ask its "
                "operator if the sum failed"
            )
            raise SecAggError(f"the session ended, and client {client} was in no sum{remedy}")


def _counted(done: Completed, given: int) -> str:
    """Return the sums of a client in words; no client hears whether helpers opened a sum."""
    numbers = sorted(done.rounds + done.reports)
    what = "reports sent" if done.reports else "sums"
    text = f"{what}: {len(numbers)}"
    if numbers and len(numbers) < given:
        text += f", in sums {', '.join(map(str, numbers))} of {given}"
    return text
