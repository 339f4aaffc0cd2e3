"""Masks without a closed form are undone in the clear; a guess is no better than chance."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers.retraining import from_retraining, inversion
from fedmf import attacks
from fedmf.attacks.observed import chance, share_right
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.masks import FMMask, NNMask
from fedmf.masks.mmf import masked

GRID = np.arange(1.0, 6.0)


@pytest.fixture(scope="module")
def few():
    return simulate(24, 50, 600, seed=1)


@pytest.mark.large
def test_attacker_starts_differ_from_the_parties(few, monkeypatch):
    seeds = []
    original = FMMask.fit

    def spy(self, features, ratings, seed=0):
        seeds.append(seed)
        return original(self, features, ratings, seed)

    monkeypatch.setattr(FMMask, "fit", spy)
    inversion(few, attacks.chosen(few, 2, 0), FMMask(), seed=1)
    assert seeds[0] == 1
    assert len(seeds) > 1
    assert min(seeds[1:]) > 10**5


@pytest.mark.parametrize("mask", [FMMask(), pytest.param(NNMask(), marks=pytest.mark.large)])
def test_masks_without_closed_form_are_undone_by_retraining(few, mask):
    """Masks without a closed form are undone by retraining from other starts."""
    some = few.take(few.users < 10)
    features = item_features(some)
    hidden = masked(some, mask.fit(features, some, seed=0))
    means = np.bincount(some.users, some.values, 24) / np.maximum(np.diff(some.indptr), 1)
    found = from_retraining(hidden, mask, features, means, GRID, passes=2, seed=1)
    assert share_right(found, some.values) >= 0.9
    noise = np.random.default_rng(0).normal(scale=1e7, size=some.n_ratings)
    guessed = from_retraining(
        some.with_values(noise, (-np.inf, np.inf)), mask, features, means, GRID, passes=1
    )
    bound = chance(some.values) + 4 * np.sqrt(0.25 / some.n_ratings)
    assert share_right(guessed, some.values) < bound
