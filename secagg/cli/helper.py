"""Commands ``secagg helper``: a helper for one-shot sums, with files in and files out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from secagg._files import replace_file
from secagg.cli.addresses import (
    CertificateFile,
    Host,
    KeyFile,
    PlainHttp,
    Port,
    as_certificate,
    as_key,
)
from secagg.cli.console import App, Corrupt, Document, Json, command
from secagg.cli.files import read, read_registry
from secagg.cli.notices import notices
from secagg.errors import ParameterError, SecAggError
from secagg.kit.table import as_json as to_json
from secagg.oneshot import Helper, HelperJournal, OneShotParams, OneShotPolicy
from secagg.oneshot.helper import MAX_LENGTH
from secagg.oneshot.suites import as_suite

app = App(no_args_is_help=True, help="Act as a helper of one-shot sums.")

_START = "\n[bold]Examples[/bold]\n\n"
KEYGEN = _START + "secagg helper keygen helper.journal --json > public.json\n"
ENDORSE = (
    _START + "secagg helper endorse helper.journal --params session.params --json\n\n"
    "secagg helper endorse helper.journal --params a.params --registry clients.json\n"
)
CHECK = (
    _START + "secagg helper check helper.journal --params session.params boxes-1 boxes-2\n\n"
    "secagg helper check helper.journal --params a.params --registry clients.json boxes\n"
)
RESERVE = (
    _START + "secagg helper reserve helper.journal --params session.params --request request "
    "--out reservation boxes-1 boxes-2\n"
)
OPEN = (
    _START + "secagg helper open helper.journal --params session.params --request request "
    "--out answer boxes-1 boxes-2\n\n"
    "secagg helper open helper.journal --params session.params --request request "
    "--out answer --max-length 100000000 boxes\n"
)
SERVE = (
    _START + "secagg helper serve helper.journal --aggregator 3b6a… --registry clients.json "
    "--host 0.0.0.0 --certificate chain.pem --key key.pem\n\n"
    "secagg helper serve helper.journal --aggregator 3b6a… --registry clients.json "
    "--corrupt 0.1 --max-length 100000000\n"
)

Journal = Annotated[Path, typer.Argument(metavar="JOURNAL", help="File with keys and lists.")]
Boxes = Annotated[
    list[Path],
    typer.Argument(metavar="BOXES...", help="Chunks of boxes, from Accumulator.boxes."),
]
Params = Annotated[
    Path, typer.Option("--params", metavar="FILE", help="Output of OneShotParams.to_bytes.")
]
Clients = Annotated[
    Path | None,
    typer.Option(
        "--registry",
        metavar="FILE",
        help="JSON object of client ids to Ed25519 keys in hexadecimal, for active sums alone.",
    ),
]
Request = Annotated[
    Path, typer.Option("--request", metavar="FILE", help="Output of Accumulator.request.")
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="File for the reply, of mode 600.")]
Least = Annotated[
    int, typer.Option("--min-clients", help="The smallest list that this helper opens.")
]
MaxLength = Annotated[
    int, typer.Option(help="Most elements of a vector; memory grows with the length.")
]
MaxClients = Annotated[
    int,
    typer.Option(help="Most clients of a sum, without --registry; time grows with the number."),
]


@app.command(epilog=KEYGEN)
def keygen(
    journal: Journal,
    suite: Annotated[str, typer.Option(metavar="hybrid|x25519", help="HPKE suite.")] = "hybrid",
    as_json: Json = False,
) -> None:
    """Draw a helper's keys, create its journal, and print the public keys.

    Never copy or restore the journal: a helper with an older copy could open twice.
    """
    with command(), HelperJournal.create(journal, as_suite(suite)) as made:
        box, identity = made.public
        document: Document = {
            "journal": str(made.path),
            "suite": suite,
            "hpke": box.hex(),
            "ed25519": identity.hex(),
        }
        _echo(document, json=as_json)


@app.command(epilog=ENDORSE)
def endorse(
    journal: Journal,
    params: Params,
    registry: Clients = None,
    min_clients: Least = 3,
    corrupt: Corrupt = OneShotPolicy.corrupt,
    max_length: MaxLength = MAX_LENGTH,
    max_clients: MaxClients = OneShotPolicy.max_clients,
    as_json: Json = False,
) -> None:
    """Sign parameters that the aggregator relays, and print the signature in hexadecimal.

    The signature states that the parameters have both keys of the journal, as one helper, and
    that this helper would open such sums. Clients with OneShotPolicy(helpers=...) need the
    signatures of all helpers.
    """
    policy = partial(_policy, min_clients, corrupt, max_length, max_clients)
    with command(), _helper(journal, params, registry, policy) as helper:
        document: Document = {
            "helper": helper.number,
            "parameters": helper.params.digest.hex(),
            "endorsement": helper.endorse().hex(),
        }
        _echo(document, json=as_json)


@app.command(epilog=CHECK)
def check(
    journal: Journal,
    boxes: Boxes,
    params: Params,
    registry: Clients = None,
    as_json: Json = False,
) -> None:
    """Check boxes and print the ids that are rejected, which the aggregator drops.

    Nothing is revealed or stored.
    """
    with command(), _helper(journal, params, registry) as helper:
        rejected = _check(helper, boxes)
        document: Document = {"helper": helper.number, "rejected": rejected}
        _echo(document, json=as_json)


def _replying(step: Literal["reserve", "open"], epilog: str, text: str) -> None:
    """Add the command that checks boxes and writes a helper's reply to a request."""

    def reply(
        journal: Journal,
        boxes: Boxes,
        params: Params,
        request: Request,
        out: Out,
        registry: Clients = None,
        min_clients: Least = 3,
        corrupt: Corrupt = OneShotPolicy.corrupt,
        max_length: MaxLength = MAX_LENGTH,
        max_clients: MaxClients = OneShotPolicy.max_clients,
        as_json: Json = False,
    ) -> None:
        policy = partial(_policy, min_clients, corrupt, max_length, max_clients)
        with command(), _helper(journal, params, registry, policy) as helper:
            # the reply would replace the helper's keys and the list of spent ids
            if out.exists() and out.samefile(journal):
                raise ParameterError(
                    f"{out} is the journal with the helper's keys; take another --out"
                )
            rejected = _check(helper, boxes)
            answer = getattr(helper, step)(read(request))
            out.parent.mkdir(parents=True, exist_ok=True)
            replace_file(out, answer, private=True)
            document: Document = {"helper": helper.number, "rejected": rejected}
            _echo(document | {"out": str(out), "bytes": len(answer)}, json=as_json)

    app.command(step, epilog=epilog, help=text)(reply)


