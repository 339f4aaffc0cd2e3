"""What a data set is like, in numbers: its size, its scale, how unevenly it is spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmf.data.ratings import Ratings

__all__ = ["Description", "describe"]


@dataclass(frozen=True)
class Description:
    """The figures of `fedmf data describe`.

    Parameters
    ----------
    name, users, items, ratings
        The data set and its size; items without a rating count too.
    density
        ratings / (users · items), 0 to 1.
    mean
        Of all ratings.
    histogram
        How often each value occurs, ascending by value.
    per_user, per_item
        The least, the median and the greatest number of ratings.
    singletons
        The number of items with one rater: a sum over them is that user's own gradient, which
        no secure aggregation hides.
    unrated
        The number of items without a rating.
    without_year, without_genre
        The numbers of items of which the catalogue does not tell.
    genres
        The names of all genres.
    """

    name: str
    users: int
    items: int
    ratings: int
    density: float
    mean: float
    histogram: dict[float, int]
    per_user: tuple[int, float, int]
    per_item: tuple[int, float, int]
    singletons: int
    unrated: int
    without_year: int
    without_genre: int
    genres: tuple[str, ...]


def describe(ratings: Ratings) -> Description:
    """Return the figures of a data set, which must hold a rating."""
    of_users = np.diff(ratings.indptr)
    of_items = np.bincount(ratings.items, minlength=ratings.n_items)
    values, counts = np.unique(ratings.values, return_counts=True)
    catalogue = ratings.catalogue
    return Description(
        name=ratings.name,
        users=ratings.n_users,
        items=ratings.n_items,
        ratings=ratings.n_ratings,
        density=ratings.n_ratings / (ratings.n_users * ratings.n_items),
        mean=float(ratings.values.mean()),
        histogram=dict(zip(values.tolist(), counts.tolist(), strict=True)),
        per_user=(int(of_users.min()), float(np.median(of_users)), int(of_users.max())),
        per_item=(int(of_items.min()), float(np.median(of_items)), int(of_items.max())),
        singletons=int((of_items == 1).sum()),
        unrated=int((of_items == 0).sum()),
        without_year=int((catalogue.years == 0).sum()),
        without_genre=int((~catalogue.genres.any(axis=1)).sum()),
        genres=catalogue.genre_names,
    )
