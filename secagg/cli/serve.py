"""Command ``secagg serve``: private sums as a service over HTTP."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secagg._check import check_integer
from secagg.cli import console as options
from secagg.cli import planned_noise, schedule, suites
from secagg.cli.addresses import (
    AggregatorKey,
    Authority,
    CertificateFile,
    Deadline,
    HelpersFile,
    Host,
    KeyFile,
    Name,
    OperatorPort,
    PlainHttp,
    Port,
    RegistryFile,
    SecurityOption,
    State,
)
from secagg.cli.books import Book
from secagg.cli.files import read_registry
from secagg.cli.hosting import Hosting
from secagg.cli.lines import fact, log_as
from secagg.cli.notices import notices, tell
from secagg.cli.privacy import NoiseSigma, as_noise, told
from secagg.cli.schedule import Schedule, as_every, refuse_schedule
from secagg.cli.summands import Columns, Length, Whole, encoding_of, named
from secagg.cli.sums import Aggregator, Sums, prepare, summed
from secagg.errors import (
    BudgetSpent,
    LinkError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.protocol import ClientPolicy
from secagg.server import RoundResult

if TYPE_CHECKING:
    from secagg.session import Session

EXAMPLES = options.examples(
    "secagg serve clients.json --length 1000 --clip 8 --out sums",
    "secagg serve clients.json --length 1000 --clip 8 --out sums --rounds 30 --folder state",
    "secagg serve clients.json --length 1000 --clip 8 --out sums "
    "--helpers h.json --identity a.pem",
    "secagg serve clients.json --length 1000 --clip 8 --out sums --folder state --every month "
    "--min-clients 4",
    "secagg serve clients.json --columns visits,deaths --integers --clip 100000 --out sums "
    "--helpers h.json --identity a.pem --noise 1e6",
    "secagg serve clients.json --length 1000 --out sums --security active "
    "--epsilon 2 --rounds 10 --norm 1",
)


def serve(
    registry: RegistryFile,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sums.")],
    clip: Annotated[
        float | None,
        typer.Option(
            help="Largest absolute value of an element.",
            show_default="needed, except with --epsilon",
        ),
    ] = None,
    length: Length = None,
    columns: Columns = None,
    integers: Whole = False,
    noise: NoiseSigma = None,
    epsilon: planned_noise.Epsilon = None,
    delta: planned_noise.Delta = None,
    norm: planned_noise.Norm = None,
    colluders: planned_noise.Colluders = None,
    min_survivors: planned_noise.MinSurvivors = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Number of sums.", show_default="1; with --every, until the command is ended"
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="month|week|day|hour|minute",
            help="One sum for each such period, in UTC, after the period has ended; periods "
            "that the server missed are made up in order. Needs --folder.",
        ),
    ] = None,
    min_clients: Annotated[
        int | None,
        typer.Option(
            help="Least number of clients in a sum; a sum over fewer is never opened.",
            show_default="the threshold; with --helpers, what they suggest",
        ),
    ] = None,
    folder: State = None,
    name: Name = "session",
    threshold: Annotated[
        int | None,
        typer.Option(
            help="Number of shares that rebuild a client's secret; with --helpers, number of "
            "helpers that open a sum.",
            show_default="recommended by `secagg params`; 2 with --helpers",
        ),
    ] = None,
    security: SecurityOption = "semi-honest",
    suite: suites.SuiteOption = None,
    corrupt: options.Corrupt = CORRUPT,
    dropout: options.Dropout = DROPOUT,
    modulus_bits: options.FittingBits = None,
    deadline: Deadline = 600.0,
    helpers: HelpersFile = None,
    identity: AggregatorKey = None,
    authority: Authority = None,
    host: Host = "127.0.0.1",
    port: Port = 8443,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    operator_port: OperatorPort = 8445,
    allow_plain_http: PlainHttp = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    as_json: options.Json = False,
) -> None:
    """Add the vectors of all clients that come, and write each sum into a folder.

    Clients run `secagg join`. The page at the operator's port shows the rounds live. A record
    beside each sum has the clients in the sum, and the missing clients with the reason;
    `secagg verify` checks and prints the records.

    With --epsilon each client adds a share of noise, so that the sums of all --rounds together
    are differentially private for each client, against the parties that the command prints. The
    session ends when ε is spent.

    The exit status is 0 if all registered clients are in every sum, 3 if some are missing, and
    2 if a sum failed.
    """
    with options.command():
        log_as(log, json=log_json)
        known = read_registry(registry)
        if rounds is not None:
            check_integer("rounds", rounds, 1, 1 << 20)
        kind = options.as_security(security)
        aggregator = Aggregator.of(helpers, identity, authority, plain=allow_plain_http)
        calendar = _calendar(every, folder)
        last = rounds if rounds is not None or calendar is not None else 1
        names, size = named(columns, length)
        if epsilon is not None and last is None:
            raise ParameterError(
                "--epsilon is for a number of sums; give --rounds, the number of all periods"
            )
        plan = planned_noise.planned(
            len(known), size, corrupt, dropout,
            epsilon=epsilon, delta=delta, rounds=None if epsilon is None else last, norm=norm,
            colluders=colluders, bits=modulus_bits,
            min_survivors=min_clients if min_survivors is None and epsilon else min_survivors,
        )  # fmt: skip
        sums = Sums(
            known,
            size,
            encoding_of(clip, plan, integers=integers),
            modulus_bits,
            threshold,
            kind,
            corrupt=corrupt,
            dropout=dropout,
            name=name,
            # a resumed run must name its one-shot sums as before
            run=b"" if folder is not None else os.urandom(8),
            min_clients=min_clients,
            schedule=calendar,
            columns=names,
            noise=as_noise(noise),
            plan=plan,
            suite=suites.as_chosen(suite),
        )
        # an error is shown before any client waits
        first = sums.params(0, aggregator)
        shown = told(first) | planned_noise.announced(plan, first)
        prepare(out, last if calendar is None else None, folder, names)
        book = Book(out, sums, aggregator)
        shown |= suites.as_document(first, sums.suite)
        hosting = Hosting(
            known, name, folder, deadline, kind, host, port, certificate, key, operator_port,
            allow_plain_http, None if plan is None else plan.budget,
            ClientPolicy(corrupt=corrupt, dropout=dropout),
        )  # fmt: skip

        async def add(session: Session) -> None:
            suites.announce(first, sums.suite)
            session.watch(book.note)
            for number in book.numbers(last):
                await _due(calendar, number)
                # a number that was used up before, or without its helpers, began no round here
                session.skip_to(number)
                session.expect_all()
                begun = book.begin(session.convicted)
                try:
                    result = await _next(sums, session, number, aggregator, 3 * deadline)
                except (BudgetSpent, TooFewSurvivors, RemoteProtocolError, LinkError) as error:
                    book.keep_failure(number, begun, error)
                    if calendar is None or isinstance(error, BudgetSpent):
                        raise
                    text = f"{sums.period(number)}: no sum, {options.with_options(str(error))}"
                else:
                    text = f"{book.keep(number, begun, result)}: {summed(result, known)}"
                if not as_json:
                    typer.echo(text if book.spent is None else f"{text}, {book.spent}")

        async def run() -> None:
            # a server that runs for years waits for its helpers in each period
            early = calendar is None or book.is_new
            if aggregator is not None and isinstance(first, OneShotParams) and early:
                await aggregator.ensure(first)
            if calendar is not None and folder is not None:
                calendar.keep(folder)
            await hosting.run(add)

        try:
            with notices():
                asyncio.run(run())
        finally:
            # the sums before a failure are written, so they are listed
            if as_json and not book.is_new:
                typer.echo(to_json({"session": name, **shown, "sums": book.documents()}))
        if book.status:
            raise typer.Exit(book.status)


def _calendar(every: str | None, folder: Path | None) -> Schedule | None:
    """Return the schedule of a session, or None for a session without a schedule."""
    if every is None:
        if folder is not None:
            refuse_schedule(folder)
        return None
    kind = as_every(every)
    if folder is None:
        raise ParameterError(
            "--every needs --folder: a server that was killed and forgot its sums would ask "
            "clients for a period again, and the difference of two sums could be one vector"
        )
    return Schedule.opened(kind, folder)


async def _due(calendar: Schedule | None, number: int) -> None:
    """Wait until a sum is due."""
    if calendar is not None and (due := calendar.period(number).end) > schedule.now():
        label = calendar.period(number).label
        fact(f"the sum of {label} begins at {schedule.iso(due)}")
        await schedule.sleep_until(due)


async def _next(
    sums: Sums, session: Session, number: int, aggregator: Aggregator | None, seconds: float
) -> RoundResult | OneShotResult:
    """Run the next sum of a session; with a schedule, wait for helpers that do not answer.

    The wait ends when so many seconds have passed and the next sum is due.
    """
    loop, calendar = asyncio.get_running_loop(), sums.schedule
    until = loop.time() + seconds
    while True:
        try:
            return await sums.next(session, number, aggregator)
        except LinkError as error:
            if calendar is None or error.check != "patience":
                raise
            if loop.time() >= until and schedule.now() >= calendar.period(number + 1).end:
                raise
            tell(str(error))
