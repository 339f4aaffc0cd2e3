"""The four MovieLens sets, read strictly from the unpacked archives of GroupLens.

They are free for research, but most may not be redistributed. Users download them from
GroupLens, by hand or with ``fedmf data fetch``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Catalogue, Ratings, check_size
from fedmf.data.sets import lines
from fedmf.data.sets.sources import rows
from fedmf.errors import DataError

# The year in a title, or the first year of a series: "(1995)", "(2006–2007)", "(2015-)".
YEAR = re.compile(r"\(([0-9]{4})(?:[-–][0-9]{0,4})?\)")
NO_GENRE = "(no genres listed)"
# An item: the line, the id, the title, the names of the genres.
Item = tuple[int, int, str, list[str]]


@dataclass(frozen=True)
class Format:
    """Format of the files of a data set.

    Parameters
    ----------
    name : name of the data set
    ratings, items : names of the two files that are read
    genres : names of all genres
    counts
        Published numbers of users, items and ratings, to detect lost lines; None accepts any.
    separator, header, scale : see `fedmf.data.sets.lines.read_rating_table`
    items_header, encoding : header of the file `items`, or "", and the file's encoding
    keep_unrated : True if items without a rating are in the catalogue, too
    """

    name: str
    ratings: str
    items: str
    separator: str
    genres: tuple[str, ...]
    counts: tuple[int, int, int] | None
    header: str = ""
    items_header: str = ""
    encoding: str = "utf-8"
    scale: tuple[float, float] = (1.0, 5.0)
    keep_unrated: bool = False

    def read_table(self, path: Path) -> lines.RatingTable:
        """Read a file of ratings in this format; see `read_rating_table`."""
        return lines.read_rating_table(
            path, separator=self.separator, header=self.header, scale=self.scale
        )

    def read_items(self, path: Path) -> Iterator[Item]:
        """Yield the items of a file in this format."""
        return (_flagged if self.items == "u.item" else _listed)(self, path)


def _flagged(form: Format, path: Path) -> Iterator[Item]:
    """Yield the items of u.item: id|title|release|video release|URL|19 flags."""
    width = 5 + len(form.genres)
    for line, fields in lines.read_fields(path, form.encoding, "|", width):
        flags = fields[5:]
        if not set(flags) <= {"0", "1"}:
            raise lines.damaged(path, line, f"the 19 genre flags {flags} are not all 0 or 1")
        names = [name for name, flag in zip(form.genres, flags, strict=True) if flag == "1"]
        yield line, lines.read_id(path, line, "item", fields[0]), fields[1].strip(), names


def _listed(form: Format, path: Path) -> Iterator[Item]:
    """Yield the items of a file of lines "id, title, genre|genre…"."""
    for line, fields in lines.read_fields(
        path, form.encoding, form.separator, 3, header=form.items_header
    ):
        genres = [] if fields[2] == NO_GENRE else fields[2].split("|")
        yield line, lines.read_id(path, line, "item", fields[0]), fields[1].strip(), genres


FORMATS = rows("movielens", Format)
GENRES_1M = FORMATS["ml-1m"].genres


def read(form: Format, folder: Path) -> Ratings:
    """Read a data set from a folder.

    Raises DataError if a file is missing or damaged, or a rated item is unknown. Also if the
    size differs from ``form.counts``, or for ml-100k from u.info. The message names file and
    line.
    """
    table = form.read_table(folder / form.ratings)
    rated = np.unique(table.items)
    wanted = None if form.keep_unrated else set(rated.tolist())
    item_ids, catalogue = _catalogue(form, folder / form.items, wanted)
    unknown = np.setdiff1d(rated, item_ids)
    if unknown.size:
        first = int(np.argmax(table.items == unknown[0])) + (2 if form.header else 1)
        raise lines.damaged(
            folder / form.ratings, first, f"item {unknown[0]} is not in {form.items}"
        )
    ratings = from_triples(
        table.users,
        table.items,
        table.values,
        scale=form.scale,
        name=form.name,
        times=table.times,
        item_ids=item_ids,
        catalogue=catalogue,
    )
    if expected := _counts(form, folder / "u.info"):
        check_size(ratings, expected, f"{form.ratings} or {form.items} in {folder}")
    return ratings


def _catalogue(
    form: Format, path: Path, wanted: set[int] | None
) -> tuple[NDArray[np.int64], Catalogue]:
    """Read the file of items; return the ids, ascending, and the catalogue in this order."""
    column = {genre: number for number, genre in enumerate(form.genres)}
    found: dict[int, tuple[str, list[int]]] = {}
    for line, item, title, names in form.read_items(path):
        if item in found:
            raise lines.damaged(path, line, f"item {item} is listed a second time")
        unknown = [name for name in names if name not in column]
        if unknown:
            raise lines.damaged(path, line, f"genre {unknown[0]!r} is not one of {form.name}'s")
        found[item] = title, [column[name] for name in names]
    kept = sorted(found if wanted is None else wanted & found.keys())
    years = np.zeros(len(kept), dtype=np.int16)
    genres = np.zeros((len(kept), len(form.genres)), dtype=np.bool_)
    for number, item in enumerate(kept):
        title, columns = found[item]
        if marks := YEAR.findall(title):
            years[number] = int(marks[-1])
        genres[number, columns] = True
    titles = tuple(found[item][0] for item in kept)
    return np.array(kept, dtype=np.int64), Catalogue(titles, years, genres, form.genres)


def _counts(form: Format, info: Path) -> tuple[int, int, int] | None:
    """Return the expected size, to detect a file that is cut off between two lines."""
    if form.name != "ml-100k" or not info.exists():
        return form.counts
    text = "\n".join(lines.read_lines(info, "ascii"))
    if not (match := re.fullmatch(r"(\d+) users\n(\d+) items\n(\d+) ratings", text)):
        raise DataError(f"{info} must have three lines: '… users', '… items', '… ratings'")
    return int(match[1]), int(match[2]), int(match[3])
