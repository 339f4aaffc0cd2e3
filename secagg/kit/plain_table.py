"""Tables of texts as plain text, without other packages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def as_lines(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return a table as lines: the first column left-aligned, all others right-aligned.

    Parameters
    ----------
    rows : sequence of sequences of str
        The header and the rows, equally long.
    width : int, optional
        Most characters of a line, ≥ 1. A wider table continues below, with the same first
        column. None: no bound.
    """
    columns = list[list[str]]()
    for column in zip(*rows, strict=True):
        size = max(map(len, column))
        columns.append([text.rjust(size) if columns else text.ljust(size) for text in column])
    blocks = [columns[:1]]  # columns that fit in a line together, after the first column
    for padded in columns[1:]:
        taken = sum(2 + len(texts[0]) for texts in (*blocks[-1], padded))
        if width is not None and len(blocks[-1]) > 1 and taken > width:
            blocks.append(columns[:1])
        blocks[-1].append(padded)
    lines = (row for block in blocks for row in zip(*block, strict=True))
    return ["  ".join(("", *line)).rstrip() for line in lines]


def wrapped(text: str, width: int | None) -> str:
    """Return a text in lines of at most `width` characters, all but the first indented."""
    return text if width is None else textwrap.fill(text, width, subsequent_indent="  ")
