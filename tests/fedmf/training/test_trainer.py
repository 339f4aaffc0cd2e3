import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import fedmf.data.blocks
from fedmf.aggregate import FloatSum, PlainSum, RoundAborted, SecAggSum
from fedmf.aggregate.vectors import Vectors
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import ModelError
from fedmf.models import FedMF
from fedmf.training import Schedule, Trainer, rmse
from fedmf.training.schedule import Draw
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


@pytest.mark.parametrize("model", [PAPER, RIDGE])
def test_fixed_point_is_near_to_floats(split, model):
    settings = {"rounds": 5, "seed": 8, "dropout": 0.2}
    floats = Trainer(model, FloatSum(), **settings).fit(split.train, split.test).history_
    for bits, far in ((6, 1e-1), (30, 1e-8)):
        fixed = Trainer(model, PlainSum(fractional_bits=bits), **settings)
        last = fixed.fit(split.train, split.test).history_.last
        assert 0 < abs(last.test_rmse - floats.last.test_rmse) < far
        assert last.count_digest == floats.last.count_digest
        assert last.survivors == floats.last.survivors


def test_memory_does_not_grow_with_the_rounds(split):
    """A round's record is plain numbers and two digests."""

    def peak(rounds):
        tracemalloc.start()
        Trainer(RIDGE, rounds=rounds, dropout=0.1).fit(split.train, split.test)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)  # what is loaded once
    assert peak(50) - peak(5) < 45 * 2000


@pytest.mark.parametrize("model", [replace(PAPER, biases=True), BIASED])
def test_biases_are_learnt_and_constants_are_kept(split, model):
    factors = Trainer(model, rounds=3).fit(split.train).model_
    p, q = factors.user_factors, factors.item_factors
    assert (p[:, 0] == 1).all()
    assert (q[:, -1] == 1).all()
    rated = np.bincount(split.train.items, minlength=40) >= model.min_raters
    assert ((q[:, 0] != 0) == rated).all()
    assert (p[:, -1] != 0).all()
    by_hand = q[7, 0] + p[3, -1] + q[7, 1:-1] @ p[3, 1:-1]
    assert factors.predict(3, 7) == pytest.approx(by_hand)


def test_training_beats_the_mean():
    parts = random_split(simulate(120, 80, 5000, seed=1), seed=0)
    trainer = Trainer(rounds=25).fit(parts.train, parts.test)
    mean = np.full(parts.test.n_ratings, parts.train.values.mean())
    errors = [record.test_rmse for record in trainer.history_]
    assert errors[-1] < 0.9 * rmse(parts.test.values, mean)
    assert errors[-1] < errors[0]
    found = trainer.predict(parts.test.users, parts.test.items)
    assert rmse(parts.test.values, found) == errors[-1]
    items, _ = trainer.recommend(3, k=5)
    assert items.size == 5
    assert not set(items.tolist()) & set(parts.train.of_user(3)[0].tolist())


def test_seed_determines_the_training(split):
    settings = {"rounds": 2, "cohort": 0.5, "dropout": 0.3}
    one, same, other = (
        Trainer(RIDGE, seed=seed, **settings).fit(split.train).history_ for seed in (1, 1, 2)
    )
    assert [record.digest for record in one] == [record.digest for record in same]
    assert one.last.digest != other.last.digest


@pytest.mark.check(31)
def test_check31_items_with_few_raters_are_never_moved(split):
    """Items with few raters are counted and never moved."""
    train = split.train
    raters = np.bincount(train.items, minlength=40)
    model = replace(RIDGE, min_raters=11)
    rare = raters < 11
    assert 0 < rare.sum() < 40
    watched = Watched()
    trainer = Trainer(model, watched, rounds=3, seed=1).fit(train)
    kinds = [kind for kind, *_ in watched.calls]
    assert kinds == ["count", "sum", "sum", "sum"]
    counted = sum(watched.calls[0][1].values())
    np.testing.assert_array_equal(counted, raters)
    for _, sent, *_ in watched.calls[1:]:
        total = sum(np.abs(vector) for vector in sent.values()).reshape(40, 3)
        assert (total[rare] == 0).all()
        assert (total[~rare] > 0).all()
    _, start = model.initial(train, Schedule(seed=1).rng(Draw.START))
    moved = trainer.model_.item_factors != start
    np.testing.assert_array_equal(moved.any(axis=1), ~rare)
    assert trainer.history_.last.trained_items == 40 - rare.sum()


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


@pytest.mark.check(31)
def test_check31_dropouts_of_the_count_are_not_counted(split):
    watched = Watched()
    trainer = Trainer(RIDGE, watched, rounds=1, dropout=0.5, seed=4).fit(split.train)
    _, sent, leaving, _ = watched.calls[0]
    stay = [user for user in sent if leaving.get(user) in (None, "unmasking")]
    assert len(stay) < len(sent)
    enough = sum(sent[user] for user in stay) >= 3
    assert trainer.history_.last.trained_items == enough.sum()


def test_rounds_have_distinct_sessions(split):
    watched = Watched()
    Trainer(RIDGE, watched, rounds=3, cohort=0.5).fit(split.train)
    sessions = [session for *_, session in watched.calls]
    assert len(set(sessions)) == len(sessions) == 6


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
        solved, _ = RIDGE.local_step(
            factors.item_factors, np.zeros(3), items, values, everything
        )
        np.testing.assert_allclose(factors.user_factors[user], solved)


def test_interrupt_keeps_the_finished_rounds(split):
    whole = Trainer(RIDGE, rounds=2).fit(split.train, split.test)
    watched = Watched(None, None, None, KeyboardInterrupt())
    trainer = Trainer(RIDGE, watched, rounds=9).fit(split.train, split.test)
    assert trainer.history_.interrupted
    assert len(trainer.history_) == 2
    np.testing.assert_array_equal(trainer.model_.item_factors, whole.model_.item_factors)
    early = Trainer(RIDGE, Watched(KeyboardInterrupt())).fit(split.train)
    assert early.history_.interrupted
    with pytest.raises(ModelError):
        _ = early.history_.last


def test_interrupt_in_a_callback_keeps_its_round(split):
    seen = []

    def stop(record):
        seen.append(record)
        raise KeyboardInterrupt

    trainer = Trainer(RIDGE, rounds=9, callbacks=[stop]).fit(split.train)
    assert list(trainer.history_) == seen
    assert len(seen) == 1


def test_history_is_json(split):
    trainer = Trainer(RIDGE, rounds=2, dropout=0.1).fit(split.train, split.test)
    saved = json.loads(json.dumps(trainer.history_.as_dict(), allow_nan=False))
    assert saved["interrupted"] is False
    assert [one["round"] for one in saved["rounds"]] == [1, 2]
    assert saved["rounds"][1]["digest"] == trainer.history_.last.digest


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
