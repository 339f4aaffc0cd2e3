"""Plan of the noise that clients add: the options, and the plan in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from secagg._printable import at_least
from secagg.cli.console import Document, with_options
from secagg.cli.lines import fact
from secagg.errors import ParameterError
from secagg.graph.graph import count
from secagg.kit.table import Cell, Column, Table, as_json, print_table, volume
from secagg.oneshot import OneShotParams
from secagg.privacy import Plan, against, plan
from secagg.protocol import ClientPolicy, RoundParams
from secagg.protocol.suites import SuiteName

DELTA = 1e-6
"""δ by default."""
_SIZES = (100, 1000, 10_000)
"""Numbers of clients in a table of what to expect."""
_ANNOUNCED = ("noise", "δ", "against", "error of the mean", "join", "clients")
"""Rows of a plan that a server prints."""
_SERVERS = "Against a server that follows the protocol; with --security active, any server."
_COLUMNS = (
    Column("clients"),
    Column("σ of the sum", "{:.3g}".format),
    Column("bits"),
    Column("bytes", volume),
    Column("error of the mean", "{:.3g}".format),
    Column("× central", "{:.3f}".format),
)
Epsilon = Annotated[
    float | None,
    typer.Option(
        help="Noise of the clients for ε-differential privacy of each client over all rounds; "
        "needs dp-accounting.",
        show_default="no noise",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(help="δ of the noise, well below 1 / clients.", show_default="1e-6"),
]
Rounds = Annotated[
    int | None,
    typer.Option(help="Number of sums that the noise is planned for.", show_default="1"),
]
Norm = Annotated[
    float | None,
    typer.Option(
        help="L2 norm to which each client clips its vector before the noise.",
        show_default="1",
    ),
]
Colluders = Annotated[
    int | None,
    typer.Option(
        help="Most clients that tell the server their shares of the noise.",
        show_default="--corrupt of the clients",
    ),
]
MinSurvivors = Annotated[
    int | None,
    typer.Option(
        help="Least number of clients in a sum with noise, which every client demands on the "
        "complete graph.",
        show_default="--min-clients, or all but --dropout of the clients",
    ),
]


def planned(
    clients: int,
    length: int,
    corrupt: float,
    dropout: float,
    *,
    epsilon: float | None,
    delta: float | None,
    rounds: int | None,
    norm: float | None,
    colluders: int | None = None,
    min_survivors: int | None = None,
    bits: int | None = None,
) -> Plan | None:
    """Return the plan that the options ask for, or None without --epsilon."""
    if epsilon is None:
        given = {"delta": delta, "rounds": rounds, "norm": norm, "colluders": colluders}
        for name, value in {**given, "min-survivors": min_survivors}.items():
            if value is not None:
                raise ParameterError(f"--{name} is of the noise; give --epsilon, too")
        return None
    return plan(
        clients,
        length,
        norm=1.0 if norm is None else norm,
        epsilon=epsilon,
        delta=DELTA if delta is None else delta,
        rounds=1 if rounds is None else rounds,
        min_survivors=clients - count(dropout, clients)
        if min_survivors is None
        else min_survivors,
        colluders=count(corrupt, clients) if colluders is None else colluders,
        bits=bits,
    )


def announced(plan: Plan | None, params: RoundParams | OneShotParams) -> Document:
    """Print what a plan promises, and against whom; return the plan for JSON."""
    if plan is None or not isinstance(params, RoundParams):
        return {}
    (_, promised), (_, replaced), *rows = in_words(plan, params)
    for name, text in [("noise", f"{promised}; {replaced}"), *rows]:
        if name in _ANNOUNCED:
            fact(f"{name}: {text}")
    return {"privacy": as_document(plan, params)}


def show_sizes(plan_of: Callable[[int], Plan | None], *, json: bool) -> None:
    """Print what to expect of the same noise for some numbers of clients.

    Raises
    ------
    ParameterError
        The options ask for no noise, or no number of clients has a plan.
    """
    plans, rows, sizes, notes = list[Plan](), list[list[Cell]](), list[Document](), list[str]()
    for number in _SIZES:
        try:
            one = plan_of(number)
        except ParameterError as error:
            if number == _SIZES[-1] and not plans:
                raise
            why = with_options(str(error))
            rows.append([number, "no plan", None, None, None, None])
            sizes.append({"clients": number, "no_plan": why})
            notes.append(f"{number:,} clients: {why}")
            continue
        if one is None:
            raise ParameterError(
                "--clients is missing; give the number of clients, or --epsilon for a table of "
                "some numbers"
            )
        plans.append(one)
        sigma, total = float(one.sigma) * one.norm / one.steps, one.factors["total"]
        rows.append([number, sigma, one.modulus_bits, one.message, one.error_norm(), total])
        sizes.append({"clients": number} | _figures(one))
    last = plans[-1]
    if json:
        typer.echo(as_json({"length": last.length, "against": _SERVERS, "sizes": sizes}))
        return
    stay = f"{last.min_survivors:,} of {last.n_clients:,} stay"
    notes += [
        f"For {last.length:,} elements (--length), if {stay} and {last.colluders:,} collude.",
        _SERVERS,
        f"Error of the mean: as a norm, beside at most {last.norm:g} of the mean itself.",
        "× central: this error beside the error by a trusted server's noise.",
        "With --clients the command prints the whole plan.",
    ]
    print_table(Table(columns=_COLUMNS, rows=rows, title=_promised(last), notes=notes))


def _promised(plan: Plan) -> str:
    """Return ε and δ of a plan in words."""
    sums = "one sum" if plan.rounds == 1 else f"{plan.rounds:,} sums together"
    return f"ε = {plan.budget.epsilon:g}, δ = {plan.budget.delta:g} for {sums}"


def as_document(plan: Plan, params: RoundParams) -> Document:
    """Return a plan and its parameters for JSON."""
    return _figures(plan) | {
        "against": against(params),
        "parameters": params.to_bytes().hex(),
    }


def _figures(plan: Plan) -> Document:
    """Return what follows from a plan alone, for JSON."""
    return {
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "rounds": plan.rounds,
        "norm": plan.norm,
        "epsilon_replaced": plan.epsilon_replaced,
        "min_survivors": plan.min_survivors,
        "colluders": plan.colluders,
        "elements": plan.elements,
        "steps": plan.steps,
        "sigma": float(plan.sigma),
        "share": float(plan.share),
        "modulus_bits": plan.modulus_bits,
        "bytes": plan.message,
        "error": plan.error(),
        "error_norm": plan.error_norm(),
        "error_fewest": plan.error(plan.min_survivors),
        "factors": plan.factors,
    }


def in_words(
    plan: Plan, params: RoundParams, suite: SuiteName | None = None
) -> list[tuple[str, str]]:
    """Return the rows of a table; `suite` is the suite of the option."""
    factors = plan.factors
    graph = {"neighbours": params.neighbours, "threshold": params.threshold}
    of_round, to_serve = _of(graph), _options(plan)
    if params.active:
        of_round, to_serve = f"{of_round}, security='active'", f"{to_serve} --security active"
    if suite is not None:
        of_round, to_serve = f"{of_round}, suite={suite!r}", f"{to_serve} --suite {suite}"
    share, sigma, step = float(plan.share), float(plan.sigma), plan.norm / plan.steps
    excess = f"dropouts {factors['dropouts']:.3f} × rounding {factors['rounding']:.3f}"
    signal = plan.norm / plan.error_norm()
    return [
        ("noise", f"{_promised(plan)}, against zeros"),
        ("", f"ε = {at_least(plan.epsilon_replaced)} against any other vectors of a client"),
        ("", f"if {plan.min_survivors} clients stay and at most {plan.colluders} collude"),
        *_likely(plan),
        ("against", against(params)),
        ("σ", f"{sigma:.4g} steps, {sigma * step:.3g} in a sum; {share:.4g} steps a client"),
        ("steps", f"{plan.steps:,} for the norm {plan.norm:g}"),
        ("a noised vector", volume(plan.message)),
        ("", f"{plan.elements:,} rotated elements of {plan.modulus_bits} bits"),
        (
            "error of the mean",
            f"{plan.error():.3g} an element, {plan.error_norm():.3g} as a norm",
        ),
        ("", f"{factors['total']:.3f} times a trusted server's: {excess}"),
        ("utility", f"the norm of the mean is at most {signal:.3g} times this error's norm"),
        ("", "more clients, a larger ε, fewer elements or rounds raise this"),
        ("Python", f"plan({_arguments(plan)})"),
        ("", f".params({of_round}, session=…)"),
        ("serve", f"secagg serve … {to_serve}"),
        *_joining(plan, params),
    ]


def _likely(plan: Plan) -> list[tuple[str, str]]:
    """Return a row if δ is so large that a sum may well show some client's vector."""
    if plan.budget.delta * plan.n_clients < 1:
        return []
    why = "such a promise lets a sum show some client's vector; take a smaller --delta"
    return [("δ", f"{plan.budget.delta:g} is not below 1 / {plan.n_clients}, and {why}")]


