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
from secagg.cli import addresses
from secagg.cli import console as options
from secagg.cli.files import read, read_registry
from secagg.cli.lines import fact, log_as
from secagg.cli.notices import notices
from secagg.errors import ParameterError, SecAggError
from secagg.kit.table import as_json as to_json
from secagg.oneshot import Helper, HelperJournal, OneShotParams, OneShotPolicy
from secagg.oneshot.helper import MAX_LENGTH
from secagg.protocol.suites import as_suite

app = options.App(no_args_is_help=True, help="Act as a helper of one-shot sums.")

KEYGEN = options.examples("secagg helper keygen helper.journal --json > public.json")
ENDORSE = options.examples(
    "secagg helper endorse helper.journal --params session.params --json",
    "secagg helper endorse helper.journal --params a.params --registry clients.json",
)
CHECK = options.examples(
    "secagg helper check helper.journal --params session.params boxes-1 boxes-2",
    "secagg helper check helper.journal --params a.params --registry clients.json boxes",
)
RESERVE = options.examples(
    "secagg helper reserve helper.journal --params session.params --request request "
    "--out reservation boxes-1 boxes-2"
)
OPEN = options.examples(
    "secagg helper open helper.journal --params session.params --request request "
    "--out answer boxes-1 boxes-2",
    "secagg helper open helper.journal --params session.params --request request "
    "--out answer --max-length 100000000 boxes",
)
SERVE = options.examples(
    "secagg helper serve helper.journal --aggregator 3b6a… --registry clients.json "
    "--host 0.0.0.0 --certificate chain.pem --key key.pem",
    "secagg helper serve helper.journal --aggregator 3b6a… --registry clients.json "
    "--corrupt 0.1 --max-length 100000000",
)

Journal = Annotated[Path, typer.Argument(metavar="JOURNAL", help="File with keys and lists.")]
Boxes = Annotated[
    list[Path],
    typer.Argument(metavar="BOXES...", help="Chunks of boxes, from Accumulator.boxes."),
]
Params = Annotated[Path, options.file_option("Output of OneShotParams.to_bytes.", "--params")]
Clients = Annotated[
    Path | None,
    options.file_option(
        "JSON object of client ids to Ed25519 keys in hexadecimal, for active sums alone.",
        "--registry",
    ),
]
Request = Annotated[Path, options.file_option("Output of Accumulator.request.", "--request")]
Out = Annotated[Path, options.file_option("File for the reply, of mode 600.")]
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
    as_json: options.Json = False,
) -> None:
    """Draw a helper's keys, create its journal, and print the public keys.

    Never copy or restore the journal: a helper with an older copy could open twice. Keys and
    journal live as long as the server's session, its --name, with all its sums. A new session
    gets new keys of all helpers, who then delete the old journals.
    """
    with options.command(), HelperJournal.create(journal, as_suite(suite)) as made:
        box, identity = made.public
        keys = {"hpke": box.hex(), "ed25519": identity.hex()}
        _echo({"journal": str(made.path), "suite": suite} | keys, json=as_json)


@app.command(epilog=ENDORSE)
def endorse(
    journal: Journal,
    params: Params,
    registry: Clients = None,
    min_clients: Least = 3,
    corrupt: options.Corrupt = OneShotPolicy.corrupt,
    max_length: MaxLength = MAX_LENGTH,
    max_clients: MaxClients = OneShotPolicy.max_clients,
    as_json: options.Json = False,
) -> None:
    """Sign parameters that the aggregator relays, and print the signature in hexadecimal.

    The signature states that the parameters have both keys of the journal, as one helper, and
    that this helper would open such sums. Clients with OneShotPolicy(helpers=...) need the
    signatures of all helpers.
    """
    policy = partial(_policy, min_clients, corrupt, max_length, max_clients)
    with options.command(), _helper(journal, params, registry, policy) as helper:
        document: options.Document = {
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
    as_json: options.Json = False,
) -> None:
    """Check boxes and print the ids that are rejected, which the aggregator drops.

    Nothing is revealed or stored.
    """
    with options.command(), _helper(journal, params, registry) as helper:
        _echo({"helper": helper.number, "rejected": _check(helper, boxes)}, json=as_json)


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
        corrupt: options.Corrupt = OneShotPolicy.corrupt,
        max_length: MaxLength = MAX_LENGTH,
        max_clients: MaxClients = OneShotPolicy.max_clients,
        as_json: options.Json = False,
    ) -> None:
        policy = partial(_policy, min_clients, corrupt, max_length, max_clients)
        with options.command(), _helper(journal, params, registry, policy) as helper:
            # the reply would replace the helper's keys and the list of spent ids
            if out.exists() and out.samefile(journal):
                raise ParameterError(
                    f"{out} is the journal with the helper's keys; take another --out"
                )
            checked = {"helper": helper.number, "rejected": _check(helper, boxes)}
            answer = getattr(helper, step)(read(request))
            out.parent.mkdir(parents=True, exist_ok=True)
            replace_file(out, answer, private=True)
            _echo(checked | {"out": str(out), "bytes": len(answer)}, json=as_json)

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
    corrupt: options.Corrupt = OneShotPolicy.corrupt,
    max_length: MaxLength = MAX_LENGTH,
    max_clients: MaxClients = OneShotPolicy.max_clients,
    host: addresses.Host = "127.0.0.1",
    port: addresses.Port = 8444,
    certificate: addresses.CertificateFile = None,
    key: addresses.KeyFile = None,
    allow_plain_http: addresses.PlainHttp = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
) -> None:
    """Act as a helper over HTTPS, until Ctrl-C; only the aggregator is served.

    Never copy or restore the journal: a helper with an older copy could open twice.
    """

    async def run() -> None:
        from secagg import http

        with HelperJournal.open(journal) as opened:
            service = http.serve_helper(
                opened,
                addresses.as_key(aggregator, "--aggregator"),
                registry=None if registry is None else read_registry(registry),
                policy=_policy(min_clients, corrupt, max_length, max_clients),
                host=host,
                port=port,
                tls=addresses.as_certificate(certificate, key),
                allow_plain_http=allow_plain_http,
            )
            async with service as url:
                fact(f"helper: {url}")
                # never done, so that only Ctrl-C ends the helper
                await asyncio.get_running_loop().create_future()

    with options.command():
        log_as(log, json=log_json)
        with notices():
            asyncio.run(run())


def _policy(
    min_clients: int, corrupt: float, max_length: int, max_clients: int
) -> OneShotPolicy:
    return OneShotPolicy(
        min_clients=min_clients, corrupt=corrupt, max_length=max_length, max_clients=max_clients
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


def _echo(document: options.Document, *, json: bool) -> None:
    if json:
        typer.echo(to_json(document))
        return
    for name, value in document.items():
        shown = (", ".join(map(str, value)) or "none") if isinstance(value, list) else value
        typer.echo(f"{name}: {shown}")
