"""The FedMMF paper's privacy indicator."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedmf.data import Split
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.errors import SettingError
from fedmf.masks import MeanMask
from fedmf.masks.privacy import indicator, mean_indicator, samples_needed, well_masked


def test_j_of_the_mean_is_each_users_variance_on_a_scale_of_one():
    ratings = simulate(20, 30, 300, seed=0)
    ratings = ratings.take(ratings.users != 4)
    mask = MeanMask().fit(item_features(ratings), ratings)
    by_hand = np.array(
        [np.var(ratings.of_user(u)[1]) / 16 if u != 4 else np.nan for u in range(20)]
    )
    found = indicator(ratings, mask)
    np.testing.assert_allclose(found, by_hand)
    assert mean_indicator(ratings, mask) == pytest.approx(np.nanmean(by_hand))
    middle = float(np.nanmedian(by_hand))
    assert well_masked(ratings, mask, middle) == tuple(np.flatnonzero(by_hand <= middle))
    with pytest.raises(SettingError, match="at_most = -1"):
        well_masked(ratings, mask, -1)
    with pytest.raises(SettingError, match=r"split\.train"):
        indicator(Split(ratings, ratings), mask)


def test_bound_is_that_of_the_proof_and_twice_eq_23():
    epsilon, delta, bits = 0.1, 0.05, 32
    eq_18_at_half = math.log(2 * 2**bits / delta) / (2 * (epsilon / 2) ** 2)
    eq_23 = 2 * math.log(2 * 2**bits / delta) / (2 * epsilon**2)
    assert samples_needed(epsilon, delta, bits) == math.ceil(eq_18_at_half)
    assert samples_needed(epsilon, delta, bits) == pytest.approx(2 * eq_23, abs=1)
    assert samples_needed(epsilon, delta, 64 * 1000) > 0  # |F| itself would overflow


@pytest.mark.parametrize(
    ("setting", "epsilon", "delta", "bits"),
    [
        ("epsilon", 0, 0.1, 1),
        ("delta", 0.1, 1, 1),
        ("bits", 0.1, 0.1, -1),
        ("epsilon", math.nan, 0.1, 1),
    ],
)
def test_bounds_out_of_range_raise(setting, epsilon, delta, bits):
    with pytest.raises(SettingError, match=f"{setting} = "):
        samples_needed(epsilon, delta, bits)
