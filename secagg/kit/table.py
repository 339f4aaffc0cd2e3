"""Tables of measurements as plain data, with output on a terminal, as Markdown and as JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from secagg.errors import needing

if TYPE_CHECKING:
    from rich.console import Console

NONE = "–"  # an unknown value, or a value of a party that does not exist

_Units: TypeAlias = Sequence[tuple[float, str, float]]
_MINUTES = ((60, "s", 1), (3600, "min", 1 / 60), (math.inf, "h", 1 / 3600))
_SECONDS: _Units = ((1e-3, "µs", 1e6), (1, "ms", 1e3), *_MINUTES)
_BYTES: _Units = ((1e3, "B", 1), (1e6, "kB", 1e-3), (1e9, "MB", 1e-6), (math.inf, "GB", 1e-9))


@dataclass(frozen=True)
class Value:
    """Number in the unit of a column, with standard deviation and a mark if scaled."""

    value: float
    spread: float | None = None
    scaled: bool = False


@dataclass(frozen=True)
class Strong:
    """Text that stands out, such as a missed target: bold in Markdown and on a terminal."""

    text: str


Cell: TypeAlias = str | float | Value | Strong | None  # a number is in the column's unit


def number(value: float, like: float | None = None) -> str:
    """Return a number as text, with decimals that fit the size of `like` (default: `value`)."""
    size = abs(value if like is None else like)
    if size >= 1e9 or (size < 0.01 and value != 0):
        return f"{value:.1e}"  # a diverged training, or a small error
    if size >= 1000 or (like is None and value == int(value)):  # a count
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 100 else f"{value:.4f}"


def duration(seconds: float) -> str:
    """Return seconds as text with two digits and a unit from µs to h."""
    return _scaled(seconds, 2, _SECONDS)


def micro(seconds: float) -> str:
    """Return seconds as text in microseconds, with at least two digits."""
    return f"{_digits(1e6 * seconds, 2)} µs"


def volume(size: float) -> str:
    """Return bytes as text with three digits and a unit from B to GB."""
    return _scaled(size, 3, _BYTES)


def times(ratio: float) -> str:
    """Return a ratio as text with two digits and a ×."""
    return f"{ratio:,.0f}×" if ratio >= 9.95 else f"{ratio:.2g}×"


def _scaled(value: float, digits: int, units: _Units) -> str:
    known = ((unit, scale) for limit, unit, scale in units if value < limit)
    unit, scale = next(known, units[-1][1:])  # infinity and NaN, too
    return f"{_digits(value * scale, digits)} {unit}"


def _digits(value: float, digits: int) -> str:
    """Return a number with `digits` significant digits, but all digits before the point."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.{digits}g}"


@dataclass(frozen=True)
class Column:
    """Column of a table; the first column of a table is always left-aligned."""

    head: str  # may have a line break
    write: Callable[[float], str] = number  # format and unit
    left: bool = False  # left-aligned, with wrapped lines

    def text(self, cell: Cell) -> str:
        """Return a cell as text, without emphasis: "~1.5 ms", "0.8914 ± 0.0021"."""
        if cell is None:
            return NONE
        if isinstance(cell, str):
            return cell
        if isinstance(cell, Strong):
            return cell.text
        if not isinstance(cell, Value):
            return self.write(cell)
        spread = "" if cell.spread is None else f" ± {number(cell.spread, cell.value)}"
        return f"{'~' if cell.scaled else ''}{self.write(cell.value)}{spread}"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Table of measurements, shown by `print_table`, `as_text` and `as_markdown`."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]  # each as long as `columns`
    title: str = ""  # not part of the Markdown, where it is a heading
    caption: str = ""  # one paragraph directly below the table
    notes: Sequence[str] = ()  # dimmed lines on a terminal, a list in Markdown

    def lines(self) -> list[list[str]]:
        """Return the cells as text, row by row, without emphasis."""
        pairs = (zip(self.columns, row, strict=True) for row in self.rows)
        return [[column.text(cell) for column, cell in row] for row in pairs]


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table, a blank line, and the notes, by default on stdout.

    Raise MissingExtra if rich is not installed.
    """
    with needing("a table on a terminal", "rich", "rich"):
        from rich.console import Console
        from rich.table import Table as Rendered
        from rich.text import Text
    # as Text, because rich would read brackets in a plain str as markup
    shown = Rendered(
        title=Text(table.title, style="bold") if table.title else None,
        title_justify="left",
        caption=Text(table.caption) if table.caption else None,
        caption_justify="left",
        box=None,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
    )
    for i, column in enumerate(table.columns):
        left = column.left or not i
        justify: Literal["left", "right"] = "left" if left else "right"
        shown.add_column(Text(column.head), justify=justify, no_wrap=not left)
    for cells, line in zip(table.rows, table.lines(), strict=True):
        styles = ["bold" if isinstance(cell, Strong) else "" for cell in cells]
        shown.add_row(*map(Text, line, styles))
    console = console or Console(highlight=False)
    console.print(shown, "")
    for note in table.notes:
        console.print(note, style="dim", markup=False)


def as_text(table: Table, width: int = 200) -> str:
    """Return the lines of `print_table` without styles, at most `width` wide."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
    with console.capture() as shown:
        print_table(table, console)
    return "\n".join(line.rstrip() for line in shown.get().splitlines()).rstrip()


def markdown_cells(table: Table) -> list[list[str]]:
    """Return heads, then rows, as Markdown of the cells."""
    rows = [[column.head.replace("\n", " ") for column in table.columns]]
    for cells, line in zip(table.rows, table.lines(), strict=True):
        pairs = zip(cells, line, strict=True)
        rows.append([f"**{text}**" if isinstance(one, Strong) else text for one, text in pairs])
    # a bare bar would end the cell
    return [[text.replace("|", "\\|") for text in row] for row in rows]


def as_markdown(table: Table) -> str:
    """Return the table in Markdown, without title, with caption and notes below the table."""
    heads, *rows = markdown_cells(table)
    lines = [heads, ["---"] * len(heads), *rows]
    parts = ["\n".join(f"| {' | '.join(line)} |" for line in lines), table.caption]
    parts.append("\n".join(f"- {note}" for note in table.notes))
    return "\n\n".join(part for part in parts if part)


def as_json(document: object) -> str:
    """Return plain values and dataclasses as JSON text; raise ValueError for infinity or NaN.

    An object with a method ``document()`` is replaced by the result, a dataclass by the fields.
    """
    return json.dumps(document, indent=2, allow_nan=False, default=_plain)


def _plain(value: object) -> object:
    if document := getattr(value, "document", None):
        return document()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