_replying(
    "reserve",
    RESERVE,
    "Check boxes, reserve the list of a request, and write the signed reservation.\n\n"
    "The clients of the list are spent, whether the list is opened or not.",
)
_replying(
    "open",
    OPEN,
    "Check boxes, reserve the list of a request, and write the masks of its clients.\n\n"
    "Take requests from the authenticated aggregator only, and send the answer to it alone.",
)


@app.command(epilog=SERVE)
def serve(
    journal: Journal,
    aggregator: Annotated[
        str, typer.Option(metavar="HEX", help="Ed25519 key of the aggregator.")
    ],
    registry: Clients = None,
    min_clients: Least = 3,
    corrupt: Corrupt = OneShotPolicy.corrupt,
    max_length: MaxLength = MAX_LENGTH,
    max_clients: MaxClients = OneShotPolicy.max_clients,
    host: Host = "127.0.0.1",
    port: Port = 8444,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    allow_plain_http: PlainHttp = False,
) -> None:
    """Act as a helper over HTTPS, until Ctrl-C; only the aggregator is served.

    Never copy or restore the journal: a helper with an older copy could open twice.
    """

    async def run() -> None:
        from secagg import http

        with HelperJournal.open(journal) as opened:
            service = http.serve_helper(
                opened,
                as_key(aggregator, "--aggregator"),
                registry=None if registry is None else read_registry(registry),
                policy=_policy(min_clients, corrupt, max_length, max_clients),
                host=host,
                port=port,
                tls=as_certificate(certificate, key),
                allow_plain_http=allow_plain_http,
            )
            async with service as url:
                typer.echo(f"helper: {url}", err=True)
                # never done, so that only Ctrl-C ends the helper
                await asyncio.get_running_loop().create_future()

    with command(), notices():
        asyncio.run(run())


def _policy(
    min_clients: int, corrupt: float, max_length: int, max_clients: int
) -> OneShotPolicy:
    return OneShotPolicy(
        min_clients=min_clients,
        corrupt=corrupt,
        max_length=max_length,
        max_clients=max_clients,
    )


@contextmanager
def _helper(
    journal: Path,
    params: Path,
    registry: Path | None,
    policy: Callable[[], OneShotPolicy] = OneShotPolicy,
) -> Iterator[Helper]:
    """Yield the helper of a journal, and close the journal at the end."""
    # before the journal, which is locked while it is open
    known = OneShotParams.from_bytes(read(params))
    clients = None if registry is None else read_registry(registry)
    with HelperJournal.open(journal) as opened:
        # the policy is made here, where `command` prints the error of a wrong number
        yield Helper(known, opened, registry=clients, policy=policy())


def _check(helper: Helper, boxes: list[Path]) -> list[int]:
    """Check all chunks and return the ids that were rejected in any of them, ascending."""
    rejected: set[int] = set()
    for path in boxes:
        chunk = read(path)
        try:
            rejected.update(helper.check(chunk))
        except SecAggError as error:
            raise ParameterError(f"{path}: {error}") from None
    return sorted(rejected)


def _echo(document: Document, *, json: bool) -> None:
    if json:
        typer.echo(to_json(document))
        return
    for name, value in document.items():
        shown = (", ".join(map(str, value)) or "none") if isinstance(value, list) else value
        typer.echo(f"{name}: {shown}")
