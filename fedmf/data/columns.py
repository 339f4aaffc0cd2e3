"""Construction of `Ratings` from columns of users, items and values: `from_triples`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data.ratings import Catalogue, Ids, Ratings
from fedmf.errors import DataError

__all__ = ["check_scale", "from_triples", "ids", "ids_of", "integers", "titles_alone"]


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

    See `fedmf.data.read_ratings` for files and data frames.

    Parameters
    ----------
    users, items
        Integers or texts, shape (n_ratings,): the data set's own ids, one of each per rating.
    values : numbers, shape (n_ratings,), within `scale`
    scale : lowest and highest possible rating, such as (1, 5)
    name : name of the data set, for messages and reports
    times
        Integers, shape (n_ratings,): seconds since 1970, or any numbers that order each user's
        ratings. By default 0, so that the order of the rows counts.
    item_ids
        Ids of all items, rated or not, ascending. By default the ids in `items`.
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
    low, high = check_scale(name, scale)
    who, what = ids(name, "users", users), ids(name, "items", items)
    rated = _floats(name, "values", values)
    columns: dict[str, NDArray[Any]] = {"users": who, "items": what, "values": rated}
    when = np.zeros(rated.size, dtype=np.int64)
    if times is not None:
        columns["times"] = when = integers(name, "times", times)
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

    known_ids = ids_of(what)[0] if item_ids is None else _ascending(name, item_ids)
    if known_ids.dtype.kind != what.dtype.kind:
        raise DataError(f"{name}: items and item_ids must both be integers or both be texts")
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
    user_ids, row = ids_of(who)
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


def ids_of(column: Ids) -> tuple[Ids, NDArray[np.int64]]:
    """Return the different ids of a column, ascending, and the number of each entry's id."""
    found: tuple[Any, Any] = np.unique(column, return_inverse=True)
    return found


def check_scale(name: str, scale: tuple[float, float]) -> tuple[float, float]:
    """Return the scale as two floats, or raise DataError."""
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


def _ascending(name: str, item_ids: ArrayLike) -> Ids:
    """Return the ids of all items, ascending and distinct, or raise DataError."""
    known = ids(name, "item_ids", item_ids)
    falls = np.less_equal(known[1:], known[:-1])
    if falls.any():
        first = int(np.argmax(falls)) + 1
        raise DataError(
            f"{name}: item_ids[{first}] = {known[first]} follows {known[first - 1]}: list "
            "every item once, ascending, and the catalogue in the same order"
        )
    return known


def ids(name: str, what: str, given: ArrayLike) -> Ids:
    """Return a column of ids as int64 or texts, or raise DataError."""
    entries = np.asarray(given, dtype=object) if _has_text(given) else np.zeros((0, 0))
    if entries.ndim != 1:  # no texts, or no column
        return integers(name, what, given)
    for position, entry in enumerate(entries.tolist()):
        if not isinstance(entry, str) or not entry or entry.endswith("\0"):
            raise DataError(
                f"{name}: {what}[{position}] = {entry!r} is not a text like the other ids: "
                "give every id as a text of at least one character, or all as integers"
            )
    return entries.astype(np.str_)


def _has_text(given: ArrayLike) -> bool:
    """Return True if a column has a text."""
    if isinstance(given, str | bytes):
        return False
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        return False
    return array.dtype.kind == "U" or (
        array.dtype.kind == "O" and any(isinstance(one, str) for one in array.flat)
    )


def integers(name: str, what: str, given: ArrayLike) -> NDArray[np.int64]:
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
    return DataError(f"{shown} is not an integer")


def titles_alone(titles: Iterable[str]) -> Catalogue:
    """Return a catalogue of titles without years and genres."""
    known = tuple(titles)
    n_items = len(known)
    return Catalogue(known, np.zeros(n_items, np.int16), np.zeros((n_items, 0), np.bool_), ())