def _joining(plan: Plan, params: RoundParams) -> list[tuple[str, str]]:
    """Return a row if clients with the default policy decline, in their own logs alone."""
    usual, expecting = ClientPolicy(), ClientPolicy(colluders=plan.colluders)
    if usual.objection(params, params.n_clients) is None:
        return []
    if expecting.objection(params, params.n_clients) is None:
        without = f"without it a client expects {usual.corrupt:g} to collude, and declines"
        return [("join", f"secagg join … --colluders {plan.colluders}; {without}")]
    expected = f"{usual.dropout:g} to drop out, and {usual.sigma} bits of privacy"
    return [("clients", f"`secagg join` and ClientPolicy() decline: they expect {expected}")]


def _arguments(plan: Plan) -> str:
    """Return the arguments of `secagg.privacy.plan`, as Python."""
    named = {"norm": plan.norm} | _named(plan) | {"bits": plan.modulus_bits}
    return f"{plan.n_clients}, {plan.length}, {_of(named)}"


def _options(plan: Plan) -> str:
    """Return the options of ``secagg serve``."""
    named = {"length": plan.length} | _named(plan) | {"modulus_bits": plan.modulus_bits}
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in named.items())


def _named(plan: Plan) -> dict[str, float]:
    """Return the settings that Python and ``secagg serve`` give the same names."""
    return {
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "rounds": plan.rounds,
        "norm": plan.norm,
        "min_survivors": plan.min_survivors,
        "colluders": plan.colluders,
    }


def _of(given: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items())
