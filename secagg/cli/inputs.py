"""Files of a client's vectors, judged before any server is asked."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from secagg._secrets import without_frames
from secagg.cli.files import read_vector
from secagg.cli.requests import is_period
from secagg.cli.tables import is_table, read_table
from secagg.encoding import Vector
from secagg.errors import ParameterError

PERIOD = "{period}"
"""Text in a path that stands for the label of a period."""
_LARGEST = 1 << 62
"""Largest element of `Integers`."""


@dataclass(frozen=True, repr=False)  # the vector is private
class Given:
    """Vector of a file, with the column names of a CSV file or None."""

    path: Path
    vector: Vector
    columns: tuple[str, ...] | None


@without_frames
def read_given(path: Path, *, integers: bool) -> Given:
    """Return the vector of a file, judged as far as possible before any server is asked.

    Parameters
    ----------
    path : Path
        CSV file, or file in numpy's format.
    integers : bool
        True: the sum is of integers, 0 to 2^62. False: the sum is of floats.

    Raises
    ------
    ParameterError
        The file cannot be read, has no vector, or has numbers that no such sum takes.
    """
    if is_table(path):
        columns, vector = read_table(path, integers=integers)
    else:
        columns, vector = None, read_vector(path)
    whole = vector.dtype.kind in "iub"
    if integers and not whole:
        raise ParameterError(
            f"{path} has {vector.dtype} numbers, and --integers sums whole numbers; round them "
            "with numpy.rint(vector).astype(int), or leave out --integers"
        )
    if whole and not integers:
        raise ParameterError(
            f"{path} has {vector.dtype} numbers; give --integers if the server sums integers, "
            "or write floats with vector.astype(float)"
        )
    wrong = (vector < 0) | (vector > _LARGEST) if integers else ~np.isfinite(vector)
    if wrong.any():
        what = "negative or above 2^62" if integers else "NaN or infinite"
        raise ParameterError(
            f"element {int(wrong.argmax())} of {path} is {what}; correct or replace it"
        )
    return Given(path, vector, columns)


def of_period(pattern: Path, period: str) -> Path:
    """Return the path of a period's file."""
    return Path(str(pattern).replace(PERIOD, period))


def newest(pattern: Path) -> Path | None:
    """Return the file of the latest period that has a file, or None."""
    before, *after = str(pattern).split(PERIOD)
    label = re.compile(re.escape(before) + r"([0-9TWQ-]+)" + r"\1".join(map(re.escape, after)))
    found = dict[str, Path]()
    for name in glob.glob("*".join(map(glob.escape, (before, *after)))):
        if (match := label.fullmatch(name)) and is_period(match[1]):
            found[match[1]] = Path(name)
    return found[max(found)] if found else None
