import numpy as np
import pytest

from fedmf.aggregate import FloatSum, PlainSum
from fedmf.data.blocks import Block
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import SettingError
from fedmf.models import FedALS
from fedmf.models.federated import Raters
from fedmf.training import Schedule, Trainer
from fedmf.training.schedule import Draw

ALS = FedALS(k=3, reg=0.1, mean=3.0, min_raters=1)  # so that p₀ and q₀ are ones


@pytest.fixture(scope="module")
def split():
    return random_split(simulate(24, 40, 500, seed=5), seed=1)


def one_sided(ratings, known, other, start, reg):
    """Return the rows that minimise eq. 2 for a fixed `other`; dense, row by row."""
    found = start.copy()
    for row, (r, rated) in enumerate(zip(ratings, known, strict=True)):
        if rated.any():
            x = other[rated]
            penalty = reg * rated.sum()
            normal = x.T @ x + penalty * np.eye(x.shape[1])
            found[row] = np.linalg.solve(normal, x.T @ r[rated] + penalty)
    return found


def centralised(train, rounds, seed, gone=()):
    """Alternate over the whole matrix; the users `gone` in a round do not move the items."""
    p, q = ALS.initial(train, Schedule(seed=seed).rng(Draw.START))
    ratings = np.zeros((train.n_users, train.n_items))
    known = np.zeros(ratings.shape, dtype=bool)
    ratings[train.users, train.items] = train.values
    known[train.users, train.items] = True
    for number in range(rounds):
        p = one_sided(ratings, known, q, p, ALS.reg)
        here = known.copy()
        here[list(gone[number]) if gone else []] = False
        q = one_sided(ratings.T, here.T, p, q, ALS.reg)
    return one_sided(ratings, known, q, p, ALS.reg), q


def test_user_sends_moments():
    items, values = np.array([2, 0], dtype=np.int32), np.array([4.0, 1.0])
    q = np.random.default_rng(0).normal(size=(3, 3))
    trained = np.array([True, True, False])
    p, rows = ALS.local_steps(q, np.zeros((1, 3)), Block.of_one(items, values), trained)
    (x,) = p
    outer = np.outer(x, x) + 0.1 * np.eye(3)
    sent = rows.dense().reshape(3, ALS.width)
    assert ALS.width == 9
    lower = [outer[a, b] for a in range(3) for b in range(a + 1)]
    np.testing.assert_allclose(sent[0], [*lower, *(1.0 * x + 0.1)])
    assert not sent[1:].any()


def test_rounds_are_those_of_centralised_least_squares(split):
    trainer = Trainer(ALS, FloatSum(), rounds=4, seed=2).fit(split.train, split.test)
    p, q = centralised(split.train, 4, seed=2)
    np.testing.assert_allclose(trainer.model_.user_factors, p, atol=1e-9)
    np.testing.assert_allclose(trainer.model_.item_factors, q, atol=1e-9)
    fixed = Trainer(ALS, PlainSum(fractional_bits=30), rounds=4, seed=2).fit(split.train)
    np.testing.assert_allclose(fixed.model_.item_factors, q, atol=1e-6)
    assert sum(record.clipped for record in fixed.history_) == 0


def test_step_and_regularisation_exclude_dropouts(split):
    """Dropouts are left out of the step and of its regularisation."""
    trainer = Trainer(ALS, FloatSum(), rounds=3, seed=2, dropout=0.4).fit(split.train)
    everyone = np.arange(24)
    leaving = (trainer.schedule.dropouts(Draw.DROPOUTS, n, everyone) for n in (1, 2, 3))
    gone = [[user for user, when in one.items() if when != "unmasking"] for one in leaving]
    assert all(gone)
    p, q = centralised(split.train, 3, seed=2, gone=gone)
    np.testing.assert_allclose(trainer.model_.item_factors, q, atol=1e-8)
    np.testing.assert_allclose(trainer.model_.user_factors, p, atol=1e-8)


def test_items_with_few_raters_are_not_trained():
    assert FedALS().needs_counts
    assert not ALS.needs_counts
    raters = Raters(np.array([2, 3]), 1.0)
    assert FedALS().trained_items(raters, 2).tolist() == [False, True]


def test_clipped_moments_raise(split):
    with pytest.raises(SettingError, match=r"\d+ elements .* clip"):
        Trainer(ALS, PlainSum(clip=2.0), rounds=3).fit(split.train)
    Trainer(ALS, PlainSum(clip=64.0), rounds=3).fit(split.train)


@pytest.mark.parametrize("reg", [1e-5, 1e-9])
def test_regularisation_below_the_rounding_raises(split, reg):
    """Below the resolution of 2^-16; floating point still has it."""
    model = FedALS(k=5, reg=reg, min_raters=1)
    with pytest.raises(SettingError, match=f"reg = {reg}"):
        Trainer(model, PlainSum(clip=2.0**20), rounds=10).fit(split.train)
    Trainer(model, FloatSum(), rounds=10).fit(split.train)


def test_row_with_squares_rounded_to_zero_is_not_unrated():
    """A row whose squares are all rounded to zero is not taken for unrated."""
    with pytest.raises(SettingError):
        FedALS(k=2).server_step(np.ones((1, 2)), np.array([[0.0, 0.0, 1.0, 2.0, 2.0]]), None)
