"""Command ``secagg join``: a client of private sums over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

from secagg.cli.addresses import (
    Authority,
    Client,
    ClientIdentity,
    HelpersFile,
    LeastClients,
    Members,
    Patience,
    PlainHttp,
    Url,
)
from secagg.cli.console import (
    Json,
    Log,
    LogJson,
    command,
    counted,
    examples,
    file_option,
    flag,
)
from secagg.cli.hosting import attend
from secagg.cli.lines import fact, log_as
from secagg.cli.planned_noise import DELTA
from secagg.cli.records import Spent
from secagg.cli.vectors import Vectors
from secagg.errors import ParameterError, SecAggError
from secagg.kit.table import as_json as to_json
from secagg.privacy import Budget, PrivacyLedger
from secagg.session import Completed

EXAMPLES = examples(
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --vector v.npy",
    "secagg join http://127.0.0.1:8443 --client 7 --identity 7.pem "
    "--vector mon.npy --vector tue.npy",
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --integers "
    "--vector 'counts-{period}.csv' --min-clients 4",
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --vector v.npy "
    "--budget 2 --ledger alice.ledger",
)


def join(
    url: Url,
    client: Client,
    identity: ClientIdentity,
    vector: Annotated[
        list[Path],
        file_option(
            "Vector: a CSV file with column names and one row of numbers, or a file in "
            "numpy's format. The first is for sum 0 of the session, the next for sum 1. After "
            "a restart give them all again. A path with {period} stands for the file of each "
            "period of `secagg serve --every`, which is read when the period is due."
        ),
    ],
    integers: Annotated[
        bool, flag("--integers", "The vectors are whole numbers, 0 to 2^62, summed as such.")
    ] = False,
    min_clients: LeastClients = None,
    registry: Members = None,
    helpers: HelpersFile = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="EPS",
            help="ε that all sums of this client's data may spend together, whatever the "
            "server. At a sum without room in it, or without noise, the client ends and sends "
            "no vector. Needs --ledger.",
            show_default="no budget",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="δ of the budget, well below 1 / clients.", show_default="1e-6"),
    ] = None,
    ledger: Annotated[
        Path | None,
        file_option(
            "Ledger of what the sums have spent; made if missing. Give all clients of the same "
            "data the same file, and never copy, restore or delete it."
        ),
    ] = None,
    authority: Authority = None,
    patience: Patience = 600.0,
    allow_plain_http: PlainHttp = False,
    log: Log = None,
    log_json: LogJson = False,
    as_json: Json = False,
) -> None:
    """Add a vector to each of the server's sums, until the session ends.

    Each sum gets the vector with the sum's number or period, once: the difference of two sums
    over almost the same clients can be a single vector. All files are judged before the first
    byte is sent. The client ends at a sum without a vector, but stays if a file of a
    {period} is missing or wrong: it declines that sum.
    """
    with command():
        log_as(log, json=log_json)
        spending = _ledger(ledger, budget, delta)
        if spending is not None:
            follows = "follows the protocol; with --registry, against a server that lies, too"
            does = follows if registry is None else "does anything, since all sums are active"
            fact(f"budget: holds against a server that {does}")
        train = Vectors(vector, integers=integers)
        sums, hint = attend(
            url, client, train, identity, registry, helpers, authority, patience,
            spending=spending, min_clients=min_clients, allow_plain_http=allow_plain_http,
        )  # fmt: skip
        if as_json:
            counts = {"sums": len(sums.rounds), "reports": len(sums.reports)}
            numbers = sorted(sums.rounds + sums.reports)
            privacy = {} if spending is None else {"spent": to_builtins(_spent(spending))}
            typer.echo(to_json({"client": client, **counts, "numbers": numbers, **privacy}))
        else:
            typer.echo(_counted(sums, len(vector)))
            if spending is not None:
                typer.echo(f"{_spent(spending)}, by {counted(spending.sums, 'masked vector')}")
        # the session ended in order, but a script must see the failure
        if not sums:
            remedy = hint or (
                "; join before the server has its clients, in one process, and ask its "
                "operator if the sum failed"
            )
            raise SecAggError(f"the session ended, and client {client} was in no sum{remedy}")


def _ledger(
    path: Path | None, epsilon: float | None, delta: float | None
) -> PrivacyLedger | None:
    """Return the ledger of the options, or None."""
    if path is None and epsilon is None and delta is None:
        return None
    if path is None or epsilon is None:
        raise ParameterError(
            "--budget and --ledger need each other, and --delta needs both: a client without "
            "a file forgets at its end what it has spent"
        )
    return PrivacyLedger(path, Budget(epsilon, DELTA if delta is None else delta))


def _spent(ledger: PrivacyLedger) -> Spent:
    """Return what the sums of a client's data have spent."""
    epsilon, delta = ledger.budget.epsilon, ledger.budget.delta
    return Spent(epsilon=ledger.spent.epsilon(delta), delta=delta, budget=epsilon)


def _counted(done: Completed, given: int) -> str:
    """Return the sums of a client in words; no client hears whether helpers opened a sum."""
    numbers = sorted(done.rounds + done.reports)
    what = "reports sent" if done.reports else "sums"
    text = f"{what}: {len(numbers)}"
    if numbers and len(numbers) < given:
        text += f", in sums {', '.join(map(str, numbers))} of {given}"
    return text
