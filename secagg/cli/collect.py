"""Commands ``secagg collect``: one-shot sums of many processes beside a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secagg._files import replace_file
from secagg.cli import addresses, sums
from secagg.cli import console as options
from secagg.cli.files import read_registry
from secagg.cli.lines import fact
from secagg.cli.notices import notices, tell
from secagg.cli.summands import content_of
from secagg.encoding import FixedPoint
from secagg.errors import DatabaseError, LinkError, RemoteProtocolError, TooFewSurvivors
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotParams
from secagg.protocol import Registry

if TYPE_CHECKING:
    from secagg.collect import Asking, Closer, Database, Worker
    from secagg.session import HelperLink

app = options.App(no_args_is_help=True, help="Collect reports in a database, and sum them.")

_PAUSE = 1.0
"""Seconds between two looks at a database without work."""
_DATABASE = "postgresql://collector@db.example/sums"
_KEYS = "--helpers helpers.json --identity a.pem"
BEGIN = options.examples(
    f"secagg collect begin {_DATABASE} clients.json --length 1000 --clip 8 {_KEYS}"
)
SERVE = options.examples(
    f"secagg collect serve {_DATABASE} --registry clients.json --host 0.0.0.0 "
    "--certificate chain.pem --key key.pem",
    "secagg collect serve reports.sqlite --registry clients.json",
)
WORK = options.examples(f"secagg collect work {_DATABASE} --registry clients.json {_KEYS}")
CLOSE = options.examples(
    f"secagg collect close {_DATABASE} --registry clients.json {_KEYS} --out sums",
    f"secagg collect close {_DATABASE} --registry clients.json {_KEYS} --out sums --reopen",
)
STATUS = options.examples(f"secagg collect status {_DATABASE} --json")

Where = Annotated[
    str,
    typer.Argument(
        metavar="DATABASE", help="URL of PostgreSQL, or path of a file for a single machine."
    ),
]
Clients = Annotated[
    Path | None,
    options.file_option("Registry of all clients, if security is active.", "--registry"),
]
Helpers = Annotated[
    Path,
    options.file_option(
        'JSON array of helpers: "url", and what secagg helper keygen --json prints.',
        "--helpers",
    ),
]
Key = Annotated[Path, options.file_option("Private key of the aggregator.", "--identity")]


@app.command(epilog=BEGIN)
def begin(
    database: Where,
    registry: addresses.RegistryFile,
    length: options.Length,
    clip: options.Clip,
    helpers: Helpers,
    identity: Key,
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
    with options.command(), _opened(database) as opened:
        aggregator = _aggregator(helpers, identity, authority, allow_plain_http)
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
        _echo(document, f"session {session.number}: {params.digest.hex()}", json=as_json)


@app.command(epilog=SERVE)
def serve(
    database: Where,
    registry: Clients = None,
    host: addresses.Host = "127.0.0.1",
    port: addresses.Port = 8443,
    certificate: addresses.CertificateFile = None,
    key: addresses.KeyFile = None,
    allow_plain_http: addresses.PlainHttp = False,
) -> None:
    """Take clients' reports over HTTPS, until Ctrl-C. This process needs no private key."""
    with options.command(), _opened(database) as opened:

        async def run() -> None:
            from secagg.collect.service import serve_collection

            serving = serve_collection(
                opened,
                registry=None if registry is None else read_registry(registry),
                host=host,
                port=port,
                tls=addresses.as_certificate(certificate, key),
                allow_plain_http=allow_plain_http,
            )
            async with serving as url:
                fact(f"collection: {url}")
                # never done, so that only Ctrl-C ends the service
                await asyncio.get_running_loop().create_future()

        with notices():
            asyncio.run(run())


@app.command(epilog=WORK)
def work(
    database: Where,
    helpers: Helpers,
    identity: Key,
    registry: Clients = None,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
) -> None:
    """Add slices of closing batches, which the helpers check, until Ctrl-C."""
    with options.command(), _opened(database) as opened:
        aggregator = _aggregator(helpers, identity, authority, allow_plain_http)
        known = None if registry is None else read_registry(registry)

        async def run() -> None:
            from secagg.collect import Worker
            from secagg.session.exchange import Thread

            worker = Worker(opened, _asking(aggregator), known, thread=Thread())
            fact("working")
            while True:
                try:
                    idle = not await worker.step()
                except (DatabaseError, LinkError, RemoteProtocolError) as error:
                    # passing, or a person has to act; the slice waits in both cases
                    tell(f"{error}; trying again")
                    idle = True
                if idle:
                    await asyncio.sleep(_PAUSE)

        with notices():
            asyncio.run(run())


