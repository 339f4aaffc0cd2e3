"""Simulated ratings, drawn from a model of MovieLens; they need no download.

A rating is a step function of ``b_u + b_i + p_u·q_i + noise``. An item's factors ``q_i`` come
mostly from the item's genres. The five ratings are as frequent as in MovieLens 100K. Users
choose items by popularity and by taste, ``p_u·q_i`` again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Catalogue, Ratings
from fedmf.data.sets.movielens import GENRES_1M as GENRES
from fedmf.errors import SettingError
from fedmf.settings import Seed, check

Floats = NDArray[np.float64]

NAME = "simulated"
LEAST_PER_USER = 20  # MovieLens 100K and 1M have only users with at least 20 ratings
SHARES = (0.061, 0.114, 0.271, 0.342, 0.212)  # of the ratings 1 to 5 in MovieLens 100K
RANK = 4

# Standard deviations, in units of the latent score (the ratings' own is about 1.1).
USER_BIAS, ITEM_BIAS, TASTE, NOISE = 0.42, 0.48, 0.65, 0.60
# Weights of popularity and taste in a choice. With them the popular items and `ranking.fedmf`
# have about the precision that they have on MovieLens 100K, .187 and .324 (there .190 and
# .329), means over three seeds of `simulate` and three random splits of MovieLens.
POPULARITY, CHOICE = 1.35, 1.85
GENRE_PART = 0.7  # of the variance of q_i comes from the item's genres

FIRST_WORDS = (
    "Amber", "Broken", "Crimson", "Distant", "Electric", "Forgotten", "Gentle", "Hidden",
    "Iron", "Jade", "Kindly", "Last", "Midnight", "Northern", "Open", "Paper", "Quiet",
    "Restless", "Silver", "Tender", "Uneasy", "Velvet", "Winter", "Young", "Burning",
    "Careless", "Daring", "Empty", "Faithful", "Golden", "Hollow", "Invisible", "Lonely",
    "Marble", "Nameless", "Painted", "Rising", "Secret", "Twisted", "Wandering",
)  # fmt: skip
LAST_WORDS = (
    "Anchor", "Bridge", "Canyon", "Daughter", "Engine", "Forest", "Garden", "Harbour",
    "Island", "Journey", "Kingdom", "Lantern", "Mirror", "Neighbour", "Orchard", "Promise",
    "Question", "River", "Station", "Tower", "Umbrella", "Valley", "Window", "Yard",
    "Avenue", "Ballad", "Circus", "Desert", "Echo", "Festival", "Guest", "Horizon",
    "Inheritance", "Jury", "Letter", "Mountain", "Night", "Ocean", "Piano", "Road",
    "Shadow", "Train",
)  # fmt: skip


class _World(NamedTuple):
    """Users and items before any choice; a user's factors are p_u, an item's q_i."""

    catalogue: Catalogue
    q: Floats
    p: Floats
    item_bias: Floats
    user_bias: Floats
    popularity: Floats


def simulate(
    n_users: int = 943, n_items: int = 1682, n_ratings: int = 100_000, seed: int = 0
) -> Ratings:
    """Draw ratings 1 to 5 that resemble MovieLens; the same arguments give the same ratings.

    Every user has at least 20 ratings, or the mean number if that is lower. Every item has a
    rating if there are enough ratings. Users rate more items that they like. `times` are
    seconds and ascend within each user. Raises SettingError if the numbers do not fit together
    or the seed is negative.

    Parameters
    ----------
    n_users, n_items, n_ratings
        Numbers of users, items and ratings: 1 ≤ n_users ≤ n_ratings ≤ n_users · n_items.
    seed : int, seed of the generator, ≥ 0
    """
    if n_users < 1 or n_items < 1 or not n_users <= n_ratings <= n_users * n_items:
        raise SettingError(
            f"n_ratings = {n_ratings} does not fit n_users = {n_users} and n_items = "
            f"{n_items}: every user rates at least one item, and no item twice"
        )
    check(Seed, seed=seed)
    rng = np.random.default_rng(seed)
    world = _drawn(rng, n_users, n_items)
    of_users, of_items = _appealing(world)

    counts = _counts(rng, n_users, n_items, n_ratings)
    users = np.repeat(np.arange(n_users), counts)
    items = np.empty(n_ratings, dtype=np.int64)
    for user, row in enumerate(np.split(items, np.cumsum(counts)[:-1])):
        appeal = of_items @ of_users[user]
        row[:] = np.argsort(-(appeal + rng.gumbel(size=n_items)))[: row.size]
        rng.shuffle(row)
    _reach_every_item(rng, items, n_items)

    score = world.user_bias[users] + world.item_bias[items]
    score += (world.p[users] * world.q[items]).sum(axis=1)
    score += rng.normal(scale=NOISE, size=n_ratings)
    steps = np.quantile(score, np.cumsum(SHARES)[:-1])
    gaps = rng.exponential(60.0, size=n_ratings).astype(np.int64)
    since_start = np.cumsum(gaps)
    first = np.cumsum(counts) - counts  # of each user's ratings
    start = rng.integers(875_000_000, 893_000_000, size=n_users)
    return from_triples(
        users + 1,
        items + 1,
        1.0 + np.searchsorted(steps, score, side="left"),
        scale=(1.0, 5.0),
        name=NAME,
        times=start[users] + since_start - since_start[first[users]],
        item_ids=np.arange(1, n_items + 1),
        catalogue=world.catalogue,
    )


def appeal(n_users: int, n_items: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return the true appeal by which the users of `simulate` choose, as two matrices.

    The product of a user's row and an item's is the appeal of the item to the user. The order
    by appeal is the best recommendation possible, as the rest of a choice is noise. Raises
    SettingError if the seed is no int ≥ 0.

    Parameters
    ----------
    n_users, n_items, seed : as for `simulate`, whatever the number of ratings

    Returns
    -------
    users, items : float64, shapes (n_users, 5) and (n_items, 5)
    """
    check(Seed, seed=seed)
    return _appealing(_drawn(np.random.default_rng(seed), n_users, n_items))


