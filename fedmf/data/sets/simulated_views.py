"""Views drawn in blocks: the simulated data of the FCF paper, with a structure to be found."""

from __future__ import annotations

import numpy as np

from fedmf.data.ratings import Catalogue, Ratings
from fedmf.errors import SettingError

__all__ = ["simulate_views"]

BLOCKS = 4
VIEWS = 8
STRAY = 0.12


def simulate_views(n_users: int = 5000, n_items: int = 40, seed: int = 0) -> Ratings:
    """Draw who viewed what, as in Ammad-ud-din et al. 2019, section 5.1.

    The paper asks for zeros and ones that are 80 % sparse, at least eight views per user and
    one per item. Of 40 items that leaves exactly eight views to every user. It does not say
    how they are drawn; independently of each other they would leave nothing to learn (ten
    items of 35 then hold 29 % of the test views, and the paper finds 89 %). Here the items form
    four blocks, every user belongs to one, and each of the user's eight views is of another
    block with probability .12, which comes near to the paper's figures.

    Parameters
    ----------
    n_users, n_items
        The shape; n_items a multiple of 4, at least 32, and 8 · n_users ≥ n_items.
    seed
        Of the generator, seed ≥ 0; the same arguments give the same views.

    Raises
    ------
    SettingError
        If the shape is impossible or the seed negative.
    """
    if n_items < BLOCKS * VIEWS or n_items % BLOCKS or VIEWS * n_users < n_items:
        raise SettingError(
            f"n_users = {n_users} and n_items = {n_items} do not fit: take a multiple of "
            f"{BLOCKS} items, at least {BLOCKS * VIEWS}, and a user for every {VIEWS} of them"
        )
    if seed < 0:
        raise SettingError(f"seed = {seed} is negative; it must be at least 0")
    rng = np.random.default_rng(seed)
    block = np.arange(n_items) % BLOCKS
    own = block == rng.integers(BLOCKS, size=n_users)[:, None]
    n_stray = rng.binomial(VIEWS, STRAY, size=n_users)[:, None]
    # Each user's items in random order, those of the own block and the others apart.
    order = rng.random((n_users, n_items))
    rank = np.argsort(np.argsort(order + own, axis=1), axis=1)  # the others come first
    n_others = n_items - n_items // BLOCKS
    viewed = np.where(own, rank - n_others < VIEWS - n_stray, rank < n_stray)
    _reach_every_item(viewed)
    users, items = np.nonzero(viewed)
    return Ratings(
        name="simulated views",
        indptr=np.concatenate(([0], np.cumsum(np.bincount(users, minlength=n_users)))),
        items=items.astype(np.int32),
        values=np.ones(items.size),
        times=np.zeros(items.size, dtype=np.int64),
        n_items=n_items,
        scale=(0.0, 1.0),
        user_ids=np.arange(1, n_users + 1, dtype=np.int64),
        item_ids=np.arange(1, n_items + 1, dtype=np.int64),
        catalogue=Catalogue(
            tuple(f"Item {number}" for number in range(1, n_items + 1)),
            np.zeros(n_items, dtype=np.int16),
            np.eye(BLOCKS, dtype=np.bool_)[block],
            tuple(f"Block {number}" for number in range(1, BLOCKS + 1)),
        ),
    )


def _reach_every_item(viewed: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> None:
    """Give each unviewed item a view in place of one of the item that is viewed most."""
    for item in np.flatnonzero(~viewed.any(axis=0)):
        most = int(viewed.sum(axis=0).argmax())
        user = int(viewed[:, most].argmax())
        viewed[user, most], viewed[user, item] = False, True
