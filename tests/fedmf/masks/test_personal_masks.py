"""The personalised masks of FedMMF, each against a formula or a library that is not theirs."""

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benches.papers.indicator import indicator, mean_indicator, samples_needed, well_masked
from fedmf.data import Features, Split, from_triples
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.masks import FMMask, MeanMask, NNMask, RidgeMask
from fedmf.masks.higher import fm_descent, nn_descent, padded
from fedmf.masks.recipes import recipe
from fedmf.models import PRESETS

MASKS = [MeanMask(), MeanMask(shrink=3), RidgeMask(), FMMask(), NNMask()]
QUICK = [MeanMask(), RidgeMask(), FMMask(steps=5), NNMask(steps=5)]


@pytest.fixture(scope="module")
def ratings():
    """Ratings of 60 items by 30 users, the last of whom has none."""
    whole = simulate(30, 60, 900, seed=3)
    return whole.take((whole.users < 29) & (np.random.default_rng(4).random(900) < 0.7))


@pytest.fixture(scope="module")
def features(ratings):
    return item_features(ratings)


def rated_by_one(matrix, values):
    """Return one user's ratings of all items, and features of them."""
    n, d = np.shape(matrix)
    ratings = from_triples(np.zeros(n), np.arange(n), values, scale=(1, 5), name="one")
    return ratings, Features(np.asarray(matrix, float), tuple("abcdefgh"[:d]))


def test_mean_mask_is_the_shrunk_mean_of_the_user():
    """The mean mask is the users mean drawn towards the neutral constant."""
    ratings, features = rated_by_one([[0], [0], [0]], [5, 4, 3])
    assert MeanMask().fit(features, ratings).predict([0], [2]) == pytest.approx([4.0])
    shrunk = MeanMask(shrink=3).fit(features, ratings)  # (5 + 4 + 3 + 3 · 3.5) / 6
    assert shrunk.predict([0], [0]) == pytest.approx([3.75])


@pytest.mark.parametrize("penalty", [0.5, 4, 20])
def test_ridge_mask_equals_scikit_learn(ratings, features, penalty):
    mask = RidgeMask(penalty=penalty).fit(features, ratings)
    everything = np.arange(60)
    for user in range(29):
        items, values = ratings.of_user(user)
        peer = Ridge(alpha=penalty).fit(features.matrix[items], values)
        np.testing.assert_allclose(
            mask.predict(np.full(60, user), everything), peer.predict(features.matrix)
        )


def test_without_penalty_collinear_genres_still_solve():
    """Collinear genres have a solution without a penalty."""
    ratings, features = rated_by_one([[0, 0], [1, 1], [1, 1]], [1, 3, 5])
    mask = RidgeMask(penalty=0).fit(features, ratings)
    np.testing.assert_allclose(mask.predict([0, 0], [0, 1]), [1, 4])


def test_fm_mask_is_rendles_double_sum(ratings, features):
    mask = FMMask(k=3, steps=20).fit(features, ratings, seed=1)
    user, x = 4, features.matrix[7]
    f = mask.constants[user] + mask.weights[user] @ x
    for i in range(x.size):
        for j in range(i + 1, x.size):
            f += mask.interactions[user, i] @ mask.interactions[user, j] * x[i] * x[j]
    np.testing.assert_allclose(mask.predict([user], [7]), [f])


def test_nn_mask_is_one_layer_of_rectified_units(ratings, features):
    mask = NNMask(hidden=3, steps=20).fit(features, ratings, seed=1)
    user, x = 4, features.matrix[7]
    f = mask.constants[user]
    for unit in range(3):
        signal = mask.inner[user, :, unit] @ x + mask.biases[user, unit]
        f += mask.outer[user, unit] * (signal if signal > 0 else 0)
    np.testing.assert_allclose(mask.predict([user], [7]), [f])


def fm_loss(x, r, parameters, l2):
    w0, w, v = parameters
    pairs = np.array([sum(
        v[i] @ v[j] * one[i] * one[j] for i in range(one.size) for j in range(i)
    ) for one in x])  # fmt: skip
    return np.mean((w0 + x @ w + pairs - r) ** 2) + l2 * ((w**2).sum() + (v**2).sum())


def nn_loss(x, r, parameters, l2):
    inner, biases, outer, constant = parameters
    f = np.clip(x @ inner + biases, 0, None) @ outer + constant
    return np.mean((f - r) ** 2) + l2 * ((inner**2).sum() + (outer**2).sum())


@pytest.mark.parametrize(
    ("descent", "loss", "shapes"),
    [
        (fm_descent, fm_loss, lambda d: ((1,), (d,), (d, 2))),
        (nn_descent, nn_loss, lambda d: ((d, 4), (4,), (4,), (1,))),
    ],
)
def test_gradients_equal_differences_of_the_losses(ratings, features, descent, loss, shapes):
    """Eq. 10 with the penalty, for a user with fewer ratings than others in the block."""
    block = next(padded(features.matrix, ratings))
    place = 0
    assert (block.share[place] == 0).any(), "the user must be padded"
    user = int(block.users[place])
    items, values = ratings.of_user(user)
    rng = np.random.default_rng(0)
    parameters = [
        rng.normal(size=(block.users.size, *shape))
        for shape in shapes(features.matrix.shape[1])
    ]
    found = descent(block, 0.3)(parameters)
    for which, table in enumerate(parameters):
        for index in list(np.ndindex(table.shape[1:]))[:12]:
            losses = []
            for step in (1e-5, -1e-5):
                mine = [one[place].copy() for one in parameters]
                mine[which][index] += step
                losses.append(loss(features.matrix[items], values - values.mean(), mine, 0.3))
            slope = (losses[0] - losses[1]) / 2e-5
            assert found[which][place][index] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("mask", MASKS, ids=repr)
