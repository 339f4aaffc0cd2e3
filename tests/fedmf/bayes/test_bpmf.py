"""Training of FedBPMF: sums, drop-outs, scales, checkpoints and Ctrl-C."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fedmf import FedBPMF, OneShotSum, PaillierSum, PlainSum, SecAggSum
from fedmf.aggregate import RoundAborted
from fedmf.bayes import Posterior
from fedmf.bayes.sample import Traits, profiles, standardised
from fedmf.bayes.users import Sweep, message_shape
from fedmf.data.blocks import Block
from fedmf.data.features import Features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, Diverged, ModelError, SettingError

RATINGS = simulate(30, 40, 500, seed=3)
SPLIT = random_split(RATINGS, seed=1)
ALL = np.arange(3)
LOST = RoundAborted("as the test wants")


def made(aggregation=None, **settings):
    defaults = {"k": 2, "rounds": 6, "burn_in": 2, "min_raters": 2}
    return FedBPMF(aggregation, **defaults | settings)


def table(model):
    pairs = np.divmod(np.arange(RATINGS.n_users * RATINGS.n_items), RATINGS.n_items)
    return model.predict(*pairs)


@pytest.fixture(scope="module")
def fitted():
    return made().fit(SPLIT.train, SPLIT.test)


def test_error_of_the_history_is_that_of_the_posterior(fitted):
    last = fitted.history_.last
    errors = SPLIT.test.values - fitted.predict(SPLIT.test.users, SPLIT.test.items)
    assert last.test_rmse == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)
    assert last.test_mae == pytest.approx(np.mean(np.abs(errors)), rel=1e-12)
    assert len(fitted.model_.samples) == 4
    assert len(fitted.history_) == 6


@pytest.mark.parametrize(
    "aggregation",
    [
        SecAggSum(),
        OneShotSum(),
        pytest.param(PaillierSum(trust="key holder", bits=2048), marks=pytest.mark.large),
    ],
    ids=["secagg", "one-shot", "paillier"],
)
@pytest.mark.parametrize("block", [1, 2])
def test_secure_sums_have_the_digests_of_plain_sums(aggregation, block):
    plain, secure = (
        made(by, dropout=0.1, rounds=3, block=block).fit(SPLIT.train, SPLIT.test)
        for by in (None, aggregation)
    )
    for one, other in zip(plain.history_, secure.history_, strict=True):
        assert (one.digest, one.count_digest) == (other.digest, other.count_digest)
        assert one.test_rmse == other.test_rmse
        assert one.clipped == 0
    assert (table(plain) == table(secure)).all()


def test_user_sends_the_same_alone_and_in_a_block():
    model = made()
    chain = model._start(SPLIT.train, None, 0, 2)
    own = np.random.default_rng(2).normal(size=(RATINGS.n_users, 2))
    steps = Sweep(chain, SPLIT.train, 3.0, 7, own, ALL)
    users = np.arange(RATINGS.n_users)
    whole = steps.rows(Block.of(SPLIT.train, users))
    together = np.zeros(steps.shape)
    np.add.at(together, whole.indices, whole.values)
    alone = sum(steps.vector(user).dense() for user in users)
    np.testing.assert_allclose(alone.reshape(steps.shape), together, atol=1e-12)
    first = Sweep(chain, SPLIT.train, 3.0, 7, own, ALL).vector(4)
    assert (first.values == whole.values[_rows_of(4)]).all()


def test_message_ends_with_the_moments_of_the_user():
    """y = (p_u, b_u, 4 g_u, 1) and two sums, in units of 1/16; the rest is zero."""
    own = np.random.default_rng(2).normal(size=(RATINGS.n_users, 2))
    chain = made()._start(SPLIT.train, None, 0, 2)
    steps = Sweep(chain, SPLIT.train, 3.0, 7, own, ALL)
    sent = steps.vector(4).dense().reshape(steps.shape)
    y = np.concatenate((steps.drawn[0][4], 4 * own[4], [1.0]))
    last = sent[RATINGS.n_items :].reshape(-1)
    np.testing.assert_allclose(16 * last[:21], np.outer(y, y)[np.tril_indices(6)])
    items, values = SPLIT.train.of_user(4)
    z = np.array([*y[:2], 1.0])
    errors = values - 3.0 - y[2] - chain.items[items] @ z
    sums = 16 * (last[21:25].reshape(2, 2) @ (256, 1))
    np.testing.assert_allclose(sums, [items.size, steps.drawn[1][4] * (errors @ errors)])
    assert last[25:].tolist() == [0.0, 0.0]
    assert steps.shape == message_shape(RATINGS.n_items, 2, 2) == (43, 9)
    moments = np.concatenate((np.outer(z, z)[np.tril_indices(3)], z * errors[0]))
    np.testing.assert_allclose(16 * sent[items[0]], steps.drawn[1][4] * moments)


def test_user_without_ratings_sends_zeros():
    """A draw from the prior tells nothing of the prior."""
    own = np.random.default_rng(2).normal(size=(RATINGS.n_users, 2))
    nobody = SPLIT.train.take(SPLIT.train.users != 4)
    steps = Sweep(made()._start(nobody, None, 0, 2), nobody, 3.0, 7, own, ALL)
    assert steps.drawn[0][4].any()
    assert not steps.vector(4).dense().any()
    assert steps.vector(5).dense().any()


def _rows_of(user):
    """Return the places of one user's rows in the block of all users."""
    train = SPLIT.train
    own = np.arange(train.indptr[user], train.indptr[user + 1])
    return [*own, *(train.n_ratings + 3 * user + np.arange(3))]