def _drawn(rng: np.random.Generator, n_users: int, n_items: int) -> _World:
    catalogue = _catalogue(rng, n_items)
    of_genres = catalogue.genres @ rng.standard_normal((len(GENRES), RANK))
    of_genres /= np.sqrt(catalogue.genres.sum(axis=1))[:, None]
    own = rng.standard_normal((n_items, RANK))
    q = np.sqrt(GENRE_PART) * of_genres + np.sqrt(1 - GENRE_PART) * own
    p = rng.normal(scale=TASTE / np.sqrt(RANK), size=(n_users, RANK))
    age = (catalogue.years.max() - catalogue.years) / 30  # old items still seen are good
    item_bias = rng.normal(scale=ITEM_BIAS, size=n_items) + 0.1 * age
    user_bias = rng.normal(scale=USER_BIAS, size=n_users)
    popularity = POPULARITY * rng.standard_normal(n_items) + 0.8 * item_bias
    return _World(catalogue, q, p, item_bias, user_bias, popularity)


def _appealing(world: _World) -> tuple[Floats, Floats]:
    users = np.column_stack((np.ones(len(world.p)), CHOICE * world.p))
    return users, np.column_stack((world.popularity, world.q))


def _catalogue(rng: np.random.Generator, n_items: int) -> Catalogue:
    """Invent titles, years and one to three genres per item."""
    n_titles = len(FIRST_WORDS) * len(LAST_WORDS)
    pairs = rng.permutation(n_titles)
    years = (1998 - np.minimum(rng.exponential(9.0, size=n_items), 75)).astype(np.int16)
    titles = []
    for item in range(n_items):
        first, last = divmod(int(pairs[item % n_titles]), len(LAST_WORDS))
        part = f" {item // n_titles + 1}" if item >= n_titles else ""
        titles.append(f"{FIRST_WORDS[first]} {LAST_WORDS[last]}{part} ({years[item]})")
    # Dirichlet shares: a few genres are common and some are rare, as in the real lists.
    common = np.log(rng.dirichlet(np.full(len(GENRES), 1.5)))
    rank = np.argsort(np.argsort(-(common + rng.gumbel(size=(n_items, len(GENRES)))), axis=1))
    genres = rank < rng.choice([1, 2, 3], p=[0.5, 0.35, 0.15], size=n_items)[:, None]
    return Catalogue(tuple(titles), years, genres, GENRES)


def _counts(
    rng: np.random.Generator, n_users: int, n_items: int, n_ratings: int
) -> NDArray[np.int64]:
    """Draw each user's number of ratings from a long-tailed distribution, n_ratings in all."""
    # at most half of the items, unless the mean is near that
    most = min(n_items, max(n_items // 2, 2 * n_ratings // n_users))
    counts = np.full(n_users, min(LEAST_PER_USER, n_ratings // n_users), dtype=np.int64)
    weight = rng.lognormal(sigma=1.0, size=n_users)
    while (left := n_ratings - int(counts.sum())) > 0:
        room = most - counts
        share = weight * (room > 0)
        extra = np.minimum(np.floor(left * share / share.sum()).astype(np.int64), room)
        if not extra.any():  # the rest goes to the heaviest raters with room
            extra[np.argsort(-share, kind="stable")[:left]] = 1
            extra = np.minimum(extra, room)
        counts += extra
    return counts


def _reach_every_item(rng: np.random.Generator, items: NDArray[np.int64], n_items: int) -> None:
    """Turn a few ratings of often-rated items into a rating of each unrated item."""
    raters = np.bincount(items, minlength=n_items)
    for item in np.flatnonzero(raters == 0):
        spare = np.flatnonzero(raters[items] > 1)
        if spare.size == 0:
            return
        chosen = rng.choice(spare)
        raters[items[chosen]] -= 1
        items[chosen] = item
        raters[item] = 1
