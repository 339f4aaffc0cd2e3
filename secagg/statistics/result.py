"""Result of a study: tables, with hidden cells, as text, JSON, HTML and DataFrames."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TypeAlias

from secagg._printable import in_short
from secagg.errors import ParameterError, needing
from secagg.kit.plain_table import as_lines, wrapped
from secagg.statistics.columns import Category, Number
from secagg.statistics.design import Products
from secagg.statistics.disclosure import hidden_cells
from secagg.statistics.layout import own
from secagg.statistics.noise import Privacy
from secagg.statistics.plan import Plan, mentioned
from secagg.statistics.statistic import Cell, NoTable, Past, Sample, Statistic, Table, Value
from secagg.statistics.study import Study

Samples: TypeAlias = Sequence[tuple[str, Sample | None]]
"""Samples of published sums, with the names of the statistics."""
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
            raise ParameterError(f"step {study.number} is missing; take the study at the end")
        plan, published, secret = study.plan, set[Cell](), set[Cell]()
        if plan.privacy is not None:
            return cls._noised(study, plan.privacy)
        samples = list[tuple[str, Sample | None]]()
        for one in (*earlier, study):
            columns = one.plan.columns.items()
            if changed := [name for name, old in columns if plan.columns.get(name, old) != old]:
                raise ParameterError(
                    f"the columns {changed} differ in the earlier plan {one.plan.name!r}; plan "
                    "the columns as before"
                )
            cells = _cells(one)
            hidden = hidden_cells(cells, one.plan.frame, published, secret)
            secret |= hidden
            published |= set(cells) - hidden
            whose = "" if one is study else "an earlier study"
            new = [(whose or part.name, part.sample(past)) for part, past in _parts(one)]
            samples = new + samples
        tables, problems = dict[str, dict[str, Table]](), dict[str, str]()
        for part, past in _parts(study):
            places = {cell.place for cell in hidden if cell.table == part.name}
            try:
                if isinstance(part, Products):
                    _judge_samples(study, part.sample(past), samples)
                found = part.tables(plan.frame, past, places)
                tables[part.name] = {k: _explained(t, plan) for k, t in found.items()}
            except NoTable as error:
                problems[part.name] = str(error)
        _mark_clipped(plan, tables)
        return cls(plan, tables, problems)

    @classmethod
    def _noised(cls, study: Study, privacy: Privacy) -> Result:
        """Return the result of noised sums: few records are hidden by their noised number."""
        plan, fields = study.plan, {f.name: f for f in study.plan.step([]).fields}
        tables = {
            part.name: part.noised(plan.frame, past, privacy.errors(own(place, fields)))
            for place, (part, past) in enumerate(_parts(study))
        }
        # more than the noise alone
        _mark_clipped(plan, tables, 3 * max(privacy.errors(own(0, fields)).values()))
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
        if (found := self.tables.get(statistic, {}).get(table)) is None:
            raise ParameterError(f"{in_short(name)} is no table; take of {self.names}")
        return found

    @property
    def names(self) -> list[str]:
        """Names of all tables."""
        pairs = ((part, name) for part, tables in self.tables.items() for name in tables)
        return [f"{part}: {name}" if name else part for part, name in pairs]

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
        columns = [[row[i] for row in table.rows] for i in range(len(table.header))]
        series = [pandas.Series(values, dtype=_dtype(values)) for values in columns]
        return pandas.concat(series, axis=1, keys=table.header)

    def to_json(self) -> str:
        """Return plan, tables and problems as JSON."""
        plan, digest = json.loads(self.plan.to_json()), self.plan.digest.hex()
        tables = {name: vars(self[name]) for name in self.names}
        content = {"plan": plan, "digest": digest, "tables": tables, "problems": self.problems}
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
        return "\n\n".join([*parts, *(wrapped(problem, width) for problem in problems)])

    def _repr_html_(self) -> str:
        """Return all tables as HTML, for notebooks."""
        parts = list[str]()
        for name in self.names:
            table = self[name]
            head, rows = _html("th", [table.header]), _html("td", table.rows)
            parts += [f"<h4>{escape(name)}</h4><table><thead>{head}</thead>"]
            parts += [f"<tbody>{rows}</tbody></table>"]
            parts += [f"<p>{escape(table.note)}</p>"] if table.note else []
        for name, problem in self.problems.items():
            parts += [f"<p><b>{escape(name)}</b>: {escape(problem)}</p>"]
        return "".join(parts)


def _dtype(values: Sequence[Value]) -> str | None:
    """Return pandas' dtype of a column, None for texts; integers with gaps stay integers."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return "Int64" if None in values else "int64"
    return None if str in kinds else "float64"


def _html(kind: str, rows: Sequence[Sequence[Value]]) -> str:
    texts = ((f"<{kind}>{escape(_text(value))}</{kind}>" for value in row) for row in rows)
    return "".join(f"<tr>{''.join(row)}</tr>" for row in texts)


def _explained(table: Table, plan: Plan) -> Table:
    """Return a table of which a note explains the hidden values."""
    if table.header[-1] == "unknown" or all(None not in row for row in table.rows):
        return table
    why = (
        f"{HIDDEN}: of fewer than {plan.min_count} records or {plan.min_sites} sites, or such "
        "numbers would follow, or there is none"
    )
    return _noted(table, why)


def _noted(table: Table, note: str) -> Table:
    return replace(table, note=f"{table.note}; {note}" if table.note else note)


def _mark_clipped(plan: Plan, tables: dict[str, dict[str, Table]], least: float = 0) -> None:
    """Add a note to tables of columns with more than `least` values outside of the range."""
    clipped = set[str]()
    for name, row in zip(plan.columns, tables["records"][""].rows, strict=True):
        outside = [math.inf if value is None else float(value) for value in row[2:4]]
        if isinstance(plan.columns[name], Number) and max(outside) > least:
            clipped.add(name)
    for part in plan.statistics:
        names = ", ".join(sorted(clipped.intersection(mentioned([part]))))
        if names and part.name in tables:
            note = f"values of {names} outside of the range were clipped: see records"
            tables[part.name][""] = _noted(tables[part.name][""], note)


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


def _judge_samples(study: Study, mine: Sample, samples: Samples) -> None:
    """Raise `NoTable` if sums over nearly the same records are published."""
    frame, (columns, n) = study.plan.frame, mine
    missing = dict(zip(frame.columns, study.sums[0][0]["n"][1:], strict=True))
    for name, sample in samples:
        if sample is None or not sample[0] & columns or sample == mine:
            continue
        lacking = (missing[column] for column in sample[0] ^ columns if column in missing)
        if any(map(frame.few, (abs(sample[1] - n), *lacking))):
            raise NoTable(
                f"the records of {name} and those with values in all of {sorted(columns)} "
                f"differ by fewer than {frame.min_count}, and the difference of the two would "
                "show their values; leave one of the two out"
            )


def text_of(name: str, table: Table, width: int | None = None) -> str:
    """Return a table as text below a name; see `Result.text`."""
    cells = [table.header, *([_text(value) for value in row] for row in table.rows)]
    note = [wrapped(table.note, width)] if table.note else []
    return "\n".join([wrapped(name, width), *as_lines(cells, width), *note])


def _text(value: Value) -> str:
    if value is None:
        return HIDDEN
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    return f"{value:,}" if isinstance(value, int) else value
