"""FedMMF: training on masked ratings, and predicting with what the masks took away."""

import numpy as np
import pytest

from fedmf.data import Features
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.masks import FedMMF, FMMask, MeanMask, NNMask, RidgeMask
from fedmf.masks.combined import Combined
from fedmf.masks.mmf import masked
from fedmf.models import FedMF
from fedmf.models.mf import neutral
from fedmf.training import Trainer, mae, rmse

MASKS = [RidgeMask(), NNMask(steps=20)]
ZERO = FedMF(k=3, reg=0.05, rate=0.002, update="paper", start="zero-mean", min_raters=1)
EVERY_PAIR = tuple(grid.ravel() for grid in np.mgrid[:40, :50])


@pytest.fixture(scope="module")
def split():
    return random_split(simulate(40, 50, 1000, seed=5), seed=1)


@pytest.fixture(scope="module")
def fitted(split):
    return FedMMF(RidgeMask(), Trainer(FedMF(k=3), rounds=4)).fit(split.train, split.test)


def test_fedmmf_without_offset_is_fedmf_on_residuals(split):
    """Eq. 11 and 12 with the user's mean, written out over the rating matrix."""
    train = split.train
    found = FedMMF(MeanMask(), Trainer(ZERO, rounds=3, seed=4), offset=False).fit(train)
    means = np.array([train.of_user(user)[1].mean() for user in range(40)])
    residuals = train.with_values(train.values - means[train.users], (-4.0, 4.0))
    peer = Trainer(ZERO, rounds=3, seed=4).fit_internal(ZERO, residuals, None, train.scale)
    np.testing.assert_allclose(
        found.predict(*EVERY_PAIR), peer.predict(*EVERY_PAIR) + means[EVERY_PAIR[0]]
    )


def test_fedmmf_with_offset_starts_near_the_mask(split):
    """The neutral start's product is 3.5, and 3.5 is subtracted."""
    quiet = FedMF(k=3, spread=1e-9, rate=1e-9, update="paper")
    found = FedMMF(RidgeMask(), Trainer(quiet, rounds=1)).fit(split.train)
    np.testing.assert_allclose(
        found.predict(*EVERY_PAIR), found.mask_.predict(*EVERY_PAIR), atol=1e-6
    )


def test_history_errors_are_those_of_the_predictions(split, fitted):
    last, test = fitted.history_.last, split.test
    predictions = fitted.predict(test.users, test.items)
    assert last.test_rmse == pytest.approx(rmse(test.values, predictions))
    assert last.test_mae == pytest.approx(mae(test.values, predictions))
    assert last.test_rmse < rmse(test.values, fitted.mask_.predict(test.users, test.items))


def test_masked_ratings_leave_the_scale_and_keep_the_pairs(split):
    ratings = split.train
    mask = MeanMask().fit(item_features(ratings), ratings)
    found = masked(ratings, mask, 3.5)
    assert found.values.mean() == pytest.approx(3.5)
    assert neutral(found) == 3.5
    assert neutral(masked(ratings, mask)) == 0.0
    np.testing.assert_array_equal(found.items, ratings.items)
    np.testing.assert_array_equal(found.indptr, ratings.indptr)


def test_network_has_no_factor_form(split):
    found = FedMMF(NNMask(steps=1), Trainer(FedMF(k=2), rounds=1)).fit(split.train)
    with pytest.raises(ModelError, match="NNMask"):
        found.model_.factors()


def test_model_or_features_of_other_data_raise(split, fitted):
    other = simulate(41, 50, 1000, seed=6)
    with pytest.raises(ModelError, match=r"40 users and 50 items .* 41"):
        Combined(fitted.model_, fitted.mask_, 0.0, other)
    with pytest.raises(ModelError):
        Combined(fitted.model_, MeanMask().fit(item_features(other), other), 0.0, split.train)
    with pytest.raises(DataError, match=r"1 items .* 50"):
        FedMMF(trainer=Trainer(rounds=1)).fit(
            split.train, features=Features(np.ones((1, 1)), ("a",))
        )


@pytest.mark.parametrize("mask", ["ridge", RidgeMask, FedMF(), Trainer()])
def test_parts_of_wrong_types_raise(mask):
    with pytest.raises(SettingError):
        FedMMF(mask)
    with pytest.raises(SettingError):
        FedMMF(trainer=FedMF())


@pytest.mark.parametrize("rate", [1e30, 1e200])
@pytest.mark.parametrize("kind", [FMMask, NNMask])
def test_mask_that_diverges_raises_with_its_rate(split, kind, rate):
    with pytest.raises(SettingError, match=r"Mask\(.*rate=1e\+\d+"):
        FedMMF(kind(rate=rate), Trainer(rounds=1)).fit(split.train, split.test)


def test_masks_start_from_the_trainers_seed(split):
    mask = NNMask(steps=2)
    found = FedMMF(mask, Trainer(FedMF(k=2), rounds=1, seed=8)).fit(split.train).mask_
    features = item_features(split.train)
    meant, other = (mask.fit(features, split.train, seed) for seed in (8, 0))
    np.testing.assert_array_equal(found.inner, meant.inner)
    assert (found.inner != other.inner).any()
