"""Commands ``secagg collect``: one-shot sums of many processes beside a database."""

from __future__ import annotations

import asyncio

from secagg.cli import addresses, collect_begin, collect_close, collect_drop, collecting
from secagg.cli import console as options
from secagg.cli.collecting import DATABASE, KEYS
from secagg.cli.files import read_registry
from secagg.cli.lines import fact
from secagg.cli.notices import notices, tell
from secagg.errors import DatabaseError, LinkError, RemoteProtocolError

app = options.App(no_args_is_help=True, help="Collect reports in a database, and sum them.")
app.command(epilog=collect_begin.EXAMPLES)(collect_begin.begin)
app.command(epilog=collect_close.EXAMPLES)(collect_close.close)
app.command(epilog=collect_drop.EXAMPLES)(collect_drop.drop)

SERVE = options.examples(
    f"secagg collect serve {DATABASE} --registry clients.json --host 0.0.0.0 "
    "--certificate chain.pem --key key.pem",
    "secagg collect serve reports.sqlite --registry clients.json",
)
WORK = options.examples(f"secagg collect work {DATABASE} --registry clients.json {KEYS}")
STATUS = options.examples(f"secagg collect status {DATABASE} --json")


@app.command(epilog=SERVE)
def serve(
    database: collecting.Where,
    registry: collecting.Clients = None,
    host: addresses.Host = "127.0.0.1",
    port: addresses.Port = 8443,
    certificate: addresses.CertificateFile = None,
    key: addresses.KeyFile = None,
    allow_plain_http: addresses.PlainHttp = False,
) -> None:
    """Take clients' reports over HTTPS, until Ctrl-C. This process needs no private key."""
    with options.command(), collecting.opened(database) as opened:

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
    database: collecting.Where,
    helpers: collecting.Helpers,
    identity: collecting.Key,
    registry: collecting.Clients = None,
    lease: collecting.Lease = 600.0,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
) -> None:
    """Add slices of closing batches, which the helpers check, until Ctrl-C."""
    with options.command(), collecting.opened(database) as opened:
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
            asyncio.run(run())


@app.command(epilog=STATUS)
def status(database: collecting.Where, as_json: options.Json = False) -> None:
    """Print the state of every batch."""
    with options.command(), collecting.opened(database) as opened:
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
        collecting.echo({"batches": found}, "\n".join(lines) or "no batches", json=as_json)
