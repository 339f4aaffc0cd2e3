"""A comparison as tables, for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from secagg.compare.machine import machine
from secagg.compare.rows import Case, Row
from secagg.compare.run import Comparison
from secagg.compare.units import NONE, memory, seconds, size

__all__ = ["HEADS", "cells", "print_comparison"]

HEADS = (
    "",
    "client",
    "server",
    "key holder",
    "client sends",
    "receives",
    "key holder receives",
    "peak memory",
)
"""The heads of the columns of what `cells` returns."""


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
        " / ".join(memory(party.memory) for party in parties) + " MB",
    )


def print_comparison(comparison: Comparison) -> None:
    """Print what was measured, case by case, then what holds in every case."""
    console = Console(highlight=False)
    for case, rows in _by_case(comparison.rows):
        console.print(_measured(case, rows))
    console.print(_described(comparison.rows))
    notes = []
    if any(not row.client.seconds.measured for row in comparison.rows):
        notes.append("~ scaled in proportion from a sample, whose size --json has")
    notes += comparison.absent.values()
    notes.append("  ".join(f"{name} {value}" for name, value in machine().items()))
    console.print("\n".join(notes), style="dim", markup=False)


def _by_case(rows: Iterable[Row]) -> Iterable[tuple[Case, list[Row]]]:
    cases: dict[Case, list[Row]] = {}
    for row in rows:
        cases.setdefault(row.case, []).append(row)
    return cases.items()


def _measured(case: Case, rows: list[Row]) -> Table:
    table = Table(
        title=f"n = {case.clients:,} vectors of d = {case.length:,}",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for i, head in enumerate(HEADS):
        table.add_column(head, justify="right" if i else "left", no_wrap=i == 0)
    for row in rows:
        table.add_row(*cells(row))
    return table


def _described(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", title=" ")
    for head in ("", "a client's messages", "who can read a vector", "clients that vanish"):
        table.add_column(head)
    for system in {row.system.name: row.system for row in rows}.values():
        table.add_row(system.label, str(system.messages), system.decrypts, system.dropouts)
    return table
