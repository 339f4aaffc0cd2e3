"""Tables, JSON document and notes of a run, and the files of docs/speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from statistics import median

from benches.speed.fits import SLACK, fit
from benches.speed.releases import BEFORE, RELEASE_04
from benches.speed.runner import Measured
from benches.speed.scaling import Grown
from secagg.kit.table import (
    Cell,
    Column,
    Strong,
    Table,
    as_markdown,
    duration,
    markdown_cells,
    times,
)
from secagg.kit.timing import machine

PACKAGES = ("flwr", "phe", "python-flint", "statsmodels")
BOUND_TIER = "vaes512"
"""Tier for which the least ratios hold."""

GROWTH = "growth"
"""Key of the table of the series; other tables have the names of their tiers."""

_AXES = {"neighbours": "k", "length": "d"}
"""Symbols of arguments on an axis."""


def _least(ratio: float) -> str:
    return f"{ratio:,g}×"


COLUMNS = (
    *(Column(""), Column("against", left=True), Column("its time", duration)),
    *(Column("one core", duration), Column("ratio", times), Column("at least", _least)),
    *(Column("two cores", duration), Column("ratio", times), Column("at least", _least)),
)
SCALING = (
    *(Column(""), Column("over", left=True), Column("first", duration)),
    *(Column("last", duration), Column("order"), Column("exponent", "{:.2f}".format)),
    Column("at the end", "{:.2f}".format),
)


@dataclass
class Run:
    """Results so far: rows by tier, series, the load before, and the errors of failed rows."""

    quick: bool
    repeats: int
    load: float
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    rows: list[Measured] = field(default_factory=list)
    grown: list[Grown] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    @property
    def tiers(self) -> list[str]:
        """Tiers of the rows, in the order of their measurement."""
        return list(dict.fromkeys(one.tier for one in self.rows))

    def document(self) -> dict[str, object]:
        """Return the run for `as_json`."""
        return {
            "machine": facts(),
            "date": self.date,
            "load": self.load,
            "commits": {"release 0.4": RELEASE_04, "before the tiers with VAES": BEFORE},
            "quick": self.quick,
            "complete": self.complete,
            "repeats": self.repeats,
            "rows": self.rows,
            "scaling": [_grown_document(one) for one in self.grown],
            "failed": self.failed,
        }


def facts() -> dict[str, str]:
    """Return the machine and the versions of all that was measured."""
    found = machine()
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _grown_document(grown: Grown) -> dict[str, object]:
    found = fit(grown.points, grown.medians)
    return {
        "title": grown.series.title,
        "axis": grown.series.axis,
        "arguments": dict(grown.series.arguments),
        "order": grown.series.order,
        "seconds": grown.seconds,
        "fit": found and found._asdict(),
    }


def table(rows: Sequence[Measured], *, judge: bool = True) -> Table:
    """Return a line per row and rival: medians, ratios, and the required ratios.

    A missed requirement stands out, unless `judge` is False or the tier is not `BOUND_TIER`. A
    bound of seconds is a rival of its own.
    """
    lines = [line for one in rows for line in _lines(one, judge and one.tier == BOUND_TIER)]
    return Table(columns=COLUMNS, rows=lines)


def _lines(one: Measured, judge: bool) -> Iterator[list[Cell]]:
    what = one.row.what
    if one.row.most is not None:
        ours = median(one.seconds[1])
        ratio = one.row.most / ours
        least = 1.0 if judge else None
        yield [what, "bound", one.row.most, ours, *_judged(ratio, least), *([None] * 3)]
        what = ""
    for against in one.against:
        line: list[Cell] = [what, against.rival.label]
        what = ""
        if not against.seconds:
            yield [*line, against.absent, *([None] * 6)]
            continue
        line.append(median(against.seconds))
        least_of = dict(zip(one.row.cores, against.rival.least, strict=False))
        for cores in (1, 2):
            if cores in one.seconds:
                least = least_of.get(cores) if judge else None
                ratio = one.ratio(against, cores)
                line += [median(one.seconds[cores]), *_judged(ratio, least)]
            else:
                line += [None] * 3
        yield line


def _judged(ratio: float, least: float | None) -> tuple[Cell, Cell]:
    missed = least is not None and ratio < least
    return Strong(times(ratio)) if missed else ratio, least


def scaling_table(grown: Sequence[Grown]) -> Table:
    """Return a line per series; an exponent above its order stands out."""
    lines: list[list[Cell]] = []
    for one in grown:
        found = fit(one.points, one.medians)
        axis = _AXES.get(one.series.axis, one.series.axis)
        over = f"{axis} = {one.points[0]:,} to {one.points[-1]:,}"
        line: list[Cell] = [one.series.title, over, one.medians[0], one.medians[-1]]
        line.append(one.series.theory)
        if found is None:
            lines.append([*line, None, None])
            continue
        end: Cell = found.end
        if found.hides(one.series.order):
            end = Strong(f"{found.end:.2f}")
        lines.append([*line, found.overall, end])
    return Table(columns=SCALING, rows=lines)


def notes(run: Run) -> Iterator[str]:
    """Yield the notes that explain the figures of a run."""
    if run.quick:
        yield "Tried with --quick: no result."
    if any(one.seconds and one.rival.runs == 1 for row in run.rows for one in row.against):
        yield "Flower's SecAgg+ ran once; all other figures are medians."
    if run.grown:
        yield (
            "Exponent: of time over size, fitted to all points. At the end: between the last "
            f"two. It stands out if it is more than {SLACK} above the order."
        )
    if run.load > 0.5:
        yield f"The machine was busy: its load was {run.load:.1f} at the start."
    yield from (f"{name} failed: {why}." for name, why in run.failed.items())


def origin(run: Run) -> str:
    """Return a text with date, machine and versions of a run."""
    return ", ".join([run.date, *(f"{name} {text}" for name, text in facts().items())])


def parts(run: Run) -> Iterator[tuple[str, str, Table]]:
    """Yield key, title and table of each tier, and of the series."""
    for tier in run.tiers:
        rows = [one for one in run.rows if one.tier == tier]
        yield tier, f"Ratios with tier `{tier}`", table(rows, judge=not run.quick)
    if run.grown:
        yield GROWTH, "Growth", scaling_table(run.grown)


def shown(run: Run, picture: str, text: str) -> dict[str, dict[str, object]]:
    """Return the tables by key, as docs/speed.md shows them.

    The table of the series has `picture`, the name of a file, with `text` in its place.
    """
    found = dict[str, dict[str, object]]()
    for key, title, part in parts(run):
        heads, *rows = markdown_cells(part)
        verdicts = dict(_verdicts(part))
        found[key] = {
            "title": title,
            "command": "python -m benches.speed --tier all",
            "columns": heads,
            "rows": rows,
            "remarks": [] if found else list(notes(run)),
            "note": "",
            "pictures": [{"file": picture, "text": text}] if key == GROWTH else [],
            "origin": origin(run),
            "met": sum(verdicts.values()),
            "missed": [name for name, met in verdicts.items() if not met],
        }
    return found


def _verdicts(part: Table) -> Iterator[tuple[str, bool]]:
    """Yield the name of each bound and whether it is met, by the cells that stand out."""
    what: Cell = ""
    for first, second, *cells in part.rows:
        what = first or what
        if part.columns is SCALING:
            yield f"{what}, {second}", not isinstance(cells[-1], Strong)
            continue
        for cores, place in (("one core", 2), ("two cores", 5)):
            if len(cells) > place + 1 and cells[place + 1] is not None:
                yield f"{what} / {second}, {cores}", not isinstance(cells[place], Strong)


def as_text(run: Run) -> str:
    """Return tables and notes as Markdown."""
    tables = [f"## {title}\n\n{as_markdown(part)}" for _, title, part in parts(run)]
    return "\n\n".join([*tables, "\n".join(f"- {one}" for one in (*notes(run), origin(run)))])
