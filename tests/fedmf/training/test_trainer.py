from dataclasses import replace

import numpy as np
import pytest

import fedmf.data.blocks
from fedmf.aggregate import FloatSum, PlainSum, RoundAborted, SecAggSum
from fedmf.aggregate.vectors import Vectors
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.models import FedALS, FedMF
from fedmf.training import Schedule, Trainer, rmse
from fedmf.training.schedule import Draw
from own_step import own_step
from watched_sum import Watched

PAPER = FedMF(k=4, reg=0.05, rate=0.005, update="paper", spread=0.3, mean=4.0, min_raters=1)
RIDGE = FedMF(k=3, mean=3.5)
BIASED = FedMF(k=3, biases=True)


@pytest.fixture(scope="module")
def split():
    return random_split(simulate(24, 40, 500, seed=5), seed=1)


@pytest.mark.parametrize("model", [PAPER, RIDGE, BIASED])
@pytest.mark.parametrize("cohort", [pytest.param(None, marks=pytest.mark.large), 14])
def test_plain_and_secure_training_are_the_same(split, model, cohort):
    """Same seed, cohorts and dropouts: the same integers, and so the same model."""
    settings = {"rounds": 3, "seed": 8, "cohort": cohort, "dropout": 0.2}
    secure = Trainer(model, SecAggSum(threshold=cohort and 8), **settings)
    plain = Trainer(model, PlainSum(), **settings)
    secure.fit(split.train, split.test)
    plain.fit(split.train, split.test)
    assert [record.aborted for record in secure.history_] == [None] * 3
    for name in ("digest", "count_digest", "survivors", "test_rmse", "clipped"):
        found, meant = ([getattr(one, name) for one in t.history_] for t in (secure, plain))
        assert found == meant
    assert len({record.digest for record in plain.history_}) == 3
    np.testing.assert_array_equal(secure.model_.item_factors, plain.model_.item_factors)
    np.testing.assert_array_equal(secure.model_.user_factors, plain.model_.user_factors)


def test_paper_round_equals_centralised_gradient_descent(split):
    """All users' eq. 7 and the sum of eq. 6, as one computation; p₀ and q₀ are ones."""
    train = split.train
    trainer = Trainer(PAPER, PlainSum(clip=64.0, fractional_bits=40), rounds=1, seed=2)
    trainer.fit(train)
    p, q = PAPER.initial(train, Schedule(seed=2).rng(Draw.START))
    ratings, known = np.zeros((24, 40)), np.zeros((24, 40))
    ratings[train.users, train.items] = train.values
    known[train.users, train.items] = 1
    e = known * (ratings - p @ q.T)
    p -= 0.005 * (0.05 * known.sum(1)[:, None] * (p - 1) - e @ q)
    e = known * (ratings - p @ q.T)
    q -= 0.005 * (0.05 * known.sum(0)[:, None] * (q - 1) - e.T @ p)
    np.testing.assert_allclose(trainer.model_.user_factors, p, atol=1e-10)
    np.testing.assert_allclose(trainer.model_.item_factors, q, atol=1e-10)
    record = trainer.history_.last
    assert record.train_rmse == pytest.approx(rmse(ratings[known > 0], (p @ q.T)[known > 0]))
    assert record.test_rmse is None
    assert record.count_digest is None


@pytest.mark.parametrize("model", [PAPER, RIDGE])
@pytest.mark.parametrize("cohort", [None, 14])
def test_blocks_of_any_size_give_the_same_integers(split, model, cohort, monkeypatch):
    """One by one is how private sums see the users; PlainSum by itself takes blocks."""

    class OneByOne(PlainSum):
        def _add(self, vectors, *others):
            alone = Vectors(vectors, vectors.__getitem__, vectors.shape)
            return super()._add(alone, *others)

    found = []
    settings = {"rounds": 3, "seed": 8, "cohort": cohort, "dropout": 0.2}
    for elements, aggregation in ((1 << 17, OneByOne()), (1, PlainSum()), (200, PlainSum())):
        monkeypatch.setattr(fedmf.data.blocks, "ELEMENTS", elements)
        trainer = Trainer(model, aggregation, **settings).fit(split.train, split.test)
        found.append(
            [(one.digest, one.count_digest, one.test_rmse) for one in trainer.history_]
        )
    assert found[0] == found[1] == found[2]