def test_chain_beats_the_mean_of_all_ratings():
    ratings = simulate(150, 100, 4000, seed=2)
    split = random_split(ratings, seed=0)
    model = FedBPMF(k=3, rounds=25, burn_in=5).fit(split.train, split.test)
    spread = np.sqrt(np.mean((split.test.values - split.train.values.mean()) ** 2))
    assert model.history_.last.test_rmse < 0.95 * spread
    mean, std = model.model_.predict(split.test.users, split.test.items, return_std=True)
    inside = np.abs(split.test.values - mean) < 1.645 * std
    assert 0.85 < inside.mean() < 0.95


def failing(*rounds):
    """Return a sum that is aborted in these rounds."""
    lost = {f"fedmf sum {one}".encode() for one in rounds}

    class Failing(PlainSum):
        def sum(self, vectors, *, dropouts, session=b""):
            if session in lost:
                raise LOST
            return super().sum(vectors, dropouts=dropouts, session=session)

    return Failing()


@pytest.mark.parametrize("rounds", [range(1, 7), range(3, 7)], ids=["all", "after burn-in"])
def test_aborted_sums_without_a_draw_to_keep_raise(rounds):
    model = made(failing(*rounds))
    with pytest.raises(RoundAborted):
        model.fit(SPLIT.train)
    assert not hasattr(model, "history_")


@pytest.mark.parametrize(("ratings", "factors"), [(60, 1), (190, 3), (500, 5)])
def test_users_of_few_ratings_have_few_factors(tmp_path, ratings, factors):
    """A factor for every two ratings of a user, k at most; a checkpoint keeps them."""
    train = simulate(30, 40, ratings, seed=3)
    model = made(k=5, min_raters=1, rounds=10).fit(train, checkpoint=tmp_path / "chain")
    again = made(k=5, min_raters=1, rounds=10).fit(train, checkpoint=tmp_path / "chain")
    assert model.model_.k == again.model_.k == factors
    assert model.k == 5


