"""Rows of CSV files, with comma or semicolon between the fields."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from secagg.errors import ParameterError


def csv_rows(path: Path, lines: TextIO) -> Iterator[list[str]]:
    """Yield the header of a CSV file, if there is any, and each row with the header's length.

    Parameters
    ----------
    path : Path
        Name of the file for errors.
    lines : text file
        Content, opened with ``newline=""``.

    Raises
    ------
    ParameterError
        The text is no CSV, or a row has another length. The message has no value.
    """
    first = lines.readline()
    lines.seek(0)
    comma = ";" if first.count(";") > first.count(",") else ","
    rows = csv.reader(lines, delimiter=comma, strict=True)
    number = 0
    try:
        header = [name.strip() for name in next(rows, [])]
        if header:
            yield header
        for row in rows:
            if not row and len(header) > 1:
                continue  # a blank line
            number += 1
            if len(row) != len(header):
                raise ParameterError(
                    f"{path}, row {number} has {len(row)} fields, and the header has "
                    f"{len(header)}; quote fields with {comma!r}, and write decimal points"
                )
            yield row
    except csv.Error as error:
        raise ParameterError(
            f"{path}, line {rows.line_num} is no CSV: {error}; correct the line"
        ) from error
