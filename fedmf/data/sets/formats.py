"""How the four MovieLens sets are written: one `Format` each, with its reader of items."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fedmf.data.sets.lines import damaged, read_lines

__all__ = ["FORMATS", "Format", "Item"]

NO_GENRE = "(no genres listed)"

# One item: its line, its id, its title, the names of its genres.
Item = tuple[int, int, str, list[str]]


@dataclass(frozen=True)
class Format:
    """How one data set is written.

    Parameters
    ----------
    name
        The data set.
    ratings, items
        The names of the two files that are read.
    separator, header, scale, step
        As for `fedmf.data.sets.lines.read_rating_table`.
    read_items
        Yields the items of the file of items.
    genres
        The names of all genres.
    keep_unrated
        Whether items without a rating are numbered too.
    counts
        The published numbers of users, items and ratings, by which a file is recognised that
        lost whole lines; None accepts any.
    """

    name: str
    ratings: str
    items: str
    separator: str
    header: str
    scale: tuple[float, float]
    step: float
    read_items: Callable[[Path], Iterator[Item]]
    genres: tuple[str, ...]
    keep_unrated: bool
    counts: tuple[int, int, int] | None


def _item_id(path: Path, line: int, field: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", field):
        raise damaged(path, line, f"the item id {field!r} is not a number as expected")
    return int(field)


def _items_100k(path: Path) -> Iterator[Item]:
    """Yield the items of u.item: id|title|release|video release|URL|19 flags, latin-1."""
    for line, text in enumerate(read_lines(path, "latin-1"), start=1):
        fields = text.split("|")
        flags = fields[5:]
        if len(fields) != 5 + len(GENRES_100K):
            raise damaged(path, line, f"expected 24 fields between '|', found {len(fields)}")
        if not set(flags) <= {"0", "1"}:
            raise damaged(path, line, f"the 19 genre flags {flags} are not all 0 or 1")
        names = [name for name, flag in zip(GENRES_100K, flags, strict=True) if flag == "1"]
        yield line, _item_id(path, line, fields[0]), fields[1].strip(), names


def _items_1m(path: Path) -> Iterator[Item]:
    """Yield the items of ml-1m's movies.dat, latin-1."""
    return _items_dat(path, "latin-1")


def _items_10m(path: Path) -> Iterator[Item]:
    """Yield the items of ml-10m's movies.dat, UTF-8."""
    return _items_dat(path, "utf-8")


def _items_dat(path: Path, encoding: str) -> Iterator[Item]:
    """Yield the items of a movies.dat: id::title::genre|genre…."""
    for line, text in enumerate(read_lines(path, encoding), start=1):
        fields = text.split("::")
        if len(fields) != 3:
            raise damaged(path, line, f"expected 3 fields between '::', found {len(fields)}")
        yield line, _item_id(path, line, fields[0]), fields[1].strip(), _genres(fields[2])


def _genres(field: str) -> list[str]:
    return [] if field == NO_GENRE else field.split("|")


def _items_latest(path: Path) -> Iterator[Item]:
    """Yield the items of movies.csv: movieId,title,genre|genre…, quoted where needed, UTF-8."""
    rows = csv.reader(read_lines(path, "utf-8"), strict=True)
    header = ["movieId", "title", "genres"]
    try:
        for fields in rows:
            line = rows.line_num
            if line == 1:
                if fields != header:
                    raise damaged(path, 1, f"expected the header {header}, found {fields}")
                continue
            if len(fields) != 3:
                raise damaged(path, line, f"expected 3 fields, found {len(fields)}")
            yield line, _item_id(path, line, fields[0]), fields[1].strip(), _genres(fields[2])
    except csv.Error as error:
        raise damaged(path, rows.line_num, f"{error}") from None


GENRES_1M = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller",
    "War", "Western",
)  # fmt: skip
GENRES_100K = ("unknown", *GENRES_1M)  # in the order of u.item's flags
GENRES_LATEST = tuple(
    sorted("Children" if name == "Children's" else name for name in (*GENRES_1M, "IMAX"))
)

FORMATS = {
    form.name: form
    for form in (
        Format(
            name="ml-100k",
            ratings="u.data",
            items="u.item",
            separator="\t",
            header="",
            scale=(1.0, 5.0),
            step=1.0,
            read_items=_items_100k,
            genres=GENRES_100K,
            keep_unrated=True,
            counts=(943, 1682, 100_000),
        ),
        Format(
            name="ml-1m",
            ratings="ratings.dat",
            items="movies.dat",
            separator="::",
            header="",
            scale=(1.0, 5.0),
            step=1.0,
            read_items=_items_1m,
            genres=GENRES_1M,
            keep_unrated=False,
            counts=(6040, 3706, 1_000_209),
        ),
        Format(
            name="ml-10m",
            ratings="ratings.dat",
            items="movies.dat",
            separator="::",
            header="",
            scale=(0.5, 5.0),
            step=0.5,
            read_items=_items_10m,
            genres=GENRES_LATEST,
            keep_unrated=True,  # four of the 10,681
            counts=(69_878, 10_681, 10_000_054),
        ),
        Format(
            name="ml-latest-small",
            ratings="ratings.csv",
            items="movies.csv",
            separator=",",
            header="userId,movieId,rating,timestamp",
            scale=(0.5, 5.0),
            step=0.5,
            read_items=_items_latest,
            genres=GENRES_LATEST,
            keep_unrated=False,
            counts=(610, 9724, 100_836),
        ),
    )
}
