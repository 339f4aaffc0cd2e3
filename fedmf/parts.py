"""What is handed to a fit: looked at before any work is done."""

from __future__ import annotations

from fedmf.errors import DataError, SettingError
from fedmf.ratings import Ratings

__all__ = ["check_parts"]


def check_parts(train: Ratings, test: Ratings | None = None) -> None:
    """Refuse what nothing can be learnt from, or judged by.

    Parameters
    ----------
    train, test
        Over the same users and items, as of `Split`, each with a rating.

    Raises
    ------
    SettingError
        If something else is passed, or they are over other users or items.
    DataError
        If there is no rating in one of them.
    """
    for name, part in (("train", train), ("test", test)):
        if part is None and name == "test":
            continue
        if not isinstance(part, Ratings):
            raise SettingError(
                f"{name} must be Ratings, not {type(part).__name__}: of a split, pass "
                "split.train and split.test"
            )
        if not part.n_ratings:
            raise DataError(
                f"there is no rating in {name} ({part.name}): part more of them off"
            )
    if test is not None and (test.n_users, test.n_items) != (train.n_users, train.n_items):
        raise SettingError("train and test must be over the same users and items: split one")
