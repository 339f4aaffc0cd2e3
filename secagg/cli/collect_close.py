"""Command ``secagg collect close``: the batches of a collection, led to their sums."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secagg._check import check_integer
from secagg.cli import addresses, collecting
from secagg.cli import console as options
from secagg.cli.batch_book import BatchBook
from secagg.cli.collecting import DATABASE, KEYS
from secagg.cli.files import read_registry
from secagg.cli.lines import fact, log_as
from secagg.cli.notices import notices
from secagg.cli.schedule import as_every
from secagg.cli.sums import prepare_files
from secagg.errors import ParameterError
from secagg.session.events import Hooks

if TYPE_CHECKING:
    from secagg.cli.closing import When

_DAY = 86_400.0
_KEYS = f"--registry clients.json {KEYS} --out sums"
EXAMPLES = options.examples(
    f"secagg collect close {DATABASE} {_KEYS}",
    f"secagg collect close {DATABASE} {_KEYS} --reports 1000 --every day --keep 30",
    f"secagg collect close {DATABASE} {_KEYS} --batch 7",
)


def close(
    database: collecting.Where,
    helpers: collecting.Helpers,
    identity: collecting.Key,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sums.")],
    registry: collecting.Clients = None,
    reopen: Annotated[
        bool, options.flag("--reopen", "Open the next batch of the session at once.")
    ] = False,
    reports: Annotated[
        int | None,
        typer.Option(
            help="Stay, and close each batch that has so many reports and enough for a sum, or "
            "has no room for more; the next batch opens at once.",
            show_default="close one batch, and end",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="month|week|day|hour|minute",
            help="Stay, and close each batch at the end of such a period, in UTC. A batch with "
            "too few reports stays open.",
            show_default="close one batch, and end",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Lead batch N alone to its sum, or write its stored sum again.",
            show_default="closed batches, or else the newest open batch",
        ),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            help="Delete sessions all of whose batches are done for so many days, with sums, "
            "ids and digests of reports.",
            show_default="keep all",
        ),
    ] = None,
    lease: collecting.Lease = 600.0,
    authority: addresses.Authority = None,
    allow_plain_http: addresses.PlainHttp = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    as_json: options.Json = False,
) -> None:
    """Close batches, and write each sum into a folder, with a record beside the sum.

    Without --reports and --every, the newest open batch closes. If an earlier process left
    closed batches, their sums are written, and no batch is closed, unless none of them can have
    a sum. So the same command can be repeated after any failure. This process works on slices,
    too.

    With --reports or --every, the command stays until Ctrl-C or SIGTERM, for the batches of
    all sessions. The next batch fills while the earlier is led to its sum.

    The exit status is 0 if every sum has all acknowledged reports of its batch, 3 if helpers
    rejected some or the database lost some, and 2 if a batch has no sum. Registered clients
    that did not report are not missing: a batch is a part of the registry. `secagg verify`
    checks the records.
    """
    with options.command(), collecting.opened(database) as opened:
        log_as(log, json=log_json)
        from secagg.cli.closing import Closing, When
        from secagg.collect import Closer, Worker
        from secagg.session.exchange import Thread

        when = When(reports, None if every is None else as_every(every))
        seconds = _checked(when, batch, keep, reopen=reopen)
        aggregator = collecting.aggregator_of(helpers, identity, authority, allow_plain_http)
        known = None if registry is None else read_registry(registry)
        prepare_files(out, (), None)
        book, found = BatchBook(out), list[options.Document]()
        asking, thread = collecting.asking_of(aggregator, Hooks([book.note])), Thread()

        def show(document: options.Document) -> None:
            found.append(document)
            if not as_json:
                typer.echo("{out}: sum of {survivors} of {reports} reports".format(**document))
            elif when:
                collecting.echo(document, "", json=True)
                found.clear()  # a process that runs for years

        closing = Closing(
            opened,
            Closer(opened, asking, known, thread),
            Worker(opened, asking, known, lease, thread),
            book,
            show,
        )

        async def run() -> bool:
            if when:
                fact("closing batches")
                return await collecting.until_signal(closing.stay(when, seconds))
            ended = await collecting.until_signal(closing.once(batch, reopen=reopen))
            if ended and seconds is not None:  # last: altered rows keep no batch from its sum
                await closing.forget(seconds)
            return ended

        try:
            with notices():
                ended = asyncio.run(run())
        finally:
            thread.close()
            if as_json and not when:
                collecting.echo({"sums": found}, "", json=True)
        if not ended and not when:
            raise KeyboardInterrupt
        if not found and not when and not as_json:
            typer.echo("no batch is open or closing")
        if book.status:
            raise typer.Exit(book.status)


def _checked(
    when: When, batch: int | None, keep: float | None, *, reopen: bool
) -> float | None:
    """Return the seconds of --keep; raise `ParameterError` for options at odds."""
    if when.reports is not None:
        check_integer("reports", when.reports, 2, 1 << 20)
    if when and (batch is not None or reopen):
        other = "--reopen" if batch is None else "--batch"
        raise ParameterError(
            f"{other} closes one batch, and --reports and --every close all that are due; "
            "leave out one of them"
        )
    if keep is not None and not 0 <= keep <= 36_500:
        raise ParameterError(f"--keep must be 0 to 36,500 days, not {keep:g}")
    return None if keep is None else keep * _DAY
