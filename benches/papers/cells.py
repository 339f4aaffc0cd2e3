"""A table's results as text in cells: what the terminal and the document both show."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benches.papers.results import Measured, RowResult, TableResult
from benches.papers.table import Below, Published, Row, Target

__all__ = ["MISSED", "Grid", "grid", "remarks"]

NONE = "–"
MISSED = "no"  # how a verdict begins that is final and negative


@dataclass(frozen=True)
class Grid:
    """Cells of text, as many in each line as there are heads."""

    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def grid(result: TableResult, *, quick: bool = False) -> Grid:
    """Return a line for each row: paper beside measured by metric, seeds, target, met, time.

    A metric that no paper gives has no column for it; a `quick` run meets no target.
    """
    table = result.table
    published = [m for m in table.metrics if any(m in row.row.paper for row in result.rows)]
    heads = [""]
    for metric in table.metrics:
        heads += [f"{metric}: paper", "measured"] if metric in published else [metric]
    aimed = any(row.row.target or row.row.below for row in result.rows)
    heads += ["seeds", *(("target", "met?") if aimed else ()), "s per run"]
    lines = []
    for row in result.rows:
        line = [row.row.name]
        for metric in table.metrics:
            if metric in published:
                line.append(_published(row.row.paper.get(metric)))
            line.append(_measured(row.measured(metric)))
        line.append(_seeds(row))
        if aimed:
            line += [_targets(row.row), _met(result, row, quick=quick)]
        line.append(_seconds(row))
        lines.append(tuple(line))
    return Grid(tuple(heads), tuple(lines))


def remarks(result: TableResult, *, quick: bool = False) -> tuple[str, ...]:
    """Return what must be said below a table.

    That is what the runs say together, why a target is missed, rows that failed or were left
    out, and runs of other sources or data than the present ones or each other's.
    """
    said = list(result.table.findings(result.results))
    said += [
        f"{one.row.name}: missed, for {one.row.reason}"
        for one in result.rows
        if one.row.reason and not quick and not all(result.judged(one).values())
    ]
    said += [f"{one.row.name}: failed, {one.error}" for one in result.rows if one.error]
    said += _left_out(result)
    by_data: dict[str, set[str]] = {}
    for record in result.records:
        by_data.setdefault(record.task.data, set()).add(record.state)
    for data, states in by_data.items():
        if len(states) > 1:
            said.append(
                f"the runs on {data} come from {len(states)} states of the sources or of the "
                f"data ({', '.join(sorted(states))})"
            )
        now = result.present.get(data)
        old = [one for one in result.records if one.task.data == data and one.state != now]
        if now is not None and old:
            said.append(
                f"{len(old)} of the runs on {data} were measured with other sources or data "
                f"than the present ({now})"
            )
    return tuple(said)


def _left_out(result: TableResult) -> list[str]:
    """Say what is missing, once for all rows that miss it."""
    names: dict[str, list[str]] = {}
    for one in result.rows:
        if one.missing:
            names.setdefault(one.missing, []).append(one.row.name)
    return [
        f"{_together(rows, len(result.rows))}: left out, {missing}"
        for missing, rows in names.items()
    ]


def _together(names: list[str], of: int) -> str:
    return f"all {of} rows" if len(names) == of > 1 else "; ".join(names)


def number(value: float, like: float | None = None) -> str:
    """Write a figure with the decimals that `like`, by default the figure itself, deserves."""
    size = abs(value if like is None else like)
    if size >= 1e9:  # what has diverged
        return f"{value:.1e}"
    if like is None and value == int(value):  # a count
        return f"{value:,.0f}"
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.1f}"
    if size >= 0.01 or value == 0:
        return f"{value:.4f}"
    return f"{value:.1e}"


def _published(figure: Published | None) -> str:
    if figure is None:
        return NONE
    mean, sd = figure.mean, figure.sd
    return _with_spread(number(mean), None if sd is None else number(sd, mean))


def _measured(figure: Measured | None) -> str:
    if figure is None:
        return NONE
    mean, sd = figure.mean, figure.sd
    if not sd:  # one run, or the same in every run
        return number(mean)
    return _with_spread(number(mean), number(sd, mean))


def _with_spread(mean: str, sd: str | None) -> str:
    return mean if sd is None else f"{mean} ± {sd}"


def _seeds(row: RowResult) -> str:
    done = len(row.records)
    return f"{done}" if done == row.wanted else f"{done} of {row.wanted}"


def _targets(row: Row) -> str:
    aims = [f"{name} {_bounds(target)}" for name, target in row.target.items()]
    aims += [f"{name} {_below(below)}" for name, below in row.below.items()]
    return "; ".join(aims) or NONE


def _below(below: Below) -> str:
    return f"≤ {below.row} − {below.margin:g}"


def _bounds(target: Target) -> str:
    if target.at_least == -math.inf:
        return f"≤ {target.at_most:g}"
    if target.at_most == math.inf:
        return f"≥ {target.at_least:g}"
    return f"{target.at_least:g} to {target.at_most:g}"


def _met(result: TableResult, row: RowResult, *, quick: bool) -> str:
    verdicts = {} if quick else result.judged(row)
    if not verdicts:
        return NONE
    so_far = "" if result.final(row) else "so far "
    missed = [aim for aim, met in verdicts.items() if not met]
    if not missed:
        return f"{so_far}yes"
    return f"{so_far}{MISSED}" + ("" if len(verdicts) == 1 else f": {', '.join(missed)}")


def _seconds(row: RowResult) -> str:
    if not row.records:
        return NONE
    mean = sum(record.seconds for record in row.records) / len(row.records)
    return f"{mean:.0f}" if mean >= 10 else f"{mean:.1f}"
