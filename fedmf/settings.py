"""Checks of settings, and of the users and items that a model is asked about."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.errors import ModelError, SettingError

__all__ = [
    "check_able",
    "check_how_many",
    "check_not_negative",
    "check_positive",
    "check_whole",
    "is_number",
    "is_whole",
    "number",
    "numbers",
    "pairs",
    "part_of",
    "plain_numbers",
]


def plain_numbers(settings: object) -> None:
    """Make Python's numbers of the numpy scalars among an object's attributes.

    Numpy's are as good as settings, but would go on as they are: an int8 wraps, a float32
    computes in 32 bits, and neither can be written as JSON.

    Parameters
    ----------
    settings
        Is changed in place; it may be a frozen dataclass that is just being made.
    """
    for name, value in list(vars(settings).items()):
        if isinstance(value, np.integer):
            object.__setattr__(settings, name, int(value))
        elif isinstance(value, np.floating):
            object.__setattr__(settings, name, float(str(value)))  # .1, not that of 32 bits


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a setting is an integer, numpy's included; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a setting is a number, numpy's included; True and False are none."""
    return is_whole(value) or isinstance(value, float | np.floating)


def check_whole(least: int = 1, **values: object) -> None:
    """Refuse settings that are not integers of at least `least` (SettingError)."""
    for name, value in values.items():
        if not is_whole(value) or value < least:
            raise SettingError(f"{name} = {value!r} must be an integer of at least {least}")


def check_positive(**values: object) -> None:
    """Refuse settings that are not finite numbers above 0 (SettingError)."""
    for name, value in values.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise SettingError(f"{name} = {value!r} must be finite and positive")


def check_not_negative(**values: object) -> None:
    """Refuse settings that are not finite numbers of at least 0 (SettingError)."""
    for name, value in values.items():
        if not is_number(value) or not 0 <= value < math.inf:
            raise SettingError(f"{name} = {value!r} must be finite and at least 0")


def check_able(method: str, such: str, **parts: object) -> None:
    """Refuse what is no object with a method: another part, a class, a name (SettingError).

    Parameters
    ----------
    method
        What the part is called for, such as "sum" of an aggregation.
    such
        What to pass instead.
    parts
        By the names of their parameters.
    """
    for name, part in parts.items():
        if isinstance(part, type) or not callable(getattr(part, method, None)):
            raise SettingError(f"{name} = {part!r} must be an object such as {such}")


def part_of(fraction: float, whole: int) -> int:
    """Return ⌈fraction · whole⌉ for the fraction that is meant.

    Of .07 · 100 and of 100/943 · 943 floating point makes a hair more than 7 and 100; the next
    whole number would be one too many.
    """
    return math.ceil(round(fraction * whole, 6))


def numbers(what: str, numbers: ArrayLike, bound: int) -> NDArray[np.int64]:
    """Return users' or items' numbers as an array.

    Raises
    ------
    ModelError
        If one is not an integer in 0 ≤ number < bound.
    """
    array = np.asarray(numbers)
    if array.size and not (
        array.dtype.kind in "iu" and array.min() >= 0 and array.max() < bound
    ):
        raise ModelError(f"{what} {numbers!r} is not among the model's 0 to {bound - 1}")
    return array.astype(np.int64)  # also of [], which numpy takes for floats


def number(what: str, value: object, bound: int) -> int:
    """Return a single user's or item's number.

    Raises
    ------
    ModelError
        If it is not one integer in 0 ≤ number < bound.
    """
    if not is_whole(value):
        raise ModelError(f"{what} {value!r} is not one number from 0 to {bound - 1}")
    return int(numbers(what, value, bound))


def pairs(
    users: ArrayLike, items: ArrayLike, n_users: int, n_items: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the users and the items of some pairs, as arrays of one shape.

    Raises
    ------
    ModelError
        If a number is out of range or the shapes differ.
    """
    rows, columns = numbers("user", users, n_users), numbers("item", items, n_items)
    if rows.shape != columns.shape:
        raise ModelError(
            f"predict wants one item per user, not {rows.shape} users and {columns.shape} items"
        )
    return rows, columns


def check_how_many(k: object) -> None:
    """Refuse a number of recommendations that is not an integer of at least 1 (ModelError)."""
    if not is_whole(k) or k < 1:
        raise ModelError(f"k = {k!r} recommendations: ask for at least one, a whole number")
