"""Construction of `Ratings` from columns of users, items and values: `from_triples`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data.ratings import Catalogue, Ratings
from fedmf.errors import DataError

__all__ = ["from_triples", "titles_alone"]


def from_triples(
    users: ArrayLike,
    items: ArrayLike,
    values: ArrayLike,
    *,
    scale: tuple[float, float],
    name: str = "own ratings",
    times: ArrayLike | None = None,
    item_ids: ArrayLike | None = None,
    catalogue: Catalogue | None = None,
) -> Ratings:
    """Build `Ratings` from parallel columns of users, items and values, as arrays or lists.

    Ids are integers. Turn names into ids by ``user_names, users = np.unique(users,
    return_inverse=True)``; then ``user_names[u]`` is the name of user number u.

    Parameters
    ----------
    users, items : integers, shape (n_ratings,): the data set's own ids, one of each per rating
    values : numbers, shape (n_ratings,), within `scale`
    scale : lowest and highest possible rating, such as (1, 5)
    name : name of the data set, for messages and reports
    times
        Integers, shape (n_ratings,): seconds since 1970, or any numbers that order each user's
        ratings. By default 0, so that the order of the rows counts.
    item_ids
        Integers, ascending: ids of all items, rated or not. By default the ids in `items`.
    catalogue
        Titles, years and genres in the order of `item_ids`. By default the ids are the titles.

    Returns
    -------
    Ratings
        Users and items are numbered 0, 1, ... by ascending id.

    Raises
    ------
    DataError
        If a column has a wrong type or length, a value is outside `scale`, an item is not in
        `item_ids`, or a pair occurs twice. The message names the first such entry.
    """
    low, high = _scale(name, scale)
    who, what = _integers(name, "users", users), _integers(name, "items", items)
    rated = _floats(name, "values", values)
    columns: dict[str, NDArray[Any]] = {"users": who, "items": what, "values": rated}
    when = np.zeros(rated.size, dtype=np.int64)
    if times is not None:
        columns["times"] = when = _integers(name, "times", times)
    if len({column.size for column in columns.values()}) > 1:
        sizes = ", ".join(f"{column.size} {title}" for title, column in columns.items())
        raise DataError(f"{name}: the columns must be of one length, not {sizes}")
    outside = (rated < low) | (rated > high)
    if outside.any():
        first = int(np.argmax(outside))
        raise DataError(
            f"{name}: values[{first}] = {rated[first]} is outside the scale from {low:g} to "
            f"{high:g}"
        )

    known_ids = np.unique(what) if item_ids is None else _ascending(name, item_ids)
    column = np.searchsorted(known_ids, what)
    known = column < known_ids.size
    known[known] = known_ids[column[known]] == what[known]
    if not known.all():
        first = int(np.argmin(known))
        raise DataError(
            f"{name}: item {what[first]} is rated (items[{first}]) but not in item_ids: add it"
        )
    if catalogue is None:
        catalogue = titles_alone(map(str, known_ids.tolist()))
    user_ids, row = np.unique(who, return_inverse=True)
    order = np.argsort(row, kind="stable")
    return Ratings(
        name=name,
        indptr=np.concatenate(([0], np.cumsum(np.bincount(row, minlength=user_ids.size)))),
        items=column[order].astype(np.int32),
        values=rated[order],
        times=when[order],
        n_items=known_ids.size,
        scale=(low, high),
        user_ids=user_ids,
        item_ids=known_ids,
        catalogue=catalogue,
    )


def _scale(name: str, scale: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError):
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise DataError(
            f"{name}: scale = {scale!r} must be the lowest and the highest possible rating, "
            "such as (1, 5)"
        )
    return low, high


def _ascending(name: str, item_ids: ArrayLike) -> NDArray[np.int64]:
    """Return the ids of all items as int64, ascending and distinct, or raise DataError."""
    known = _integers(name, "item_ids", item_ids)
    falls = known[1:] <= known[:-1]
    if falls.any():
        first = int(np.argmax(falls)) + 1
        raise DataError(
            f"{name}: item_ids[{first}] = {known[first]} follows {known[first - 1]}: list "
            "every item once, ascending, and the catalogue in the same order"
        )
    return known


def _integers(name: str, what: str, given: ArrayLike) -> NDArray[np.int64]:
    """Return a column as int64, or raise DataError if that changes a number."""
    array = _numbers(name, what, given)
    with np.errstate(invalid="ignore"):  # reported below
        column = array.astype(np.int64, copy=False)
    changed = column != array
    if changed.any():
        first = int(np.argmax(changed))
        raise _wrong(name, what, first, array[first].item())
    return column


def _floats(name: str, what: str, given: ArrayLike) -> NDArray[np.float64]:
    """Return a column as float64, or raise DataError for NaN."""
    column = _numbers(name, what, given).astype(np.float64, copy=False)
    if np.isnan(column).any():
        raise _wrong(name, what, int(np.argmax(np.isnan(column))), math.nan)
    return column


def _numbers(name: str, what: str, given: ArrayLike) -> NDArray[Any]:
    """Return a column of integers or of floats."""
    if np.ma.is_masked(given):
        raise DataError(f"{name}: {what} has masked entries: remove their rows")
    try:
        array = np.asarray(given)
        if array.dtype == object:  # from a table that once had other types
            array = np.asarray(array.tolist())
    except ValueError:  # rows of different lengths
        array = np.zeros((0, 0))
    if array.ndim != 1:
        raise DataError(
            f"{name}: {what} must be one column of numbers: pass a list or an array"
        )
    if array.dtype.kind not in "iuf":
        for position, entry in enumerate(np.asarray(given, dtype=object).tolist()):
            if isinstance(entry, bool) or not isinstance(entry, Real):
                raise _wrong(name, what, position, entry)
        raise DataError(f"{name}: {what} must be numbers of 64 bits")
    return array


def _wrong(name: str, what: str, position: int, entry: object) -> DataError:
    """Return the DataError for one wrong entry of a column."""
    shown = f"{name}: {what}[{position}] = {entry!r}"
    if what == "values":
        return DataError(f"{shown} is not a number")
    remedy = ""
    if isinstance(entry, str):
        remedy = f": number them, as {what} = np.unique({what}, return_inverse=True)[1] does"
    return DataError(f"{shown} is not an integer{remedy}")


def titles_alone(titles: Iterable[str]) -> Catalogue:
    """Return a catalogue of titles without years and genres."""
    known = tuple(titles)
    n_items = len(known)
    return Catalogue(known, np.zeros(n_items, np.int16), np.zeros((n_items, 0), np.bool_), ())
