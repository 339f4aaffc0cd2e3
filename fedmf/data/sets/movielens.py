"""The four MovieLens sets, read strictly from the folders that GroupLens' archives unpack to.

They are free for research but most may not be redistributed, so fedmf holds none of them: the
user downloads them from GroupLens, by hand or with ``fedmf data fetch``.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Catalogue, Ratings, check_size
from fedmf.data.sets.formats import Format
from fedmf.data.sets.lines import damaged, read_lines, read_rating_table
from fedmf.errors import DataError

__all__ = ["read"]

# The year in a title, or the first one of a series: "(1995)", "(2006–2007)", "(2015-)".
YEAR = re.compile(r"\(([0-9]{4})(?:[-–][0-9]{0,4})?\)")


def read(form: Format, folder: Path) -> Ratings:
    """Read one data set from its folder.

    Raises
    ------
    DataError
        If a file is missing or damaged (the message names the line), a rated item is unknown,
        or the numbers of users, items and ratings are not those of ``form.counts``; for
        ml-100k those of the file u.info, where it is there, take their place.
    """
    table = read_rating_table(
        folder / form.ratings,
        separator=form.separator,
        header=form.header,
        scale=form.scale,
        step=form.step,
    )
    rated = np.unique(table.items)
    wanted = None if form.keep_unrated else set(rated.tolist())
    item_ids, catalogue = _catalogue(form, folder / form.items, wanted)
    unknown = np.setdiff1d(rated, item_ids)
    if unknown.size:
        first = int(np.argmax(table.items == unknown[0])) + (2 if form.header else 1)
        raise damaged(folder / form.ratings, first, f"item {unknown[0]} is not in {form.items}")
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
    _check_counts(form, folder, ratings)
    return ratings


def _catalogue(
    form: Format, path: Path, wanted: set[int] | None
) -> tuple[NDArray[np.int64], Catalogue]:
    """Read the file of items; return the ids, ascending, and the catalogue in their order."""
    column = {genre: number for number, genre in enumerate(form.genres)}
    found: dict[int, tuple[str, list[int]]] = {}
    for line, item, title, names in form.read_items(path):
        if item in found:
            raise damaged(path, line, f"item {item} is listed a second time")
        unknown = [name for name in names if name not in column]
        if unknown:
            raise damaged(path, line, f"genre {unknown[0]!r} is not one of {form.name}'s")
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


def _check_counts(form: Format, folder: Path, ratings: Ratings) -> None:
    """Compare the size with the published one: a file may be cut off between two lines."""
    expected = form.counts
    info = folder / "u.info"
    if form.name == "ml-100k" and info.exists():
        lines = read_lines(info, "ascii")
        match = re.fullmatch(r"(\d+) users\n(\d+) items\n(\d+) ratings", "\n".join(lines))
        if not match:
            raise DataError(f"{info} must hold three lines: '… users', '… items', '… ratings'")
        expected = (int(match[1]), int(match[2]), int(match[3]))
    if expected is not None:
        check_size(ratings, expected, f"{form.ratings} or {form.items} in {folder}")
