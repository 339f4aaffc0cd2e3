"""Files of a client's vectors, judged before any server is asked."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass, replace
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
    """Vector of a file.

    Attributes
    ----------
    path : Path
    vector : array, shape (d,)
    columns : tuple of str or None
        Column names of a CSV file.
    wrong : str
        Error of a number in the file that no such sum takes, or "".
    """

    path: Path
    vector: Vector
    columns: tuple[str, ...] | None
    wrong: str = ""


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
    given = _read(path, integers=integers)
    vector = given.vector
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
    if wrong := given.wrong or _wrong(path, vector, integers=integers):
        raise ParameterError(wrong)
    return given


@without_frames
def read_any(path: Path, *, integers: bool) -> Given:
    """Return the vector of a file, or zeros and what is wrong with the file's numbers.

    The client sends zeros then, and fails afterwards: the collection sees who reports. The kind
    of numpy's numbers decides nothing, too, since a single NaN makes floats of integers.

    Parameters
    ----------
    path, integers
        See `read_given`.

    Raises
    ------
    ParameterError
        The file cannot be read, or has no vector. No number decides this.
    """
    given = _read(path, integers=integers)
    vector, wrong = given.vector, given.wrong
    if integers:
        with np.errstate(invalid="ignore"):
            whole = vector.astype(np.int64)
        other = whole != vector
        if not wrong and other.any():
            place = int(other.argmax())
            wrong = f"element {place} of {path} is no whole number; round or correct it"
        vector = whole
    elif vector.dtype.kind != "f":
        vector = vector.astype(np.float64)
    wrong = wrong or _wrong(path, vector, integers=integers)
    return replace(given, vector=np.zeros_like(vector) if wrong else vector, wrong=wrong)


def _read(path: Path, *, integers: bool) -> Given:
    """Return the vector of a file, with what is wrong with the fields of a CSV file."""
    if is_table(path):
        columns, vector, wrong = read_table(path, integers=integers)
        return Given(path, vector, columns, wrong)
    return Given(path, read_vector(path), None)


def _wrong(path: Path, vector: Vector, *, integers: bool) -> str:
    """Return the error of the first number that no sum takes, or ""."""
    found = (vector < 0) | (vector > _LARGEST) if integers else ~np.isfinite(vector)
    if not found.any():
        return ""
    what = "negative or above 2^62" if integers else "NaN or infinite"
    return f"element {int(found.argmax())} of {path} is {what}; correct or replace it"


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
