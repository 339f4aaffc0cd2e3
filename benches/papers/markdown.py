"""The report as a document to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benches.papers.cells import MISSED, grid, remarks
from benches.papers.results import Report, TableResult

__all__ = ["QUICK", "markdown"]

QUICK = "Tried with --quick, with a fraction of the work: no result."


def markdown(report: Report, pictures: Mapping[str, Sequence[str]]) -> str:
    """Return the document: for each table its command, cells, note, pictures and origin.

    Parameters
    ----------
    report
        What is shown.
    pictures
        By key, where the pictures are, relative to the document.
    """
    parts = [
        "# Results",
        "Measured by `python -m benches.papers`: the mean over the runs ± their standard "
        "deviation, beside what the papers report. Run n has seed n − 1, which parts the "
        "ratings and draws everything else.",
    ]
    if report.quick:
        parts.append(f"**{QUICK}**")
    elif report.verdicts:
        parts.append(_summary(report))
    for result in report.tables:
        parts += _table(report, result, pictures.get(result.table.key, ()))
    parts += [f"Table {key} is left out: {why}" for key, why in report.missing.items()]
    return "\n\n".join(parts) + "\n"


def _summary(report: Report) -> str:
    """Return how many targets are met, and by name those that are not."""
    verdicts = report.verdicts
    met = f"{sum(verdicts.values())} of {len(verdicts)} targets met"
    missed = [f"{' / '.join(place)}" for place, reached in verdicts.items() if not reached]
    return f"**{met}{'; missed:' if missed else '.'}**" + "".join(f"\n- {m}" for m in missed)


def _table(report: Report, result: TableResult, pictures: Sequence[str]) -> list[str]:
    table = result.table
    quick = " --quick" if report.quick else ""
    parts = [
        f"## {table.title}",
        f"`python -m benches.papers --table {table.key} --seeds {report.seeds}{quick}`",
        _cells(result, quick=report.quick),
    ]
    if said := remarks(result, quick=report.quick):
        parts.append("\n".join(f"- {remark}" for remark in said))
    if table.note:
        parts.append(table.note)
    parts += [f"![{table.title}]({picture})" for picture in pictures]
    if result.records:
        parts.append(_origin(result))
    return parts


def _cells(result: TableResult, *, quick: bool) -> str:
    cells = grid(result, quick=quick)
    lines = [cells.heads, ("---",) * len(cells.heads), *map(_emphasised, cells.lines)]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def _emphasised(line: Sequence[str]) -> tuple[str, ...]:
    """Make a target stand out that is missed."""
    name, *rest = line
    missed = (MISSED, f"{MISSED}:")
    return (name, *(f"**{x}**" if x.partition(" ")[0] in missed else x for x in rest))


def _origin(result: TableResult) -> str:
    """Say when and where the runs were made, once for each machine."""
    machines: dict[str, int] = {}
    for record in result.records:
        one = record.machine
        named = [f"{one['cores']} × {one['cpu']}"] if "cpu" in one else []
        named += [f"{name} {one[name]}" for name in one if name not in ("cpu", "cores")]
        machines[", ".join(named)] = machines.get(", ".join(named), 0) + 1
    dates = sorted(record.date[:10] for record in result.records)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    counted = "; ".join(
        machine if len(machines) == 1 else f"{runs} runs: {machine}"
        for machine, runs in machines.items()
    )
    states = ", ".join(sorted({record.state for record in result.records}))
    return f"<sub>{when}; sources and data {states}; {counted}</sub>"
