"""Command ``secagg join``: a client of private sums over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secagg.cli.addresses import (
    Authority,
    Client,
    ClientIdentity,
    Colluders,
    HelpersFile,
    LeastClients,
    Members,
    Patience,
    PlainHttp,
    Url,
)
from secagg.cli.budgets import (
    BudgetDelta,
    BudgetEpsilon,
    BudgetLedger,
    open_spending,
    spent_as_document,
    spent_in_words,
)
from secagg.cli.console import (
    Json,
    Log,
    LogJson,
    command,
    examples,
    file_option,
    flag,
)
from secagg.cli.hosting import attend
from secagg.cli.lines import log_as
from secagg.cli.suites import RequireHybrid
from secagg.cli.vectors import Vectors
from secagg.errors import BudgetSpent, SecAggError
from secagg.kit.table import as_json as to_json
from secagg.privacy import PrivacyLedger
from secagg.session import Completed

EXAMPLES = examples(
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --vector v.npy",
    "secagg join http://127.0.0.1:8443 --client 7 --identity 7.pem "
    "--vector mon.npy --vector tue.npy",
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --integers "
    "--vector 'counts-{period}.csv' --min-clients 4",
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --vector v.npy "
    "--budget 2 --ledger alice.ledger",
    "secagg join https://sums.example:8443 --client alice --identity alice.pem --vector v.npy "
    "--colluders 50",
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
    require_hybrid: RequireHybrid = False,
    colluders: Colluders = None,
    registry: Members = None,
    helpers: HelpersFile = None,
    budget: BudgetEpsilon = None,
    delta: BudgetDelta = None,
    ledger: BudgetLedger = None,
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
        spending = open_spending(
            ledger, budget, delta, active=registry is not None, colluders=colluders
        )
        train = Vectors(vector, integers=integers)
        try:
            sums, hint = attend(
                url, client, train, identity, registry, helpers, authority, patience,
                spending=spending, min_clients=min_clients, colluders=colluders,
                require_hybrid=require_hybrid,
                allow_plain_http=allow_plain_http,
            )  # fmt: skip
        except BudgetSpent as error:
            _tell(client, Completed(*error.completed), len(vector), spending, json=as_json)
            raise
        _tell(client, sums, len(vector), spending, json=as_json)
        # the session ended in order, but a script must see the failure
        if not sums:
            remedy = hint or (
                "; join before the server has its clients, in one process, and ask its "
                "operator if the sum failed"
            )
            raise SecAggError(f"the session ended, and client {client} was in no sum{remedy}")


def _tell(
    client: str, sums: Completed, given: int, spending: PrivacyLedger | None, *, json: bool
) -> None:
    """Print the sums of a client, and what the sums have spent."""
    if json:
        counts = {"sums": len(sums.rounds), "reports": len(sums.reports)}
        numbers = sorted(sums.rounds + sums.reports)
        document = {"client": client, **counts, "numbers": numbers}
        typer.echo(to_json(document | spent_as_document(spending)))
        return
    typer.echo(_counted(sums, given))
    if spending is not None:
        typer.echo(spent_in_words(spending))


def _counted(done: Completed, given: int) -> str:
    """Return the sums of a client in words; no client hears whether helpers opened a sum."""
    numbers = sorted(done.rounds + done.reports)
    what = "reports sent" if done.reports else "sums"
    text = f"{what}: {len(numbers)}"
    if numbers and len(numbers) < given:
        text += f", in sums {', '.join(map(str, numbers))} of {given}"
    return text
