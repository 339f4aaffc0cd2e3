"""Output of results: tables on the terminal and for docs/results.md, and results.json."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from benches.papers.results import Outcome, Report, RowResult, TableResult
from benches.papers.table import Row, Target
from fedmf.errors import SettingError
from secagg._files import replace_file
from secagg.kit import table as kit
from secagg.kit.table import Cell, Column, Strong, Value, number

QUICK = "Trial with --quick, a fraction of the work: no result."
VERSION = 1  # of results.json


class LiveRuns:
    """Progress of the runs: a line on the console per finished run, and on a terminal a bar."""

    def __init__(self, console: Console) -> None:
        self.kept = self.to_run = 0
        self.begun = False
        self.console = console
        self.bar = Progress(
            "{task.description}", BarColumn(bar_width=24), MofNCompleteColumn(),
            TimeElapsedColumn(), console=console, transient=True,
            disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self.bar.add_task("runs", total=None)

    def begin(self, kept: int, to_run: int) -> None:
        """Print the numbers of kept runs and of runs to make."""
        self.kept, self.to_run, self.begun = kept, to_run, True
        self.bar.update(self._task, total=to_run)
        self.print(f"{kept} earlier runs kept, {to_run} to run")

    def finished(self, job: object, outcome: Outcome) -> None:
        """Print the figures of a run, or the reason why there are none."""
        self.bar.advance(self._task)
        self.to_run -= 1
        if outcome.record is not None:
            self.kept += 1
            figures = [f"{name} {number(x)}" for name, x in outcome.record.figures.items()]
            self.print(f"{job}: {', '.join(figures)} ({outcome.record.seconds:.1f} s)")
        elif outcome.missing is not None:
            self.print(f"{job}: left out: {outcome.missing}", "yellow")
        else:
            self.print(f"{job}: failed: {outcome.error}", "red")

    def print(self, line: str, style: str | None = None) -> None:
        """Print a text as one line, without breaking it."""
        self.console.print(line, style=style, markup=False, soft_wrap=True)


def print_report(console: Console, report: Report) -> None:
    """Print each table with its remarks."""
    for result in report.tables:
        kit.print_table(grid(result), console)
        console.print()
    for key, why in report.missing.items():
        console.print(f"table {key} is left out: {why}", style="yellow", markup=False)
    if report.quick:
        console.print(QUICK, style="yellow")


def grid(result: TableResult) -> kit.Table:
    """Return the table to show; metrics with published figures have a column for the paper."""
    metrics, rows = result.table.metrics, [one.row for one in result.rows]
    published = [metric for metric in metrics if any(metric in row.paper for row in rows)]
    aimed = any(row.target or row.below for row in rows)
    heads = [""]
    for metric in metrics:
        heads += [f"{metric}: paper", "measured"] if metric in published else [metric]
    heads += ["seeds", *(("target", "met?") if aimed else ()), "s per run"]
    lines = list[list[Cell]]()
    for one in result.rows:
        line: list[Cell] = [one.row.name]
        for metric in metrics:
            if metric in published:
                paper = one.row.paper.get(metric)
                line.append(None if paper is None else Value(paper.mean, paper.sd))
            measured = one.measured(metric)  # no spread if it is the same in every run
            line.append(None if measured is None else Value(measured.mean, measured.sd or None))
        done = len(one.records)
        line.append(f"{done}" if done == one.wanted else f"{done} of {one.wanted}")
        if aimed:
            line += [_targets(one.row), _met(result, one)]
        seconds = fmean(run.seconds for run in one.records) if done else None
        line.append(None if seconds is None else f"{seconds:.{0 if seconds >= 10 else 1}f}")
        lines.append(line)
    return kit.Table(
        title=result.table.title,
        columns=[Column(head) for head in heads],
        rows=lines,
        notes=remarks(result),
    )


def remarks(result: TableResult) -> tuple[str, ...]:
    """Return findings, reasons for missed targets, and rows that failed or were left out."""
    rows = result.rows
    missed = [
        f"{one.row.name}: missed: {one.row.reason}"
        for one in rows
        if one.row.reason and not all(result.judged(one).values())
    ]
    failed = [f"{one.row.name}: failed: {one.error}" for one in rows if one.error]
    left_out = []
    for why in dict.fromkeys(one.missing for one in rows if one.missing):
        names = [one.row.name for one in rows if one.missing == why]
        whole = len(names) == len(rows) > 1
        left_out.append(
            f"{f'all {len(rows)} rows' if whole else '; '.join(names)}: left out: {why}"
        )
    return (*result.table.findings(result.results), *missed, *failed, *left_out)


def _targets(row: Row) -> str | None:
    aims = [f"{name} {_bounds(target)}" for name, target in row.target.items()]
    aims += [f"{name} ≤ {one.row}{_margin(one.margin)}" for name, one in row.below.items()]
    return "; ".join(aims) or None


def _margin(margin: float) -> str:
    return f" {'+-'[margin > 0]} {abs(margin):g}".replace("-", "−") if margin else ""


def _bounds(target: Target) -> str:
    if target.at_least == -math.inf:
        return f"≤ {target.at_most:g}"
    if target.at_most == math.inf:
        return f"≥ {target.at_least:g}"
    return f"{target.at_least:g} to {target.at_most:g}"


def _met(result: TableResult, row: RowResult) -> Cell:
    verdicts = result.judged(row)
    missed = [aim for aim, met in verdicts.items() if not met]
    named = "yes" if not missed else "no" if len(verdicts) == 1 else f"no: {', '.join(missed)}"
    if verdicts and not result.final(row):
        return f"so far {named}"
    return (Strong(named) if missed else named) if verdicts else None


def shown(
    report: Report, result: TableResult, pictures: Sequence[Mapping[str, str]]
) -> dict[str, object]:
    """Return the table as docs/results.md shows it, with texts in Markdown as cells.

    `pictures` have a `file` and a `text` each. "met" is a number, "missed" has the names of row
    and target.
    """
    heads, *rows = kit.markdown_cells(grid(result))
    verdicts = {
        f"{row} / {aim}": met
        for (key, row, aim), met in report.verdicts.items()
        if key == result.table.key
    }
    quick = " --quick" if report.quick else ""
    return {
        "title": result.table.title,
        "command": "python -m benches.papers "
        f"--table {result.table.key} --seeds {report.seeds}{quick}",
        "columns": heads,
        "rows": rows,
        "remarks": remarks(result),
        "note": result.table.note,
        "pictures": pictures,
        "origin": _origin(result),
        "met": sum(verdicts.values()),
        "missed": [aim for aim, met in verdicts.items() if not met],
    }


def _origin(result: TableResult) -> str:
    """Return a text with dates, digests of sources and data, and machines of the runs."""
    records = [record for row in result.rows for record in row.records]
    if not records:
        return ""
    machines = Counter[str]()
    for one in (record.machine for record in records):
        named = [f"{one['cores']} × {one['cpu']}"] if "cpu" in one else []
        named += [f"{name} {one[name]}" for name in one if name not in ("cpu", "cores")]
        machines[", ".join(named)] += 1
    dates = sorted({record.date[:10] for record in records})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    counted = "; ".join(
        machine if len(machines) == 1 else f"{runs} runs: {machine}"
        for machine, runs in machines.items()
    )
    states = ", ".join(sorted({record.state for record in records}))
    return f"{when}; sources and data {states}; {counted}"


def document(report: Report) -> dict[str, object]:
    """Return the report for `secagg.kit.table.as_json`, with the figures of every run."""
    return {
        "version": VERSION,
        "quick": report.quick,
        "seeds": report.seeds,
        "tables": [
            {
                **{
                    name: getattr(one.table, name)
                    for name in ("key", "title", "metrics", "note")
                },
                "remarks": remarks(one),
                "rows": [_row(one, row) for row in one.rows],
            }
            for one in report.tables
        ],
        "missing": report.missing,
    }


def _row(of: TableResult, result: RowResult) -> dict[str, object]:
    row = result.row
    metrics = {metric for record in result.records for metric in record.figures}
    return {
        **{name: getattr(row, name) for name in ("name", "data", "paper", "below", "reason")},
        **{name: getattr(result, name) for name in ("wanted", "error", "missing")},
        "measured": {metric: result.measured(metric) for metric in sorted(metrics)},
        "target": {
            metric: {name: x for name, x in vars(target).items() if math.isfinite(x)}
            for metric, target in row.target.items()
        },
        "met": of.judged(result) if of.final(result) else None,
        "runs": result.records,
    }


def write(report: Report, folder: Path) -> None:
    """Write results.json, and in "results/" each table and its pictures, to copy to docs/."""
    try:
        (folder / "results").mkdir(parents=True, exist_ok=True)
        replace_file(folder / "results.json", f"{kit.as_json(document(report))}\n")
        for result in report.tables:
            key, drawn = result.table.key, list[Mapping[str, str]]()
            try:
                for count, (text, picture) in enumerate(_pictures(result), start=1):
                    name = f"{key}-{count}.svg" if count > 1 else f"{key}.svg"
                    replace_file(folder / "results" / name, picture)
                    drawn.append({"file": name, "text": text})
            finally:
                table = f"{kit.as_json(shown(report, result, drawn))}\n"
                replace_file(folder / "results" / f"{key}.json", table)
    except OSError as error:
        raise SettingError(
            f"--out {folder} cannot be written to: {error.strerror}; choose another"
        ) from error


def _pictures(result: TableResult) -> Iterator[tuple[str, bytes]]:
    """Yield description and SVG of each picture: of the metrics, then the table's own."""
    from benches.papers.picture import draw
    from secagg.kit.picture import style, svg

    found = result.results
    with style():
        own = [picture(found) for picture in result.table.pictures] if found else []
        figures = [figure for figure in (draw(result), *own) if figure is not None]
    for figure in figures:
        yield str(figure.get_label()), svg(figure)
