"""Columns of ids as numbers: the different ids, ascending, and the id's number in each row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.data.ratings import Ids

# pandas adds .0 where an id is missing
WHOLE = re.compile(r"(?:0|-?[1-9][0-9]{0,17})(?:\.0*)?")
SPARE = 2**18  # characters that a table of fixed width may waste, 1 MiB
# or the size of the table as a multiple of the texts, so that usual tables keep the dtype
WASTE = 8


@dataclass(frozen=True, eq=False)
class Coded:
    """Column of ids.

    Parameters
    ----------
    ids : the different ids, ascending
    codes : int32 or int64, shape (n_rows,), 0 ≤ code < len(ids): number of each row's id
    """

    ids: Ids
    codes: NDArray[np.signedinteger[Any]]


class Codes(dict[str, int]):
    """Number of each text, in the order of first occurrence.

    Blanks at the end of a text do not count. The attribute `texts` has the different texts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def __missing__(self, given: str) -> int:
        text = given.rstrip()
        if text != given:
            number = self[text]
        else:
            number = len(self.texts)
            self.texts.append(text)
        self[given] = number
        return number


def coded_integers(column: NDArray[np.int64]) -> Coded:
    """Return a column of integers as numbers of the different integers."""
    found, codes = np.unique(column, return_inverse=True)
    return Coded(found, codes)


def twins(ids: Ids) -> tuple[int, int, int] | None:
    """Return how many texts repeat the number of another, and the first two; None without any.

    Such texts are 7 and 7.0, which `coded_texts` leaves as they are beside other texts.
    """
    first: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for number, text in enumerate(map(str, ids) if is_text(ids) else ()):
        if WHOLE.fullmatch(text):
            other = first.setdefault(text.partition(".")[0], number)
            if other != number:
                found.append((other, number))
    return (len(found), *found[0]) if found else None


def coded_texts(texts: Sequence[str], codes: NDArray[np.int32], *, wholes: bool) -> Coded:
    """Return the column with ``texts[codes[j]]`` in row ``j``; `texts` are different.

    With `wholes`, the ids are integers if all texts are whole numbers, such as 7.0. Numbers
    with leading zeros, and of more than 18 digits, are no whole numbers, as they are names.
    """
    if wholes and all(map(WHOLE.fullmatch, texts)):
        numbers = (int(text.partition(".")[0]) for text in texts)
        found = coded_integers(np.fromiter(numbers, np.int64, len(texts)))
        return Coded(found.ids, found.codes.astype(np.int32)[codes])
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts), dtype=np.int32)
    rank[order] = np.arange(len(texts), dtype=np.int32)
    return Coded(text_ids(texts[number] for number in order), rank[codes])


def text_ids(texts: Iterable[str]) -> Ids:
    """Return ids as an array of fixed width, or as StringDType if fixed width wastes memory.

    In a table of fixed width, each id takes the room of the longest.
    """
    given = list(texts)
    longest, total = max(map(len, given), default=0), sum(map(len, given))
    if longest * len(given) > SPARE + WASTE * total:
        # UTF-8 cannot have a lone surrogate
        with suppress(UnicodeEncodeError):
            return np.array(given, dtype=np.dtypes.StringDType())
    return np.array(given, dtype=np.str_)


def is_text(ids: Ids) -> bool:
    """Return True for ids that are texts, in an array of either kind."""
    return ids.dtype.kind in "TU"
