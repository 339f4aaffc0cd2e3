"""Budget of a client's data: the ledger of the options, and what the sums have spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

from secagg.cli.console import Document, counted, file_option
from secagg.cli.lines import fact
from secagg.cli.planned_noise import DELTA
from secagg.cli.records import Spent
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT
from secagg.privacy import Budget, PrivacyLedger
from secagg.privacy.ledger import Unit

BudgetEpsilon = Annotated[
    float | None,
    typer.Option(
        metavar="EPS",
        help="ε that all sums of this client's data may spend together, whatever the "
        "server. At a sum without room in it, or without noise, the client ends and sends "
        "no vector. Needs --ledger.",
        show_default="no budget",
    ),
]
BudgetLedger = Annotated[
    Path | None,
    file_option(
        "Ledger of what the sums have spent; made if missing. Give all clients of the same "
        "data the same file, and never copy, restore or delete it.",
        "--ledger",
    ),
]
BudgetDelta = Annotated[
    float | None,
    typer.Option(help="δ of the budget, well below 1 / clients.", show_default="1e-6"),
]


def open_spending(
    path: Path | None,
    epsilon: float | None,
    delta: float | None,
    *,
    active: bool,
    option: str = "--ledger",
    colluders: int | None = None,
    unit: Unit = "client",
    helped: bool = False,
) -> PrivacyLedger | None:
    """Return the ledger of the options, or None; print what is spent, and against whom.

    Parameters
    ----------
    path, epsilon, delta
        File, ε and δ of the options.
    active : bool
        True: this client takes part in active sums only.
    option : str
        Option of the file.
    colluders : int, optional
        Most clients that this client expects to collude. None: the part of `ClientPolicy`.
    unit : "client" or "record"
        See `PrivacyLedger`.
    helped : bool
        True: this client takes part in sums with helpers only.
    """
    if path is None and epsilon is None and delta is None:
        return None
    if path is None or epsilon is None:
        raise ParameterError(
            f"--budget and {option} need each other, and --delta needs both: a client without "
            "a file forgets at its end what it has spent"
        )
    ledger = PrivacyLedger(path, Budget(epsilon, DELTA if delta is None else delta), unit=unit)
    key = "--identity" if helped else "--registry"
    follows = f"follows the protocol; with {key}, against a server that lies, too"
    does = "does anything, since all sums are active" if active else follows
    some = f"{CORRUPT:g} of the clients" if colluders is None else counted(colluders)
    few = "fewer helpers than open a one-shot sum and any clients"
    also = few if helped else f"up to {some} in four exchanges, and against {few}"
    both = "" if helped else "for both kinds of sums together "
    fact(f"budget: holds {both}against {also}, with a server that {does}")
    fact(f"privacy: {spent_in_words(ledger)}")
    return ledger


def spent_in_words(ledger: PrivacyLedger) -> str:
    """Return what the sums of a client's data have spent, in words."""
    return (
        f"{_spent(ledger)}, for each {ledger.unit}, by {counted(ledger.sums, 'masked vector')}"
    )


def spent_as_document(ledger: PrivacyLedger | None) -> Document:
    """Return what the sums of a client's data have spent, for JSON."""
    if ledger is None:
        return {}
    return {"spent": to_builtins(_spent(ledger)) | {"sums": ledger.sums, "unit": ledger.unit}}


def _spent(ledger: PrivacyLedger) -> Spent:
    epsilon, delta = ledger.budget.epsilon, ledger.budget.delta
    return Spent(epsilon=ledger.spent.epsilon(delta), delta=delta, budget=epsilon)
