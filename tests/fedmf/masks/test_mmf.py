"""FedMMF: training on masked ratings, and predicting with what the masks took away."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from fedmf.data import Features
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.masks import FedMMF, FMMask, LocalHead, MeanMask, NNMask, RidgeMask
from fedmf.masks.combined import Combined
from fedmf.masks.mmf import masked
from fedmf.models import Factors, FedMF
from fedmf.models.mf import neutral
from fedmf.training import Trainer, mae, rmse

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


OF_60 = tuple(grid.ravel() for grid in np.mgrid[:60, :80])


@pytest.fixture(scope="module")
def rated_by_59():
    """User 59 has no rating left to learn from."""
    parts = random_split(simulate(60, 80, 2400, seed=2), seed=1)
    return type(parts)(parts.train.take(parts.train.users < 59), parts.test)


@pytest.fixture(scope="module")
def base(rated_by_59):
    return Trainer(FedMF(k=3), rounds=12).fit(rated_by_59.train).model_


@pytest.mark.parametrize("penalty", [1, 20])
def test_head_is_each_users_ridge_on_own_residuals(rated_by_59, base, penalty):
    found = LocalHead(penalty=penalty).fit(base, rated_by_59.train).predict(*OF_60)
    x, everything = item_features(rated_by_59.train).matrix, np.arange(80)
    for user in range(59):
        items, values = rated_by_59.train.of_user(user)
        residuals = values - base.predict(np.full(items.size, user), items)
        head = Ridge(alpha=penalty).fit(x[items], residuals)
        meant = base.predict(np.full(80, user), everything) + head.predict(x)
        np.testing.assert_allclose(found.reshape(60, 80)[user], meant)


def test_head_of_one_user_is_as_by_hand():
    """Predicted 3 throughout; x = 1, 2, 3 and residuals −1, −1, 2: w = 3 / (2 + 1), b = −2."""
    ratings = simulate(3, 3, 9, seed=0).with_values(np.tile([2.0, 2.0, 5.0], 3), (1.0, 5.0))
    items = ratings.of_user(0)[0]
    assert sorted(items) == [0, 1, 2]
    x = np.zeros((3, 1))
    x[items, 0] = [1, 2, 3]
    flat = Factors.of(np.full((3, 1), 3.0), np.ones((3, 1)), ratings)
    head = LocalHead(penalty=1).fit(flat, ratings, Features(x, ("x",)))
    np.testing.assert_allclose(head.predict([0, 0, 0], items), [2, 3, 4])


def test_head_on_fedmmf_is_saved_as_factors(rated_by_59, tmp_path):
    below = FedMMF(MeanMask(), Trainer(FedMF(k=3), rounds=4)).fit(rated_by_59.train)
    found = LocalHead().fit(below.model_, rated_by_59.train)
    assert np.abs(found.predict(*OF_60) - below.predict(*OF_60)).max() > 0.1
    found.factors().save(tmp_path / "model.fedmf")
    back = Factors.load(tmp_path / "model.fedmf")
    np.testing.assert_allclose(back.predict(*OF_60), found.predict(*OF_60))


def test_head_of_other_data_raises(rated_by_59, base):
    other = simulate(60, 81, 2400, seed=2)
    with pytest.raises(ModelError, match=r"60 users and 80 items .* of 60 and 81"):
        LocalHead().fit(base, other)
    with pytest.raises(DataError, match=r"81 items .* 80"):
        LocalHead().fit(base, rated_by_59.train, item_features(other))


def test_head_without_features_is_the_mean_residual(rated_by_59, base):
    """The head without features is the mean residual."""
    nothing = Features(np.zeros((80, 0)), ())
    found = LocalHead().fit(base, rated_by_59.train, nothing).predict(*OF_60).reshape(60, 80)
    before = base.predict(*OF_60).reshape(60, 80)
    items, values = rated_by_59.train.of_user(7)
    shift = (values - before[7, items]).mean()
    np.testing.assert_allclose(found[7], before[7] + shift)
    np.testing.assert_array_equal(found[59], before[59])


def test_unfitted_model_raises_with_remedy(rated_by_59):
    with pytest.raises(ModelError, match=r"trainer\.model_"):
        LocalHead().fit(Trainer(FedMF(k=2), rounds=1).fit(rated_by_59.train), rated_by_59.train)
