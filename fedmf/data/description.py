"""Figures of a data set: its size, its scale and its distribution."""

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
        Name and size; items without a rating count, too.
    density
        ratings / (users · items), 0 to 1.
    mean
        Mean rating.
    histogram
        Number of ratings of each value, ascending by value.
    per_user, per_item
        Least, median and greatest number of ratings.
    singletons, unrated, without_year, without_genre
        Numbers of items with one rater, whose gradient no secure sum hides; without a rating;
        and of unknown year or genre.
    genres
        Names of all genres.
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
    """Return the figures of a data set with at least one rating."""
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
