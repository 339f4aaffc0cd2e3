"""Dense subset of a data set, small enough for slow protocols."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Catalogue, Ratings
from fedmf.errors import SettingError


def most_rated(ratings: Ratings, n_items: int = 40, n_users: int = 50) -> Ratings:
    """Return the ratings of the most rated items by the users who rated most of these items.

    The lower number breaks ties. Users and items are renumbered by ascending original id.
    Raises SettingError if `n_items` or `n_users` is out of range.

    Parameters
    ----------
    ratings : ratings to choose from
    n_items : int, number of items, from 1 to the number of rated items
    n_users : int, number of users, from 1 to the number of users who rated one of these items
    """
    items = _largest(np.bincount(ratings.items, minlength=ratings.n_items), n_items, "items")
    of_items = np.isin(ratings.items, items)
    rated = np.bincount(ratings.users[of_items], minlength=ratings.n_users)
    users = _largest(rated, n_users, "users who rated them")
    kept = ratings.take(of_items & np.isin(ratings.users, users))
    catalogue = ratings.catalogue
    return from_triples(
        ratings.user_ids[kept.users],
        ratings.item_ids[kept.items],
        kept.values,
        scale=ratings.scale,
        name=f"the most rated of {ratings.name}",
        times=kept.times,
        item_ids=ratings.item_ids[items],
        catalogue=Catalogue(
            tuple(catalogue.titles[item] for item in items),
            catalogue.years[items],
            catalogue.genres[items],
            catalogue.genre_names,
        ),
    )


def _largest(counts: NDArray[np.int64], wanted: int, what: str) -> NDArray[np.int64]:
    """Return the positions of the `wanted` largest counts, ascending; raises SettingError."""
    there = np.count_nonzero(counts)
    if not 1 <= wanted <= there:
        raise SettingError(f"{wanted} {what} are out of range: choose from 1 to {there}")
    return np.sort(np.argsort(-counts, kind="stable")[:wanted])
