"""Columns of ratings in each kind of source that `read_ratings` takes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

KINDS = ("csv", "pandas", "polars", "pyarrow", "parquet")


def source_of(kind: str, folder: Path, columns: Mapping[str, Iterable[object]]) -> Any:
    """Return the columns as a frame, as a table of Arrow, or as a file in the folder."""
    path = folder / f"ratings.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows([columns.keys(), *zip(*columns.values(), strict=True)])
        return path
    package = pytest.importorskip("pyarrow" if kind == "parquet" else kind)
    if kind in ("pandas", "polars"):
        return package.DataFrame(columns)
    table = package.table(columns)
    if kind == "pyarrow":
        return table
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path
