"""A comparison as tables, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table

from secagg.bench.machine import machine
from secagg.bench.per_float import PerFloat, owners_gain
from secagg.bench.rows import Case, Row
from secagg.bench.run import Comparison
from secagg.bench.ss import CORRUPT, DROPOUT
from secagg.bench.units import NONE, duration, memory, micro, seconds, size

__all__ = [
    "FLOAT_HEADS",
    "HEADS",
    "by_case",
    "cells",
    "float_cells",
    "notes",
    "print_comparison",
    "settings",
]

HEADS = (
    "",
    "client",
    "server",
    "key\nholder",
    "client\nsends",
    "client\nreceives",
    "holder\nreceives",
    "peak\nMB",
)
"""The heads of the columns of what `cells` returns, in two lines where that is narrower."""

FLOAT_HEADS = ("", "key", "secagg", "phe", "ratio", "two threads")
"""The heads of the columns of what `float_cells` returns."""


def float_cells(one: PerFloat) -> tuple[str, ...]:
    """Return what is told of an operation."""
    peer, ratio = (NONE, NONE) if one.peer is None else (micro(one.peer), f"{one.ratio:,.0f}×")
    speed_up = f"{one.speed_up:.2f}×"
    return (one.operation, f"{one.bits} bits", micro(one.seconds), peer, ratio, speed_up)


def cells(row: Row) -> tuple[str, ...]:
    """Return what is told of a row; memory is of client, server and key holder."""
    parties = [party for party in (row.client, row.server, row.holder) if party is not None]
    return (
        row.system.label,
        seconds(row.client.seconds),
        seconds(row.server.seconds),
        NONE if row.holder is None else seconds(row.holder.seconds),
        size(row.bytes_up),
        size(row.bytes_down),
        NONE if row.holder_bytes_in is None else size(row.holder_bytes_in),
        "/".join(memory(party.memory) for party in parties),
    )


def print_comparison(comparison: Comparison) -> None:
    """Print what was measured, case by case, then what holds in every case."""
    console = Console(highlight=False)
    for case, rows in by_case(comparison.rows):
        console.print(_measured(case, rows), "")
    console.print(_described(comparison.rows), "")
    if comparison.per_float:
        console.print(_per_float(comparison.per_float), "")
    for note in notes(comparison):
        console.print(note, style="dim", markup=False)


def by_case(rows: Iterable[Row]) -> Iterable[tuple[Case, list[Row]]]:
    """Return the rows of each case."""
    cases: dict[Case, list[Row]] = {}
    for row in rows:
        cases.setdefault(row.case, []).append(row)
    return cases.items()


def settings(rows: Iterable[Row]) -> str:
    """Return what the systems chose for a case, and what they take once per key."""
    each = []
    for row in rows:
        once = f", once {duration(row.setup_seconds)}" if row.setup_seconds else ""
        each.append(f"{row.system.label}: {row.setting}{once}")
    return ". ".join(each) + "."


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what has to be said of the figures."""
    yield from _on_sums(comparison.rows)
    if comparison.per_float:
        yield from _on_floats(comparison.per_float)
    yield from (f"{remedy}." for remedy in comparison.absent.values())
    yield ", ".join(f"{name} {value}" for name, value in machine().items()) + "."


def _on_sums(rows: list[Row]) -> Iterator[str]:
    if not all(row.measured for row in rows):
        yield "~: scaled in proportion from a sample, whose size the JSON document has."
    yield (
        "–: there is no such party; as memory, it is not known, because the party has done "
        "only a sample of the work."
    )
    yield (
        "Times are of the processor. A client's is the median of all that were run, but for "
        "the first of those that encrypt."
    )
    yield (
        "Peak MB: the memory of the process of client/server/key holder when it was highest, "
        "beyond the library itself."
    )
    if any(row.system.family == "ss" for row in rows):
        yield (
            "SS: a client shares keys with k others, t of whom can rebuild them. The graph "
            f"allows {CORRUPT:.0%} of all to collude with the server and {DROPOUT:.0%} to "
            "vanish; these do vanish, as soon as they have shared keys, when it costs the "
            "server most."
        )
    if any(row.setup_seconds for row in rows):
        yield (
            "HE: a client encodes, packs and encrypts; the server loads what it is sent, which "
            "checks every ciphertext, adds, and blinds the total; the key holder loads, "
            "decrypts and unpacks."
        )
        yield (
            "Once: what a client takes once for each key, to load it and make tables of "
            "powers, which is not in the client's time."
        )
    fewer = [row for row in rows if row.clients_run < row.case.clients]
    if fewer:
        few = max(row.clients_run for row in fewer)
        yield f"SS runs all clients; the others run {few}, and what they send is added again."


def _on_floats(measured: list[PerFloat]) -> Iterator[str]:
    for bits, gain in owners_gain(measured).items():
        yield f"The owner of a key of {bits} bits encrypts {gain:.1f}× as fast as others."
    yield (
        "Two threads: how many times less time passes with two than with one, which means "
        "something only where nothing else is running."
    )
    if any(one.peer is not None for one in measured):
        yield (
            "phe has one way to encrypt, measured once for each key. It uses gmpy2's copy of "
            "GMP, which may run generic code on processors newer than it."
        )


def _measured(case: Case, rows: list[Row]) -> Table:
    title = f"n = {case.clients:,} vectors of d = {case.length:,}"
    table = _table(HEADS, title)
    for row in rows:
        table.add_row(*cells(row))
    table.caption = settings(rows)
    return table


def _described(rows: list[Row]) -> Table:
    table = _table(("", "messages", "who can read a vector", "who vanishes"))
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "left", False
    for system in {row.system.name: row.system for row in rows}.values():
        table.add_row(system.label, str(system.messages), system.decrypts, system.dropouts)
    return table


def _per_float(measured: list[PerFloat]) -> Table:
    table = _table(FLOAT_HEADS, "Paillier per float, slots of 32 bits, one core")
    for one in measured:
        table.add_row(*float_cells(one))
    return table


def _table(heads: Iterable[str], title: str = "") -> Table:
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=None,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
    )
    for i, head in enumerate(heads):
        table.add_column(head, justify="right" if i else "left", no_wrap=i > 0)
    return table
