"""Result of a study: tables, with hidden cells, as text, JSON, HTML and DataFrames."""

from __future__ import annotations

import html
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from secagg._printable import in_short
from secagg.errors import ParameterError, needing
from secagg.statistics.columns import Category
from secagg.statistics.design import Products
from secagg.statistics.disclosure import hidden_cells
from secagg.statistics.layout import own
from secagg.statistics.noise import Privacy
from secagg.statistics.plan import Plan
from secagg.statistics.statistic import (
    Cell,
    NoTable,
    Past,
    Row,
    Sample,
    Statistic,
    Table,
    Value,
)
from secagg.statistics.study import Study

HIDDEN = "–"
"""Text of a value that is hidden or does not exist."""


@dataclass(frozen=True, repr=False)
class Result:
    """Result of a study.

    Attributes
    ----------
    plan : Plan
    tables : mapping of str to mapping of str to Table
        Tables of each statistic by name; the main table has the empty name.
    problems : mapping of str to str
        Statistics without a result: which columns, why, and the remedy.
    """

    plan: Plan
    tables: Mapping[str, Mapping[str, Table]]
    problems: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, earlier: Sequence[Study] = ()) -> Result:
        """Return the result of a study that has ended.

        Parameters
        ----------
        study : Study
        earlier : sequence of Study, optional
            Studies over the same records whose results were published, in this order: the
            hidden cells of all results together stay hidden.

        Raises
        ------
        ParameterError
            Steps are missing, or earlier studies are over other columns or records.
        MissingExtra
            scipy is not installed.
        """
        if not study.ended or not study.past:
            raise ParameterError(
                f"step {study.number} of the study is missing; take the study after the last"
            )
        plan, published, secret = study.plan, set[Cell](), set[Cell]()
        if plan.privacy is not None:
            return cls._noised(study, plan.privacy)
        samples = [(part.name, part.sample(past)) for part, past in _parts(study)]
        for other in earlier:
            _same_columns(plan, other.plan)
            cells = _cells(other)
            hidden = hidden_cells(cells, other.plan.frame, published, secret)
            secret |= hidden
            published |= set(cells) - hidden
            samples += [("an earlier study", part.sample(past)) for part, past in _parts(other)]
        hidden = hidden_cells(_cells(study), plan.frame, published, secret)
        tables, problems = dict[str, Mapping[str, Table]](), dict[str, str]()
        counts = study.sums[0][0]["n"][1:]
        missing = {name: int(k) for name, k in zip(plan.columns, counts, strict=True)}
        for part, past in _parts(study):
            places = {cell.place for cell in hidden if cell.table == part.name}
            try:
                if isinstance(part, Products):
                    _judge_samples(part, past, samples, missing, plan)
                found = part.tables(plan.frame, past, places)
                tables[part.name] = {k: _explained(t, plan) for k, t in found.items()}
            except NoTable as error:
                problems[part.name] = str(error)
        return cls(plan, tables, problems)

    @classmethod
    def _noised(cls, study: Study, privacy: Privacy) -> Result:
        """Return the result of noised sums: few records are hidden by their noised number."""
        plan, fields = study.plan, {f.name: f for f in study.plan.step([]).fields}
        tables = {
            part.name: part.noised(plan.frame, past, privacy.errors(own(place, fields)))
            for place, (part, past) in enumerate(_parts(study))
        }
        return cls(plan, tables)

    def __getitem__(self, name: str) -> Table:
        """Return a table by the statistic's name, or by ``"statistic: table"``.

        Raises
        ------
        ParameterError
            There is no such table; the message has the reason.
        """
        statistic, _, table = name.partition(": ")
        if statistic in self.problems:
            raise ParameterError(f"{statistic} has no result: {self.problems[statistic]}")
        found = self.tables.get(statistic, {}).get(table)
        if found is None:
            raise ParameterError(
                f"{in_short(name)} is no table of the result; take of {self.names}"
            )
        return found

    @property
    def names(self) -> list[str]:
        """Names of all tables."""
        return [
            f"{statistic}: {name}" if name else statistic
            for statistic, tables in self.tables.items()
            for name in tables
        ]

    def to_pandas(self, name: str) -> object:
        """Return a table as a DataFrame; a hidden value is missing.

        Raises
        ------
        ParameterError
            There is no such table.
        MissingExtra
            pandas is not installed.
        """
        with needing("a DataFrame", "pandas", "pandas"):
            import pandas
        table = self[name]
        return pandas.DataFrame(list(table.rows), columns=list(table.header))

    def to_json(self) -> str:
        """Return plan, tables and problems as JSON."""
        tables = {name: vars(self[name]) for name in self.names}
        content = {
            "plan": json.loads(self.plan.to_json()),
            "digest": self.plan.digest.hex(),
            "tables": tables,
            "problems": dict(self.problems),
        }
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __repr__(self) -> str:
        return f"<Result of {self.plan.name!r}: {', '.join(self.names)}>"

    def __str__(self) -> str:
        """Return all tables as text."""
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return all tables as text.

        Parameters
        ----------
        width : int, optional
            Most characters of a line, ≥ 1. A wider table continues below, with the same first
            column. None: no bound.
        """
        parts = [text_of(name, self[name], width) for name in self.names]
        problems = [f"{name}: {problem}" for name, problem in self.problems.items()]
        return "\n\n".join([*parts, *(_wrapped(problem, width) for problem in problems)])

    def _repr_html_(self) -> str:
        """Return all tables as HTML, for notebooks."""
        parts = list[str]()
        for name in self.names:
            table = self[name]
            rows = "".join(_html_row("td", row) for row in table.rows)
            note = f"<p>{html.escape(table.note)}</p>" if table.note else ""
            parts.append(
                f"<h4>{html.escape(name)}</h4><table><thead>{_html_row('th', table.header)}"
                f"</thead><tbody>{rows}</tbody></table>{note}"
            )
        for name, problem in self.problems.items():
            parts.append(f"<p><b>{html.escape(name)}</b>: {html.escape(problem)}</p>")
        return "".join(parts)


def _html_row(kind: str, row: Row) -> str:
    cells = (f"<{kind}>{html.escape(_text(value))}</{kind}>" for value in row)
    return f"<tr>{''.join(cells)}</tr>"


def _explained(table: Table, plan: Plan) -> Table:
    """Return a table of which a note explains the hidden values."""
    if table.header[-1] == "unknown" or all(None not in row for row in table.rows):
        return table
    why = (
        f"{HIDDEN}: of fewer than {plan.min_count} records or {plan.min_sites} sites, or such "
        "numbers would follow, or there is none"
    )
    return replace(table, note=f"{table.note}; {why}" if table.note else why)


def _parts(study: Study) -> list[tuple[Statistic, Past]]:
    return list(zip(study.plan.parts, study.sums, strict=True))


def _cells(study: Study) -> list[Cell]:
    frame, first = study.plan.frame, study.sums[0][0]
    unknown = zip(frame.columns.items(), first["above"], strict=True)
    closed = {name for (name, c), k in unknown if isinstance(c, Category) and frame.few(int(k))}
    cells = [cell for part, past in _parts(study) for cell in part.cells(frame, past)]
    return [
        replace(cell, closed=any(name in closed and end == 0 for name, _, end in cell.where))
        for cell in cells
    ]


def _same_columns(plan: Plan, other: Plan) -> None:
    """Raise `ParameterError` if cells of two plans have other points for the same values."""
    for name in sorted(plan.columns.keys() & other.columns.keys()):
        if plan.columns[name] != other.columns[name]:
            raise ParameterError(
                f"column {name!r} differs in the earlier plan {other.name!r}; plan the column "
                "as before"
            )


def _judge_samples(
    part: Products,
    past: Past,
    samples: Sequence[tuple[str, Sample | None]],
    missing: Mapping[str, int],
    plan: Plan,
) -> None:
    """Raise `NoTable` if sums over nearly the same records are published."""
    columns, n = part.sample(past)
    for name, sample in samples:
        if sample is None or not sample[0] & columns or sample == (columns, n):
            continue
        lacking = (missing[column] for column in sample[0] ^ columns if column in missing)
        if plan.frame.few(abs(sample[1] - n)) or any(map(plan.frame.few, lacking)):
            raise NoTable(
                f"the records of {name} and those with values in all of {sorted(columns)} "
                f"differ by fewer than {plan.min_count}, and the difference of the two would "
                "show their values; leave one of the two out"
            )


def text_of(name: str, table: Table, width: int | None = None) -> str:
    """Return a table as text below a name; see `Result.text`."""
    cells = [table.header, *([_text(value) for value in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = list[str]()
    for block in _blocks(widths, width):
        for row in cells:
            first, *rest = (
                row[i].rjust(widths[i]) if i else row[i].ljust(widths[i]) for i in block
            )
            lines.append("  ".join(["", first, *rest]).rstrip())
    note = [_wrapped(table.note, width)] if table.note else []
    return "\n".join([_wrapped(name, width), *lines, *note])


def _blocks(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """Return the columns that fit in a line together, each time after the first column."""
    blocks, room = [[0]], 0
    for place, size in enumerate(widths[1:], start=1):
        room += 2 + size
        if width is not None and len(blocks[-1]) > 1 and 2 + widths[0] + room > width:
            blocks.append([0])
            room = 2 + size
        blocks[-1].append(place)
    return blocks


def _wrapped(text: str, width: int | None) -> str:
    return text if width is None else textwrap.fill(text, width, subsequent_indent="  ")


def _text(value: Value) -> str:
    if value is None:
        return HIDDEN
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    return f"{value:,}" if isinstance(value, int) else value
