"""Construction of `Ratings` from columns of users, items and values: `from_triples`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data.coded import Coded, coded_integers, coded_texts, is_text
from fedmf.data.ratings import Catalogue, Ids, Ratings
from fedmf.data.times import mixed_units
from fedmf.errors import DataError, DataWarning

LEAST, LARGEST = -(2**63), 2**63 - 1


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
        Integers or texts, shape (n_ratings,): the data set's own ids, an id per rating.
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

    Warns
    -----
    DataWarning
        If times are in different units.

    Raises
    ------
    DataError
        If a column has a wrong type or length, a value is outside `scale`, an item is not in
        `item_ids`, or a pair occurs twice. The message names the first such entry.
    """
    low, high = check_scale(name, scale)
    who, what = coded(name, "users", users), coded(name, "items", items)
    rated = _floats(name, "values", values)
    columns: dict[str, NDArray[Any]] = {
        "users": who.codes,
        "items": what.codes,
        "values": rated,
    }
    if times is not None:
        columns["times"] = integers(name, "times", times)
        if mixed := mixed_units(columns["times"], lambda row: f"times[{row}]"):
            warnings.warn(f"{name}: {mixed}", DataWarning, stacklevel=2)
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
    if item_ids is not None:
        what = _among(name, what, _ascending(name, item_ids))
    return from_coded(
        who,
        what,
        rated,
        scale=(low, high),
        name=name,
        times=columns.get("times"),
        catalogue=catalogue,
    )


def from_coded(
    users: Coded,
    items: Coded,
    values: NDArray[np.float64],
    *,
    scale: tuple[float, float],
    name: str,
    times: NDArray[np.int64] | None = None,
    catalogue: Catalogue | None = None,
) -> Ratings:
    """Build `Ratings` as `from_triples` does, from columns that are validated."""
    if catalogue is None:
        catalogue = titles_alone(map(str, items.ids.tolist()))
    order = np.argsort(users.codes, kind="stable")
    counts = np.bincount(users.codes, minlength=users.ids.size)
    return Ratings(
        name=name,
        indptr=np.concatenate(([0], np.cumsum(counts))),
        items=items.codes[order].astype(np.int32, copy=False),
        values=values[order],
        times=np.zeros(values.size, dtype=np.int64) if times is None else times[order],
        n_items=items.ids.size,
        scale=scale,
        user_ids=users.ids,
        item_ids=items.ids,
        catalogue=catalogue,
    )


def _among(name: str, items: Coded, known_ids: Ids) -> Coded:
    """Return the rated items as numbers of all items; raises DataError for an unknown item."""
    if is_text(known_ids) != is_text(items.ids):
        raise DataError(f"{name}: items and item_ids must both be integers or both be texts")
    # numpy 2.4 compares wrong strings if it searches an array of StringDType
    number = {one: number for number, one in enumerate(known_ids.tolist())}
    place = np.array([number.get(one, -1) for one in items.ids.tolist()], dtype=np.int64)
    known = place >= 0
    if not known.all():
        first = int(np.argmin(known[items.codes]))
        raise DataError(
            f"{name}: item {items.ids[items.codes[first]]} is rated (items[{first}]) but not "
            "in item_ids: add it"
        )
    return Coded(known_ids, place[items.codes])


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
    known = coded(name, "item_ids", item_ids)
    falls = known.codes[1:] <= known.codes[:-1]
    if falls.any():
        first = int(np.argmax(falls)) + 1
        given = known.ids[known.codes[first - 1 : first + 1]]
        raise DataError(
            f"{name}: item_ids[{first}] = {given[1]} follows {given[0]}: list every item once, "
            "ascending, and the catalogue in the same order"
        )
    return known.ids


def coded(name: str, what: str, given: ArrayLike, *, wholes: bool = False) -> Coded:
    """Return a column of ids, integers or texts, or raise DataError.

    With `wholes`, texts become integers as the texts of a file do; see `coded_texts`.
    """
    entries = _entries(given)
    if entries is None or not any(isinstance(entry, str) for entry in entries):
        return coded_integers(integers(name, what, given))
    for position, entry in enumerate(entries):
        if not isinstance(entry, str) or not entry or entry.endswith("\0"):
            raise DataError(
                f"{name}: {what}[{position}] = {entry!r} is not a text like the other ids: "
                "give every id as a text of at least one character, or all as integers"
            )
    known = {text: number for number, text in enumerate(dict.fromkeys(entries))}
    codes = np.fromiter(map(known.__getitem__, entries), np.int32, len(entries))
    return coded_texts(list(known), codes, wholes=wholes)