def test_mask_depends_on_its_user_alone(ratings, features, mask):
    """Neither the others' ratings nor who shares a block with the user change anything."""
    user = 11
    alone = ratings.take(ratings.users == user)
    at = np.full(60, user), np.arange(60)
    np.testing.assert_allclose(
        mask.fit(features, ratings, seed=2).predict(*at),
        mask.fit(features, alone, seed=2).predict(*at),
        atol=1e-9,
    )


@pytest.mark.parametrize("mask", MASKS, ids=repr)
def test_user_without_ratings_has_the_neutral_constant(ratings, features, mask):
    found = mask.fit(features, ratings).predict(np.full(60, 29), np.arange(60))
    np.testing.assert_array_equal(found, 3.5)


@pytest.mark.parametrize("mask", [MeanMask(), RidgeMask(), FMMask()], ids=repr)
def test_linear_masks_are_products_of_tables(ratings, features, mask):
    fitted = mask.fit(features, ratings)
    users, items = fitted.linear()
    every_user, every_item = (grid.ravel() for grid in np.mgrid[:30, :60])
    np.testing.assert_allclose(
        (users @ items.T).ravel(), fitted.predict(every_user, every_item)
    )


@pytest.mark.parametrize("mask", QUICK, ids=repr)
def test_features_and_pairs_out_of_range_raise(ratings, features, mask):
    with pytest.raises(DataError, match=r"59 items .* 60"):
        mask.fit(Features(features.matrix[:59], features.names), ratings)
    fitted = mask.fit(features, ratings)
    for pairs in (([30], [0]), ([0], [60]), ([-1], [0]), ([1, 2], [0])):
        with pytest.raises(ModelError):
            fitted.predict(*pairs)
    assert fitted.predict(np.array([], dtype=int), np.array([], dtype=int)).shape == (0,)


@pytest.mark.parametrize("mask", [RidgeMask(), FMMask(), NNMask()], ids=repr)
def test_masks_without_features_raise_except_the_mean(mask):
    ratings, nothing = rated_by_one(np.zeros((3, 0)), [5, 4, 3])
    with pytest.raises(DataError, match="MeanMask"):
        mask.fit(nothing, ratings)
    assert MeanMask().fit(nothing, ratings).predict([0], [0]) == pytest.approx([4.0])


def test_penalty_below_the_rounding_counts_as_zero():
    """Two columns that are the same share the weight; a third says nothing."""
    ratings, features = rated_by_one([[1, 1, 0], [2, 2, 0], [3, 3, 0]], [2, 3, 4])
    for penalty in (0, 1e-30, 1e-18, 1e-13):
        weights = RidgeMask(penalty=penalty).fit(features, ratings).weights
        np.testing.assert_allclose(weights, [[0.5, 0.5, 0.0]], atol=1e-9)


@pytest.mark.parametrize(
    ("mask", "part"),
    [(FMMask(rate=1e-300), "interactions"), (NNMask(rate=1e-300), "inner")],
    ids=repr,
)
def test_users_have_distinct_starts(ratings, features, mask, part):
    one, same, other = (
        getattr(mask.fit(features, ratings, seed), part)[:29] for seed in (1, 1, 2)
    )
    assert len(np.unique(one[:, 0, 0])) == 29
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


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
    middle = float(np.mean(np.sort(by_hand)[9:11]))  # between two, which rounding may move
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


@pytest.mark.parametrize("wrong", [(0, 0.1, 1), (0.1, 1, 1), (0.1, 0.1, -1)])
def test_bounds_out_of_range_raise(wrong):
    with pytest.raises(SettingError):
        samples_needed(*wrong)


KINDS = {"ridge": RidgeMask, "fm": FMMask, "nn": NNMask, "mean": MeanMask}


@pytest.mark.parametrize("kind", KINDS)
def test_recipe_is_a_mask_and_a_preset(kind):
    paper, large, fast = (recipe(kind, name) for name in ("paper", "large", "fast"))
    assert isinstance(paper.mask, KINDS[kind])
    assert (paper.offset, paper.preset.model.start) == (False, "zero-mean")
    assert (large.offset, large.preset) == (True, PRESETS["large"])
    assert (fast.mask, fast.preset) == (large.mask, PRESETS["fast"])


@pytest.mark.parametrize("name", ["paper", "large", "fast"])
@pytest.mark.parametrize("kind", KINDS)
def test_changed_part_of_a_recipe_changes_no_other(kind, name):
    before = repr(recipe(kind, name))
    changed = recipe(kind, name)
    changed.preset.model.set_params(k=3)
    number = next(one for one, v in changed.mask.get_params().items() if type(v) is float)
    changed.mask.set_params(**{number: 0.75})
    assert repr(changed) != before
    assert repr(recipe(kind, name)) == before


@pytest.mark.parametrize(("mask", "preset"), [("tree", "fast"), ("ridge", "best")])
def test_unknown_names_raise_with_the_known_ones(mask, preset):
    with pytest.raises(SettingError, match=r"'tree' .* ridge, |'best' .* fast, "):
        recipe(mask, preset)
