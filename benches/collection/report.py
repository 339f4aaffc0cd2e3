"""Tables of the figures of collections."""

from __future__ import annotations

from collections.abc import Iterable

from benches.collection.driver import Row
from secagg.kit.table import Cell, Column, Table, duration, micro, volume

_KINDS = "serve", "work and close", "a helper", "PostgreSQL", "a client"

COLUMNS = (
    *map(Column, ("reports", "d")),
    Column("a report", volume),
    Column("taken", duration),
    Column("summed", duration),
    Column("reports/s", lambda rate: f"{rate:,.0f}"),
    *(Column(f"{kind}", micro) for kind in _KINDS),
    *(Column(f"memory: {kind}", volume) for kind in ("serve", "work", "close", "helper")),
    Column("disk", volume),
    Column("kills (inside)"),
)


def table(rows: Iterable[Row]) -> Table:
    """Return the table of docs/scale.md, with processor time for each report."""
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        n, cpu = row.load.clients, row.cpu
        times = (
            cpu["serve"],
            cpu["work"] + cpu["close"],
            cpu["helper"],
            cpu["postgres"],
            cpu["generator"],
        )
        kills = ", ".join(
            f"{kind} {count} ({inside})" for kind, (count, inside) in row.kills.items()
        )
        lines.append(
            (
                *(n, row.load.length, row.report_bytes, row.taking, row.summing),
                n / row.taking,
                # of killed processes the time is lost
                *(None if row.kills else seconds / n for seconds in times),
                *(row.memory[kind] for kind in ("serve", "work", "close", "helper")),
                row.disk,
                kills or "none",
            )
        )
    return Table(columns=COLUMNS, rows=lines)