@app.command(epilog=CLOSE)
def close(
    database: Where,
    helpers: Helpers,
    identity: Key,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sums.")],
    registry: Clients = None,
    reopen: Annotated[
        bool, options.flag("--reopen", "Open the next batch of the session at once.")
    ] = False,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
    as_json: options.Json = False,
) -> None:
    """Close the newest open batch, and write the sum.

    If an earlier process left closed batches, their sums are written, and no batch is closed.
    So the same command can be repeated after any failure. This process works on slices, too.
    """
    with options.command(), _opened(database) as opened:
        aggregator = _aggregator(helpers, identity, authority, allow_plain_http)
        known = None if registry is None else read_registry(registry)
        sums.prepare(out, 0, None)
        with notices():
            found = asyncio.run(_close(opened, aggregator, known, out, reopen=reopen))
        lines = "\n".join(f"{one['out']}: sum of {one['survivors']} vectors" for one in found)
        _echo({"sums": found}, lines or "no batch is open or closing", json=as_json)


@app.command(epilog=STATUS)
def status(database: Where, as_json: options.Json = False) -> None:
    """Print the state of every batch."""
    with options.command(), _opened(database) as opened:
        from secagg.collect import State, batches, slices

        found = []
        with opened.transaction() as tx:
            for batch in batches.in_states(tx, *State):
                row = {**batch._asdict(), "slices_left": slices.unfinished(tx, batch.number)}
                found.append(row)
        lines = [
            f"batch {one['number']} of session {one['session']}: {one['state']}, "
            f"{options.counted(one['reports'], 'report')}, "
            f"{options.counted(one['slices_left'], 'slice')} left"
            for one in found
        ]
        _echo({"batches": found}, "\n".join(lines) or "no batches", json=as_json)


async def _close(
    database: Database,
    aggregator: sums.Aggregator,
    registry: Registry | None,
    out: Path,
    *,
    reopen: bool,
) -> list[options.Document]:
    """Lead closed batches to their sums; return the files of the sums.

    The newest open batch is closed if there is no other sum to write. So a command that is
    repeated after a crash does not close the next batch.
    """
    from secagg.collect import Closer, State, Worker, batches
    from secagg.session.exchange import Thread

    asking, thread = _asking(aggregator), Thread()
    closer = Closer(database, asking, registry, thread)
    worker = Worker(database, asking, registry, thread=thread)
    found, failed = list[options.Document](), list[TooFewSurvivors]()

    async def write(numbers: Iterable[int]) -> None:
        for number in numbers:
            try:
                found.append(await _sum(number, closer, worker, out))
            except TooFewSurvivors as error:
                # after rejections; this batch must not keep the others from their sums
                failed.append(error)

    with database.transaction() as tx:
        under_way = [one.number for one in batches.in_states(tx, *list(State)[1:-1])]
    await write(under_way)
    if not found:
        with database.transaction() as tx:
            opened = [one.number for one in batches.in_states(tx, State.OPEN)[-1:]]
            closed = [one for one in opened if batches.close(tx, one, reopen=reopen)]
        await write(closed)
    thread.close()
    if failed and not found:
        raise failed[0]
    for error in failed:
        tell(f"{error}")
    return found


async def _sum(number: int, closer: Closer, worker: Worker, out: Path) -> options.Document:
    """Lead a closed batch to its sum, write the sum, and drop the reports."""
    from secagg.collect import State
    from secagg.collect.close import result

    # done: another process came first
    while (state := await closer.state(number)) not in (State.OPENED, State.DONE):
        # slices that other workers lease may come back
        if state == State.CLOSING and not await worker.step():
            await asyncio.sleep(_PAUSE)
        await closer.step(number)
    done = result(closer.database, number)
    assert done is not None  # noqa: S101 - the batch is opened
    # before the reports are dropped: an operator whose disk is full can repeat all
    path = out / f"sum-{number}.npy"
    replace_file(path, content_of(done.sum, ()))
    await closer.step(number)
    return {"out": str(path), "survivors": len(done.survivors)}


def _aggregator(
    helpers: Path, identity: Path, authority: Path | None, plain: bool
) -> sums.Aggregator:
    found = sums.Aggregator.of(helpers, identity, authority, plain=plain)
    assert found is not None  # noqa: S101 - both files were given
    return found


def _asking(aggregator: sums.Aggregator) -> Asking:
    from secagg.collect import Asking

    @asynccontextmanager
    async def reach(params: OneShotParams) -> AsyncIterator[list[HelperLink]]:
        async with aggregator.reach(params, needed=False) as links:
            yield list(links)

    return Asking(reach)


@contextmanager
def _opened(where: str) -> Iterator[Database]:
    # late, since all other commands work without the extras
    from secagg.collect import open_database

    database = open_database(where)
    try:
        yield database
    finally:
        database.close()


def _echo(document: options.Document, text: str, *, json: bool) -> None:
    typer.echo(to_json(document) if json else text)
