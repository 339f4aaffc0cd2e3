"""Ratings of a command: a named data set, or a file described by options."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

from fedmf.data import NAMES, Ratings, load, read_ratings
from fedmf.data.own import COLUMNS, Duplicates
from fedmf.errors import DataError, SettingError

TABLE = ("data", "columns", "scale", "duplicates")  # parameters of `ratings_of`
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq")


def is_file(data: str) -> bool:
    """Return True if --data is the path of a file, not the name of a data set."""
    return data not in NAMES and (Path(data).suffix.lower() in SUFFIXES or Path(data).exists())


def ratings_of(
    data: str, columns: str | None, scale: str | None, duplicates: str | None
) -> tuple[Ratings, dict[str, Any]]:
    """Return the ratings, and the settings to read the same ratings again.

    Raises SettingError if an option is malformed or describes a file where there is none, and
    DataError as `load` and `read_ratings` do.
    """
    options = {"columns": columns, "scale": scale, "duplicates": duplicates}
    if not is_file(data):
        given = [f"--{name}" for name, value in options.items() if value is not None]
        if data not in NAMES and (given or Path(data).suffix):
            raise DataError(
                f"--data {data} is neither a CSV or Parquet file nor one of {', '.join(NAMES)}"
            )
        if given:
            raise SettingError(
                f"{', '.join(given)} needs a CSV or Parquet file, not --data {data}"
            )
        return load(data), {"data": data}
    names = COLUMNS if columns is None else tuple(one.strip() for one in columns.split(","))
    if len(names) not in (3, 4) or len(set(names)) < len(names):
        raise SettingError(
            f"--columns {columns} must be different names of users, items, ratings and perhaps "
            "times, such as --columns user,item,rating; views alone need a column of 1"
        )
    ends = None if scale is None else _ends(scale)
    ratings = read_ratings(
        data,
        names,
        scale=ends,
        # `read_ratings` validates the text
        duplicates=cast(Duplicates, duplicates or "error"),
    )
    return ratings, {
        "data": str(Path(data).resolve()),
        "columns": list(names),
        "scale": list(ratings.scale),
        "duplicates": duplicates or "error",
    }


def _ends(scale: str) -> tuple[float, float]:
    """Return the lowest and highest rating of --scale, such as 1,5; raises SettingError."""
    try:
        low, high = (float(one) for one in scale.split(","))
    except ValueError:
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise SettingError(
            f"--scale {scale} must be the lowest and the highest possible rating, such as "
            "--scale 1,5"
        )
    return low, high
