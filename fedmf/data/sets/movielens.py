"""The four MovieLens sets, read strictly from the unpacked archives of GroupLens.

They are free for research, but most may not be redistributed. Users download them from
GroupLens, by hand or with ``fedmf data fetch``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Catalogue, Ratings, check_size
from fedmf.data.sets import lines
from fedmf.errors import DataError

# The year in a title, or the first year of a series: "(1995)", "(2006–2007)", "(2015-)".
YEAR = re.compile(r"\(([0-9]{4})(?:[-–][0-9]{0,4})?\)")
NO_GENRE = "(no genres listed)"
GENRES_1M = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller",
    "War", "Western",
)  # fmt: skip
GENRES_100K = ("unknown", *GENRES_1M)  # in the order of u.item's flags
GENRES_LATEST = tuple(
    sorted("Children" if name == "Children's" else name for name in (*GENRES_1M, "IMAX"))
)

# An item: the line, the id, the title, the names of the genres.
Item = tuple[int, int, str, list[str]]


@dataclass(frozen=True)
class Format:
    """Format of the files of a data set.

    Parameters
    ----------
    name : name of the data set
    ratings, items : names of the two files that are read
    read_items : function that yields the items of the file `items`
    genres : names of all genres
    counts
        Published numbers of users, items and ratings, to detect lost lines; None accepts any.
    separator, header, scale : see `fedmf.data.sets.lines.read_rating_table`
    keep_unrated : True if items without a rating are in the catalogue, too
    """

    name: str
    ratings: str
    items: str
    separator: str
    read_items: Callable[[Path], Iterator[Item]]
    genres: tuple[str, ...]
    counts: tuple[int, int, int] | None
    header: str = ""
    scale: tuple[float, float] = (1.0, 5.0)
    keep_unrated: bool = False

    def read_table(self, path: Path) -> lines.RatingTable:
        """Read a file of ratings in this format; see `read_rating_table`."""
        return lines.read_rating_table(
            path, separator=self.separator, header=self.header, scale=self.scale
        )


def _items_100k(path: Path) -> Iterator[Item]:
    """Yield the items of u.item: id|title|release|video release|URL|19 flags, latin-1."""
    for line, fields in lines.read_fields(path, "latin-1", "|", 5 + len(GENRES_100K)):
        flags = fields[5:]
        if not set(flags) <= {"0", "1"}:
            raise lines.damaged(path, line, f"the 19 genre flags {flags} are not all 0 or 1")
        names = [name for name, flag in zip(GENRES_100K, flags, strict=True) if flag == "1"]
        yield line, lines.read_id(path, line, "item", fields[0]), fields[1].strip(), names


def _items(
    path: Path, separator: str, encoding: str = "utf-8", header: str = ""
) -> Iterator[Item]:
    """Yield the items of a file of lines "id, title, genre|genre…"."""
    for line, fields in lines.read_fields(path, encoding, separator, 3, header=header):
        genres = [] if fields[2] == NO_GENRE else fields[2].split("|")
        yield line, lines.read_id(path, line, "item", fields[0]), fields[1].strip(), genres


FORMATS = {
    form.name: form
    for form in (
        Format(
            name="ml-100k",
            ratings="u.data",
            items="u.item",
            separator="\t",
            read_items=_items_100k,
            genres=GENRES_100K,
            counts=(943, 1682, 100_000),
            keep_unrated=True,
        ),
        Format(
            name="ml-1m",
            ratings="ratings.dat",
            items="movies.dat",
            separator="::",
            read_items=partial(_items, separator="::", encoding="latin-1"),
            genres=GENRES_1M,
            counts=(6040, 3706, 1_000_209),
        ),
        Format(
            name="ml-10m",
            ratings="ratings.dat",
            items="movies.dat",
            separator="::",
            read_items=partial(_items, separator="::"),
            genres=GENRES_LATEST,
            counts=(69_878, 10_681, 10_000_054),
            scale=(0.5, 5.0),
            keep_unrated=True,  # four of the 10,681
        ),
        Format(
            name="ml-latest-small",
            ratings="ratings.csv",
            items="movies.csv",
            separator=",",
            read_items=partial(_items, separator=",", header="movieId,title,genres"),
            genres=GENRES_LATEST,
            counts=(610, 9724, 100_836),
            header="userId,movieId,rating,timestamp",
            scale=(0.5, 5.0),
        ),
    )
}


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