@pytest.mark.check(31)
def test_check31_sampled_cohort_is_counted_in_each_round(split):
    """Three raters among all users may be one in the cohort: each round counts its own."""
    watched = Watched()
    Trainer(RIDGE, watched, rounds=2, cohort=9).fit(split.train)
    assert [kind for kind, *_ in watched.calls] == ["count", "sum"] * 2
    for (_, counting, *_), (_, summing, *_) in zip(
        watched.calls[::2], watched.calls[1::2], strict=True
    ):
        assert set(counting) == set(summing)
        few = sum(counting.values()) < 3
        total = sum(np.abs(vector) for vector in summing.values()).reshape(40, 3)
        assert few.any()
        assert (total[few] == 0).all()


def test_aborted_round_changes_nothing_and_continues(split):
    watched = Watched(None, RoundAborted("too few"))
    trainer = Trainer(PAPER, watched, rounds=3).fit(split.train, split.test)
    first, second, third = trainer.history_
    assert (first.aborted, second.aborted, third.aborted) == (None, "too few", None)
    assert second.test_rmse == first.test_rmse != third.test_rmse
    assert second.survivors == 0
    assert second.digest is None
    twice = Trainer(PAPER, Watched(), rounds=2).fit(split.train, split.test)
    np.testing.assert_array_equal(trainer.model_.item_factors, twice.model_.item_factors)


def test_training_whose_sums_are_all_aborted_raises(split):
    trainer = Trainer(PAPER, Watched(*(RoundAborted("too few"),) * 3), rounds=3)
    with pytest.raises(RoundAborted):
        trainer.fit(split.train, split.test)
    assert not hasattr(trainer, "history_")


def test_aborted_count_is_repeated(split):
    watched = Watched(RoundAborted("too few"))
    trainer = Trainer(RIDGE, watched, rounds=2).fit(split.train)
    assert [kind for kind, *_ in watched.calls] == ["count", "count", "sum"]
    first, second = trainer.history_
    assert first.trained_items is None
    assert second.trained_items is not None


def test_dropped_out_users_keep_their_factors(split):
    watched = Watched()
    trainer = Trainer(PAPER, watched, rounds=1, dropout=0.5, seed=3).fit(split.train)
    start, _ = PAPER.initial(split.train, Schedule(seed=3).rng(Draw.START))
    leaving = watched.calls[0][2]
    gone = [user for user, phase in leaving.items() if phase != "unmasking"]
    kept = (trainer.model_.user_factors == start).all(axis=1)
    assert sorted(gone) == np.flatnonzero(kept).tolist()
    assert trainer.history_.last.survivors == 24 - len(gone)


def test_users_outside_the_cohort_solve_for_their_factors(split):
    """Exact local solves find p_u from Q without a message."""
    trainer = Trainer(RIDGE, rounds=1, cohort=5).fit(split.train)
    factors = trainer.model_
    for user in range(24):
        items, values = split.train.of_user(user)
        everything = np.ones(factors.n_items, dtype=bool)
        solved, _ = own_step(
            RIDGE, factors.item_factors, np.zeros(3), items, values, everything
        )
        np.testing.assert_allclose(factors.user_factors[user], solved)


def test_counts_and_sums_have_distinct_dropouts(split):
    """The step is divided by two standard deviations above count / share."""
    watched, settings = Watched(), {"rounds": 1, "dropout": 0.4, "seed": 6}
    trainer = Trainer(RIDGE, watched, **settings).fit(split.train)
    everyone = np.arange(24)
    (_, ones, left_count, _), (_, sent, left_sum, _) = watched.calls
    assert left_count == trainer.schedule.dropouts(Draw.COUNT_DROPOUTS, 1, everyone)
    assert left_sum == trainer.schedule.dropouts(Draw.DROPOUTS, 1, everyone)
    counted, summed = (
        [user for user in range(24) if left.get(user) in (None, "unmasking")]
        for left in (left_count, left_sum)
    )
    share = len(counted) / 24
    assert 0 < share < 1
    n = sum(ones[user] for user in counted)
    bound = np.maximum((n + 2 * np.sqrt(n * (1 - share))) / share, 1)
    total = sum(np.rint(sent[user] * 2**16) for user in summed).reshape(40, 3) / 2**16
    _, start = RIDGE.initial(split.train, Schedule(seed=6).rng(Draw.START))
    meant = start - RIDGE.rate * total / bound[:, None]
    np.testing.assert_allclose(trainer.model_.item_factors, meant, atol=1e-12)