def test_features_enter_the_link():
    groups = np.arange(RATINGS.n_items) % 2
    features = Features(groups[:, None].astype(float), ["group"])
    model = made().fit(SPLIT.train, features=features)
    assert model.model_.samples[0].link.weights.shape == (1 + 3, 3)
    with pytest.raises(DataError):
        made().fit(SPLIT.train, features=Features(np.ones((3, 1)), ["group"]))


@pytest.mark.parametrize(
    ("sweeps", "burn_in", "samples", "works"),
    [
        (6, 2, 100, True),
        (5, 1, 4, True),
        (3, 0, 100, False),
        (5, 4, 100, False),
        (9, 8, 4, False),
    ],
)
def test_start_with_fewer_draws_than_it_has_raises(fitted, sweeps, burn_in, samples, works):
    """The chain begins again, and few draws are worse than those of `start`."""
    assert len(fitted.model_.samples) == 4
    model = made(rounds=sweeps, burn_in=burn_in, samples=samples)
    if works:
        model.fit(SPLIT.train, start=fitted.model_)
        return
    with pytest.raises(SettingError) as caught:
        model.fit(SPLIT.train, start=fitted.model_)
    rounds = int(re.search(r"at least (\d+) rounds", str(caught.value))[1])
    again = made(rounds=rounds, burn_in=rounds * burn_in // sweeps, samples=samples)
    again.fit(SPLIT.train, start=fitted.model_)


def test_start_that_is_no_model_of_ratings_raises(fitted):
    for wrong in (fitted, "model.fedmf", replace(fitted.model_.factors(), ranks=True)):
        with pytest.raises(ModelError):
            made(rounds=3).fit(SPLIT.train, start=wrong)


@pytest.mark.parametrize("burn_in", [2, 12, 22], ids=["after", "within", "before"])
def test_training_continues_from_a_checkpoint_to_the_same_numbers(tmp_path, burn_in):
    """After the rounds that compute implicit feedback, within and before them."""
    path, settings = tmp_path / "chain", {"rounds": 25, "dropout": 0.2, "burn_in": burn_in}
    settings["block"] = 1
    whole = made(**settings).fit(SPLIT.train, SPLIT.test)

    def stop(record):
        if record.round == 13:
            raise KeyboardInterrupt

    part = made(**settings, callbacks=[stop])
    part.fit(SPLIT.train, SPLIT.test, checkpoint=path)
    assert part.history_.interrupted
    again = made(**settings).fit(SPLIT.train, SPLIT.test, checkpoint=path)
    assert (table(again) == table(whole)).all()
    assert [one.digest for one in again.history_] == [one.digest for one in whole.history_]
    assert again.history_.last.test_rmse == whole.history_.last.test_rmse


def test_checkpoint_of_another_training_raises(tmp_path):
    path = tmp_path / "chain"
    made(rounds=10).fit(SPLIT.train, checkpoint=path)
    with pytest.raises(ModelError):
        made(rounds=12).fit(SPLIT.train, checkpoint=path)
    with pytest.raises(ModelError):
        made(rounds=10).fit(SPLIT.test, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ModelError):
        made(rounds=10).fit(SPLIT.train, checkpoint=path)


def test_absurd_draws_raise(monkeypatch):
    real = FedBPMF._start

    def far(self, *arguments):
        chain = real(self, *arguments)
        chain.items[:] = 1e30
        return chain

    monkeypatch.setattr(FedBPMF, "_start", far)
    with pytest.raises((Diverged, SettingError)):
        made(PlainSum(clip=1e9, fractional_bits=4)).fit(SPLIT.train)


def test_clipped_moments_raise():
    with pytest.raises(SettingError):
        made(PlainSum(clip=0.05)).fit(SPLIT.train)


def test_burn_in_of_all_rounds_raises():
    with pytest.raises(SettingError):
        made(burn_in=6)


def trained(aggregation=None, **settings):
    return FedBPMF(aggregation, **{"k": 2, "rounds": 8, "burn_in": 4} | settings).fit(RATINGS)


def test_items_have_popularity_and_the_mean_of_their_raters():
    """Three items: two raters, one rater, none; p̄ = (1, 0)."""
    q, mean = np.array([[1.0, 2.0], [3.0, 5.0], [8.0, 8.0]]), np.array([1.0, 0.0])
    weighted = np.array([[40.0, 20.0, 10.0], [0.0, 30.0, 20.0], [0.0, 0.0, 0.0]])
    raters = np.array([2.0, 1.0, 0.0])
    traits = Traits.of(q, raters, np.array([0, 1]), weighted, mean)
    apart = np.array([[30 / 30, 20 / 30], [-20 / 40, 30 / 40], [0.0, 0.0]])
    expected = standardised(np.column_stack((np.log([3.0, 2.0, 1.0]), apart)))
    np.testing.assert_allclose(traits.items, expected)
    e = standardised(q)[:2]
    np.testing.assert_allclose(traits.embedding[:2], e - (2 * e[0] + e[1]) / 3)
    assert traits.embedding[2].tolist() == [0.0, 0.0]
    # a sum of the second factor alone
    some = Traits.of(q, raters, np.array([1]), weighted[:, 1:], mean)
    np.testing.assert_allclose(some.items, expected * [1.0, 0.0, 1.0])
    both = Traits.of(q, raters, np.array([0]), weighted[:, [0, 2]], mean, some)
    np.testing.assert_allclose(both.items, expected)


def test_columns_of_one_value_are_zero():
    assert standardised(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist() == [[-1, 0], [1, 0]]


def test_profile_is_the_shrunken_mean_of_rated_items():
    embedding = np.arange(80.0).reshape(40, 2)
    whole = profiles(RATINGS, embedding)
    for user in (0, 7):
        items = RATINGS.of_user(user)[0]
        mine = embedding[items].sum(axis=0) / (items.size + 20)
        np.testing.assert_allclose(whole[user], mine)
        alone = profiles(Block.of(RATINGS, np.array([user])), embedding)
        np.testing.assert_array_equal(alone[0], whole[user])
    nobody = Block.of_one(np.zeros(0, dtype=np.int32), np.zeros(0))
    assert profiles(nobody, embedding).tolist() == [[0.0, 0.0]]


def test_implicit_feedback_stays_after_the_burn_in():
    """Round 4 is the last that computes it; with burn_in = 5 it is another.

    With burn_in = 2 round 1 computes it from the first items, and so does round 3 if its sum is
    the first.
    """
    some, more, other, first, start = (
        trained(failing(*lost), rounds=sweeps, burn_in=burn_in).model_.embedding
        for sweeps, burn_in, *lost in ((5, 4), (9, 4), (9, 5), (3, 2, 2), (3, 2, 1, 2))
    )
    np.testing.assert_array_equal((some, first), (more, start))
    assert (some != other).any()
    assert some.any()


def test_no_implicit_feedback_without_a_burn_in():
    model = trained(burn_in=1).model_
    assert not model.embedding.any()
    assert not any(one.user_link.weights.any() for one in model.samples)


def test_implicit_feedback_comes_late_if_the_burn_in_is_aborted():
    model = trained(failing(*range(1, 6)))
    assert [one.aborted is None for one in model.history_] == [False] * 5 + [True] * 3
    assert model.model_.embedding.any()
    assert model.model_.samples[0].link.weights.shape[0] >= 3


def test_kept_draws_have_the_same_features(tmp_path):
    """The first sum of 20 users, which k = 2 needs, comes after the first kept draw."""
    model = trained(dropout=0.4, rounds=20, seed=30)
    survivors = [one.survivors for one in model.history_]
    assert max(survivors[1:8]) < 20 <= survivors[8]
    assert not model.model_.embedding.any()
    model.model_.save(tmp_path / "model.fedmf")
    again = Posterior.load(tmp_path / "model.fedmf")
    assert (again.predict_all([0]) == model.model_.predict_all([0])).all()
