"""FedMMF: training on masked ratings, and predicting with what the masks took away."""

import numpy as np
import pytest

from fedmf.aggregate import PlainSum, SecAggSum
from fedmf.data import Features
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.masks import FedMMF, FMMask, MeanMask, NNMask, RidgeMask
from fedmf.masks.combined import Combined, around
from fedmf.masks.mmf import masked
from fedmf.models import Factors, FedMF
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


def test_predictions_are_not_clipped(split):
    """An item far from those that a user rated takes the mask beyond the scale, and r̂ along."""
    steep = Features(np.r_[np.arange(49.0), 5000.0][:, None], ("number",))
    found = FedMMF(RidgeMask(penalty=0), Trainer(ZERO, rounds=1), offset=False)
    predictions = found.fit(split.train, features=steep).predict(*EVERY_PAIR)
    assert predictions.min() < 1
    assert predictions.max() > 5


def test_masked_ratings_leave_the_scale_and_keep_the_pairs(split):
    ratings = split.train
    mask = MeanMask().fit(item_features(ratings), ratings)
    found = masked(ratings, mask, 3.5)
    assert found.values.mean() == pytest.approx(3.5)
    assert neutral(found) == 3.5
    assert neutral(masked(ratings, mask)) == 0.0
    np.testing.assert_array_equal(found.items, ratings.items)
    np.testing.assert_array_equal(found.indptr, ratings.indptr)


@pytest.mark.parametrize(
    "mask", [MASKS[0], pytest.param(MASKS[1], marks=pytest.mark.large)], ids=repr
)
def test_secure_training_gives_the_plain_integers(split, mask):
    """With dropouts; masks are fitted before and do not depend on them."""
    secure, plain = (
        FedMMF(mask, Trainer(FedMF(k=3), summing, rounds=2, seed=8, dropout=0.1)).fit(
            split.train, split.test
        )
        for summing in (SecAggSum(), PlainSum())
    )
    assert [one.digest for one in secure.history_] == [one.digest for one in plain.history_]
    assert {one.aborted for one in secure.history_} == {None}
    np.testing.assert_array_equal(secure.predict(*EVERY_PAIR), plain.predict(*EVERY_PAIR))
    assert 0 < min(one.survivors for one in plain.history_) < 40


def test_recommendations_are_the_best_that_are_not_rated(split, fitted):
    items, scores = fitted.recommend(7, k=4)
    rated = split.train.of_user(7)[0]
    everything = fitted.predict(np.full(50, 7), np.arange(50))
    meant = [item for item in np.argsort(-everything) if item not in rated][:4]
    assert items.tolist() == meant
    np.testing.assert_array_equal(scores, everything[items])


@pytest.mark.parametrize("mask", [MeanMask(), RidgeMask(), FMMask(steps=3)], ids=repr)
def test_linear_mask_is_saved_as_more_factors(split, mask, tmp_path):
    found = FedMMF(mask, Trainer(FedMF(k=3), rounds=2)).fit(split.train)
    found.model_.factors().save(tmp_path / "model.fedmf")
    back = Factors.load(tmp_path / "model.fedmf")
    np.testing.assert_allclose(back.predict(*EVERY_PAIR), found.predict(*EVERY_PAIR))
    assert back.recommend(3)[0].tolist() == found.recommend(3)[0].tolist()


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
    with pytest.raises(ModelError, match="0 to 39"):
        fitted.predict([40], [0])
    with pytest.raises(ModelError, match="user 40"):
        fitted.recommend(40)
    with pytest.raises(ModelError):
        fitted.recommend(0, k=0)
    with pytest.raises(DataError, match=r"1 items .* 50"):
        FedMMF(trainer=Trainer(rounds=1)).fit(
            split.train, features=Features(np.ones((1, 1)), ("a",))
        )


def test_trainer_refitted_on_other_data_starts_fresh(split, fitted):
    """A trainer that goes on to other data takes nothing along."""
    before = fitted.predict(*EVERY_PAIR)
    fitted.trainer.fit(simulate(10, 20, 100, seed=1))
    np.testing.assert_array_equal(fitted.predict(*EVERY_PAIR), before)


def test_predict_before_fit_raises():
    with pytest.raises(ModelError):
        FedMMF().predict([0], [0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"mask": "ridge"},
        {"mask": RidgeMask},
        {"mask": FedMF()},
        {"mask": Trainer()},
        {"trainer": FedMF()},
    ],
)
def test_parts_of_wrong_types_raise(wrong):
    with pytest.raises(SettingError):
        FedMMF(**wrong)


def test_scale_of_differences_has_the_right_neutral_point(split):
    """The scale of differences has its neutral point where it should."""
    for centre in (0.0, 3.5, 2.75):
        values = np.full(split.train.n_ratings, centre)
        assert neutral(split.train.with_values(values, around(centre))) == centre


def test_failed_refit_leaves_no_attributes(split):
    found = FedMMF(MeanMask(), Trainer(FedMF(k=3), rounds=1)).fit(split.train)
    found.trainer.callbacks = (lambda record: 1 / 0,)
    with pytest.raises(ZeroDivisionError):
        found.fit(split.train)
    with pytest.raises(ModelError):
        found.predict([0], [0])
    assert not {"mask_", "model_", "history_"} & set(vars(found))


def test_history_is_kept_if_the_trainer_fits_again(split):
    found = FedMMF(MeanMask(), Trainer(FedMF(k=3), rounds=1)).fit(split.train)
    before = found.history_
    found.trainer.fit(split.train)
    assert found.history_ is before


def test_likely_mistakes_raise_before_any_work(split):
    class Never(RidgeMask):
        def fit(self, features, ratings, seed=0):
            raise AssertionError

    model = FedMMF(Never())
    with pytest.raises(SettingError, match=r"split\.train .*split\.test"):
        model.fit(split)
    with pytest.raises(DataError, match="test"):
        model.fit(split.train, split.test.take(np.array([], dtype=int)))


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


def test_equal_predictions_are_recommended_by_number(split):
    two = (np.arange(50.0) * 7 % 3 // 2)[:, None]
    level = Factors.of(np.ones((40, 1)), two, split.train)
    mean = MeanMask().fit(item_features(split.train), split.train)
    items, scores = Combined(level, mean, 0.0, split.train).recommend(7, k=50)
    assert np.unique(scores).size == 2
    assert items.size > 20
    meant = sorted(items.tolist(), key=lambda item: (-two[item, 0], item))
    assert items.tolist() == meant == level.recommend(7, k=50)[0].tolist()


def test_users_and_pairs_are_handled_as_by_factors(split, fitted):
    with pytest.raises(ModelError, match=r"user 1\.5 .*0 to 39"):
        fitted.recommend(1.5)
    square = fitted.predict([[0, 1], [2, 3]], [[4, 5], [6, 7]])
    np.testing.assert_array_equal(square.ravel(), fitted.predict([0, 1, 2, 3], [4, 5, 6, 7]))
    assert fitted.predict(2, 6) == square[1, 0]
