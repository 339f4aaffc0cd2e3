"""Commands ``secagg collect``: one-shot sums of many processes beside a database."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Annotated

import typer

from secagg.cli import addresses, collect_begin, collect_close, collect_drop, collecting
from secagg.cli import console as options
from secagg.cli.collecting import DATABASE, KEYS
from secagg.cli.files import read_registry
from secagg.cli.lines import fact, log_as
from secagg.cli.notices import notices, tell
from secagg.errors import (
    DatabaseError,
    LinkError,
    ParameterError,
    RemoteProtocolError,
    needing,
)

if TYPE_CHECKING:
    from secagg.collect import Database

app = options.App(no_args_is_help=True, help="Collect reports in a database, and sum them.")
app.command(epilog=collect_begin.EXAMPLES)(collect_begin.begin)
app.command(epilog=collect_close.EXAMPLES)(collect_close.close)
app.command(epilog=collect_drop.EXAMPLES)(collect_drop.drop)

SERVE = options.examples(
    f"secagg collect serve {DATABASE} --registry clients.json --host 0.0.0.0 "
    "--certificate chain.pem --key key.pem",
    "secagg collect serve reports.sqlite --registry clients.json --operator-port 8445",
    f"secagg collect serve {DATABASE} --registry clients.json --origin https://app.example",
)
WORK = options.examples(f"secagg collect work {DATABASE} --registry clients.json {KEYS}")
STATUS = options.examples(
    f"secagg collect status {DATABASE} --json", f"secagg collect status {DATABASE} --metrics"
)
Origins = Annotated[
    list[str],
    typer.Option(
        "--origin",
        metavar="ORIGIN",
        help="Origin of web pages that may report; repeat the option for several.",
        show_default="none",
    ),
]
CollectorPort = Annotated[
    int | None,
    typer.Option(
        help="Port of /health, /ready and /metrics, on loopback; 0 for any.",
        show_default="none",
    ),
]
Metrics = Annotated[
    bool, options.flag("--metrics", "Print counts in the text format of Prometheus.")
]


@app.command(epilog=SERVE)
def serve(
    database: collecting.Where,
    registry: collecting.Clients = None,
    host: addresses.Host = "127.0.0.1",
    port: addresses.Port = 8443,
    certificate: addresses.CertificateFile = None,
    key: addresses.KeyFile = None,
    origin: Origins = [],  # noqa: B006 - never changed
    operator_port: CollectorPort = None,
    allow_plain_http: addresses.PlainHttp = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
) -> None:
    """Take clients' reports over HTTPS, until Ctrl-C or SIGTERM.

    At the end, requests under way are answered after their commits, and the exit status is 0.
    This process needs no private key.
    """
    with options.command(), collecting.opened(database) as opened:
        log_as(log, json=log_json)

        async def run() -> None:
            from secagg.collect.service import serve_collection

            serving = serve_collection(
                opened,
                registry=None if registry is None else read_registry(registry),
                host=host,
                port=port,
                tls=addresses.as_certificate(certificate, key),
                operator_port=operator_port,
                origins=origin,
                allow_plain_http=allow_plain_http,
            )
            async with serving as at:
                fact(f"collection: {at.url}")
                if at.operator_url:
                    fact(f"operator: {at.operator_url}")
                # or else collections of garbage would visit all that the start made, for ever
                gc.freeze()
                # never done, so that only a signal ends the service
                await asyncio.get_running_loop().create_future()

        with notices():
            asyncio.run(collecting.until_signal(run()))


@app.command(epilog=WORK)
def work(
    database: collecting.Where,
    helpers: collecting.Helpers,
    identity: collecting.Key,
    registry: collecting.Clients = None,
    lease: collecting.Lease = 600.0,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
) -> None:
    """Add slices of closing batches, which the helpers check, until Ctrl-C or SIGTERM.

    At the end, the process gives its slice back, and the exit status is 0.
    """
    with options.command(), collecting.opened(database) as opened:
        log_as(log, json=log_json)
        aggregator = collecting.aggregator_of(helpers, identity, authority, allow_plain_http)
        known = None if registry is None else read_registry(registry)

        async def run() -> None:
            from secagg.collect import Worker
            from secagg.session.exchange import Thread

            asking = collecting.asking_of(aggregator)
            worker = Worker(opened, asking, known, lease, Thread())
            fact("working")
            while True:
                try:
                    idle = not await worker.step()
                except (DatabaseError, LinkError, RemoteProtocolError) as error:
                    # passing, or a person has to act; the slice waits in both cases
                    tell(f"{error}; trying again")
                    idle = True
                if idle:
                    await asyncio.sleep(collecting.PAUSE)

        with notices():
            asyncio.run(collecting.until_signal(run()))


@app.command(epilog=STATUS)
def status(
    database: collecting.Where, as_json: options.Json = False, metrics: Metrics = False
) -> None:
    """Print the state of every batch."""
    with options.command(), collecting.opened(database) as opened:
        if metrics:
            _print_metrics(opened, as_json=as_json)
            return
        from secagg.collect import State, batches, slices

        found, altered = [], list[DatabaseError]()
        with opened.transaction() as tx:
            for batch in batches.in_states(tx, *State, altered=altered):
                row = {**batch._asdict(), "dropped": batch.dropped == 1}
                found.append({**row, "slices_left": slices.unfinished(tx, batch.number)})
        lines = [
            f"batch {one['number']} of session {one['session']}: "
            f"{'dropped' if one['dropped'] else one['state']}, "
            f"{options.counted(one['reports'], 'report')}, "
            f"{options.counted(one['slices_left'], 'slice')} left"
            for one in found
        ]
        collecting.echo(
            {"batches": found},
            "\n".join(lines) or ("" if altered else "no batches"),
            json=as_json,
        )
        for other in altered[1:]:
            tell(str(other))
        if altered:
            raise altered[0]


def _print_metrics(database: Database, *, as_json: bool) -> None:
    if as_json:
        raise ParameterError("metrics have a format of their own; drop --json or --metrics")
    with needing("--metrics", "'secagg[http]'", "prometheus_client", "starlette"):
        from secagg.collect import metrics, overview
    with database.transaction() as tx:
        found = overview.look(tx)
    typer.echo(metrics.text(found), nl=False)