def _entries(given: ArrayLike) -> list[Any] | None:
    """Return the entries of a column that may have texts, else None."""
    if isinstance(given, list | tuple):  # numpy's texts would all be as wide as the longest
        return list(given)
    if isinstance(given, str | bytes):
        return None
    array = np.asarray(given)
    return array.tolist() if array.ndim == 1 and array.dtype.kind in "OTU" else None


def integers(name: str, what: str, given: ArrayLike) -> NDArray[np.int64]:
    """Return a column as int64, or raise DataError if that changes a number."""
    array = _numbers(name, what, given)
    if array.dtype.kind == "f":
        # from here on a float stands for several integers
        exact = 2.0 ** (np.finfo(array.dtype).nmant + 1)
        sizes = np.abs(array.astype(np.float64, copy=False))
        beyond = (sizes >= exact) & np.isfinite(sizes)  # others are reported below
        if beyond.any():
            first, bits = int(np.argmax(beyond)), int(np.log2(exact))
            raise DataError(
                f"{name}: {what}[{first}] is a float of 2^{bits} or more, where a float stands "
                "for several integers: read the column as integers (in pandas Int64) or as text"
            )
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
        for position, entry in enumerate(_entries(given) or ()):
            if isinstance(entry, tuple | bytearray | memoryview | range):
                raise _wrong(name, what, position, entry)
        raise DataError(
            f"{name}: {what} must be one column of numbers: pass a list or an array"
        )
    if array.dtype.kind in "mM" and array.size:
        remedy = "pass seconds" if what == "times" else "pass ids as texts, as with astype(str)"
        raise DataError(
            f"{name}: {what}[0] = {array[0]} of the type {array.dtype} is not an integer: "
            f"{remedy}"
        )
    numbers = array.dtype.kind in "iuf"
    # numpy makes floats of 1 and 2^63 together
    if not numbers or (array.dtype == np.float64 and (np.abs(array) >= 2.0**63).any()):
        for position, entry in enumerate(np.asarray(given, dtype=object).tolist()):
            if (
                isinstance(entry, bool)
                or not isinstance(entry, Real)
                or (isinstance(entry, Integral) and not LEAST <= int(entry) <= LARGEST)
            ):
                raise _wrong(name, what, position, entry)
    if not numbers:
        raise DataError(f"{name}: {what} must be numbers of 64 bits")
    return array


def _wrong(name: str, what: str, position: int, entry: object) -> DataError:
    """Return the DataError for one wrong entry of a column, with a remedy."""
    shown = f"{name}: {what}[{position}] = {entry!r}"
    if what == "values":
        return DataError(f"{shown} is not a number")
    if isinstance(entry, bool):
        return DataError(f"{shown} is not an integer: convert the column, as with astype(int)")
    if isinstance(entry, Integral):
        return DataError(
            f"{shown} exceeds the integers of 64 bits, up to {LARGEST}: pass ids as "
            "texts, as with map(str, ...)"
        )
    if isinstance(entry, bytes | bytearray | memoryview):
        return DataError(
            f"{shown} is neither an integer nor a text: decode it, as with bytes(...).decode()"
        )
    if isinstance(entry, Real):
        remedy = "correct it" if what == "times" else "correct it, or pass ids as texts"
        return DataError(f"{shown} is not an integer, so {remedy}")
    return DataError(
        f"{shown} of the type {type(entry).__name__} is neither an integer nor a text: pass "
        "ids as texts, as with map(str, ...)"
    )


def titles_alone(titles: Iterable[str]) -> Catalogue:
    """Return a catalogue of titles without years and genres."""
    known = tuple(titles)
    n_items = len(known)
    return Catalogue(known, np.zeros(n_items, np.int16), np.zeros((n_items, 0), np.bool_), ())
