"""The report as plain values, for programs."""

from __future__ import annotations

import math

from benches.papers.cells import remarks
from benches.papers.results import Report, RowResult, TableResult
from benches.papers.store import Record
from benches.papers.table import Below, Target

__all__ = ["Document", "report_document"]

Document = dict[str, object]

VERSION = 1


def report_document(report: Report) -> Document:
    """Return all of it, with the figures of every single run."""
    return {
        "version": VERSION,
        "quick": report.quick,
        "seeds": report.seeds,
        "tables": [_table(report, result) for result in report.tables],
        "missing": dict(report.missing),
    }


def _table(report: Report, result: TableResult) -> Document:
    table = result.table
    return {
        "key": table.key,
        "title": table.title,
        "metrics": list(table.metrics),
        "note": table.note,
        "remarks": list(remarks(result, quick=report.quick)),
        "rows": [_row(result, row, quick=report.quick) for row in result.rows],
    }


def _row(of: TableResult, result: RowResult, *, quick: bool) -> Document:
    row = result.row
    metrics = {metric for record in result.records for metric in record.figures}
    measured = {metric: result.measured(metric) for metric in sorted(metrics)}
    return {
        "name": row.name,
        "data": row.data,
        "settings": dict(row.settings),
        "paper": {
            metric: {"mean": one.mean, "sd": one.sd} for metric, one in row.paper.items()
        },
        "measured": {
            metric: None if one is None else {"mean": one.mean, "sd": one.sd}
            for metric, one in measured.items()
        },
        "target": {metric: _target(target) for metric, target in row.target.items()},
        "below": {metric: _below(below) for metric, below in row.below.items()},
        "met": dict(of.judged(result)) if of.final(result) and not quick else None,
        "reason": row.reason,
        "wanted": result.wanted,
        "runs": [_run(record) for record in result.records],
        "error": result.error,
        "missing": result.missing,
    }


def _target(target: Target) -> Document:
    bounds = {"at_least": target.at_least, "at_most": target.at_most}
    return {name: bound for name, bound in bounds.items() if math.isfinite(bound)}


def _below(below: Below) -> Document:
    return {"row": below.row, "margin": below.margin}


def _run(record: Record) -> Document:
    return {
        "seed": record.task.seed,
        "figures": dict(record.figures),
        "seconds": record.seconds,
        "date": record.date,
        "state": record.state,
        "machine": dict(record.machine),
    }
