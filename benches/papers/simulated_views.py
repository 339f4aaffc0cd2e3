"""Simulated views of items, which stand for the simulated data of the FCF paper."""

from __future__ import annotations

import numpy as np

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Catalogue, Ratings
from fedmf.errors import SettingError

BLOCKS = 4
VIEWS = 8
STRAY = 0.12


def simulate_views(n_users: int = 5000, n_items: int = 40, seed: int = 0) -> Ratings:
    """Draw eight views per user and at least one per item (Ammad-ud-din et al. 2019, 5.1).

    The paper does not state how zeros and ones are drawn; independent draws leave nothing to
    learn. Here the items form four blocks and every user belongs to one block. Each view is
    of another block with probability .12, which comes near to the paper's figures. Raises
    SettingError if the numbers do not fit together or the seed is negative.

    Parameters
    ----------
    n_users, n_items
        Numbers of users and items: n_items a multiple of 4, at least 32, and 8 · n_users ≥
        n_items.
    seed : int, seed of the generator, ≥ 0; the same arguments give the same views
    """
    if n_items < BLOCKS * VIEWS or n_items % BLOCKS or VIEWS * n_users < n_items:
        raise SettingError(
            f"n_users = {n_users} and n_items = {n_items} do not fit: choose a multiple of "
            f"{BLOCKS} items, at least {BLOCKS * VIEWS}, and a user for every {VIEWS} of them"
        )
    if seed < 0:
        raise SettingError(f"seed = {seed} must be at least 0")
    rng = np.random.default_rng(seed)
    block = np.arange(n_items) % BLOCKS
    own = block == rng.integers(BLOCKS, size=n_users)[:, None]
    n_stray = rng.binomial(VIEWS, STRAY, size=n_users)[:, None]
    # Each user's items in random order, separately in the user's own block and other blocks.
    order = rng.random((n_users, n_items))
    rank = np.argsort(np.argsort(order + own, axis=1), axis=1)  # other blocks come first
    n_others = n_items - n_items // BLOCKS
    viewed = np.where(own, rank - n_others < VIEWS - n_stray, rank < n_stray)
    _reach_every_item(viewed)
    users, items = np.nonzero(viewed)
    return from_triples(
        users + 1,
        items + 1,
        np.ones(items.size),
        scale=(0, 1),
        name="simulated views",
        catalogue=Catalogue(
            tuple(f"Item {number}" for number in range(1, n_items + 1)),
            np.zeros(n_items, dtype=np.int16),
            np.eye(BLOCKS, dtype=np.bool_)[block],
            tuple(f"Block {number}" for number in range(1, BLOCKS + 1)),
        ),
    )


def _reach_every_item(viewed: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> None:
    """Move one view of the most viewed item to each item without a view."""
    for item in np.flatnonzero(~viewed.any(axis=0)):
        most = int(viewed.sum(axis=0).argmax())
        user = int(viewed[:, most].argmax())
        viewed[user, most], viewed[user, item] = False, True
