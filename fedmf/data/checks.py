"""Checks of ratings: type, equal users and items, and at least one rating."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fedmf.data.ratings import Ids, Ratings, Split
from fedmf.errors import DataError, SettingError


class Identified(Protocol):
    """Object that knows the data set's own ids of users and items."""

    @property
    def user_ids(self) -> Ids:
        """The data set's own ids of the users."""

    @property
    def item_ids(self) -> Ids:
        """The data set's own ids of the items."""


def check_ratings(**values: object) -> None:
    """Validate that arguments are `Ratings`; raises SettingError."""
    for name, value in values.items():
        if not isinstance(value, Ratings):
            remedy = ": pass split.train and split.test" if isinstance(value, Split) else ""
            raise SettingError(f"{name} must be Ratings, not {type(value).__name__}{remedy}")


def same_ids(one: Identified, other: Identified) -> bool:
    """Return True if both have the same users and the same items in the same order."""
    return np.array_equal(one.user_ids, other.user_ids) and np.array_equal(
        one.item_ids, other.item_ids
    )


def check_parts(train: Ratings, test: Ratings | None = None) -> None:
    """Validate a training part and, if given, a test part over the same users and items.

    Raises SettingError if a part is not `Ratings`, or the two parts differ in users or items.
    Raises DataError if a part has no rating.
    """
    parts = {"train": train} if test is None else {"train": train, "test": test}
    check_ratings(**parts)
    for name, part in parts.items():
        if not part.n_ratings:
            raise DataError(
                f"{name} ({part.name}) has no rating: give a larger share, or more ratings"
            )
    if test is not None and not same_ids(train, test):
        raise SettingError(
            "train and test differ in users or items: pass both parts of one split"
        )
