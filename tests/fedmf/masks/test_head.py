"""The local head, against scikit-learn's ridge on the same residuals and by hand."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from fedmf.data import Features
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, ModelError
from fedmf.masks import FedMMF, LocalHead, MeanMask
from fedmf.models import Factors, FedMF
from fedmf.training import Trainer

EVERY_PAIR = tuple(grid.ravel() for grid in np.mgrid[:60, :80])


@pytest.fixture(scope="module")
def split():
    """User 59 has no rating left to learn from."""
    parts = random_split(simulate(60, 80, 2400, seed=2), seed=1)
    return type(parts)(parts.train.take(parts.train.users < 59), parts.test)


@pytest.fixture(scope="module")
def base(split):
    return Trainer(FedMF(k=3), rounds=12).fit(split.train).model_


@pytest.mark.parametrize("penalty", [1, 20])
def test_head_is_each_users_ridge_on_own_residuals(split, base, penalty):
    found = LocalHead(penalty=penalty).fit(base, split.train).predict(*EVERY_PAIR)
    x, everything = item_features(split.train).matrix, np.arange(80)
    for user in range(59):
        items, values = split.train.of_user(user)
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


def test_head_on_fedmmf_is_saved_as_factors(split, tmp_path):
    below = FedMMF(MeanMask(), Trainer(FedMF(k=3), rounds=4)).fit(split.train)
    found = LocalHead().fit(below.model_, split.train)
    assert np.abs(found.predict(*EVERY_PAIR) - below.predict(*EVERY_PAIR)).max() > 0.1
    found.factors().save(tmp_path / "model.fedmf")
    back = Factors.load(tmp_path / "model.fedmf")
    np.testing.assert_allclose(back.predict(*EVERY_PAIR), found.predict(*EVERY_PAIR))


def test_model_or_features_of_other_data_raise(split, base):
    other = simulate(60, 81, 2400, seed=2)
    with pytest.raises(ModelError, match=r"60 users and 80 items .* of 60 and 81"):
        LocalHead().fit(base, other)
    with pytest.raises(DataError, match=r"81 items .* 80"):
        LocalHead().fit(base, split.train, item_features(other))


def test_head_without_features_is_the_mean_residual(split, base):
    """The head without features is the mean residual."""
    nothing = Features(np.zeros((80, 0)), ())
    found = LocalHead().fit(base, split.train, nothing).predict(*EVERY_PAIR).reshape(60, 80)
    before = base.predict(*EVERY_PAIR).reshape(60, 80)
    items, values = split.train.of_user(7)
    shift = (values - before[7, items]).mean()
    np.testing.assert_allclose(found[7], before[7] + shift)
    np.testing.assert_array_equal(found[59], before[59])


def test_unfitted_model_raises_with_remedy(split):
    with pytest.raises(ModelError, match=r"trainer\.model_"):
        LocalHead().fit(Trainer(FedMF(k=2), rounds=1).fit(split.train), split.train)