STEPS = FedMF(k=4, reg=0.05, rate=0.005, update="paper", spread=0.3, min_raters=1)


def test_settings_out_of_range_raise(split):
    with pytest.raises(SettingError, match="cohort = 25"):
        Trainer(cohort=25).fit(split.train)
    with pytest.raises(SettingError):
        Trainer().fit(split.train, simulate(24, 41, 500))
    for ids in ({"user_ids": np.arange(24)}, {"item_ids": np.arange(40)}):
        with pytest.raises(SettingError):
            Trainer().fit(split.train, replace(split.test, **ids))


@pytest.mark.parametrize("aggregation", [PlainSum(), FloatSum()], ids=repr)
@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (FedMF(rate=1e308), r"rate = 1e\+308 "),
        (FedMF(rate=1e308, biases=True), r"rate = 1e\+308 "),
        (FedMF(spread=1e308), r"rate = 0\.45 .*spread = 1e\+308 "),
        (replace(STEPS, spread=1e200), r"rate = 0\.005 .*spread = 1e\+200 "),
        (FedALS(spread=1e308), r"reg = 0\.135 .*spread = 1e\+308 "),
    ],
    ids=repr,
)
def test_divergence_raises_without_warnings(split, model, remedy, aggregation, capfd):
    with pytest.raises(SettingError, match=remedy):
        Trainer(model, aggregation, rounds=9).fit(split.train)
    assert capfd.readouterr() == ("", "")


class Overflowing(FedMF):
    """Its factors are finite, their products are not."""

    def server_step(self, q, total, raters):
        return np.full_like(q, 1e200)

    def find_users(self, q, p, block):
        return np.full_like(p, 1e200)


class Exploding(FedMF):
    """Its items' factors are not finite, and then no user should be asked."""

    def server_step(self, q, total, raters):
        return np.full_like(q, np.inf)

    def find_users(self, q, p, block):
        assert np.isfinite(q).all()
        return p


def test_factors_are_validated_before_their_use(split):
    watched = Watched()
    with pytest.raises(SettingError):
        Trainer(replace(RIDGE, spread=1e308), watched).fit(split.train)
    assert watched.calls == []
    with pytest.raises(SettingError):
        Trainer(Exploding(k=2), rounds=1).fit(split.train)


def test_infinite_errors_are_not_recorded(split):
    with pytest.raises(SettingError):
        Trainer(Overflowing(k=2, min_raters=1000), rounds=1).fit(split.train)


def test_failed_fit_leaves_no_attributes(split):
    def fail(record):
        if failing:
            raise ZeroDivisionError

    failing = False
    trainer = Trainer(RIDGE, rounds=2, callbacks=[fail]).fit(split.train)
    trainer.predict([0], [0])
    failing = True
    with pytest.raises(ZeroDivisionError):
        trainer.fit(split.train)
    with pytest.raises(ModelError):
        trainer.predict([0], [0])
    assert not hasattr(trainer, "history_")


@pytest.mark.parametrize("part", ["train", "test"])
def test_empty_parts_raise_before_any_work(split, part):
    empty = replace(split, **{part: getattr(split, part).take(np.array([], dtype=int))})
    watched = Watched()
    with pytest.raises(DataError, match=part):
        Trainer(RIDGE, watched).fit(empty.train, empty.test)
    assert watched.calls == []
    with pytest.raises(SettingError, match=r"test .*Split"):
        Trainer(RIDGE).fit(split.train, split)
