"""Sampling of a few factors a round: the same posterior distribution, and shorter messages."""

from dataclasses import replace

import numpy as np
import pytest

from fedmf import FedBPMF, PlainSum
from fedmf.aggregate import FloatSum
from fedmf.bayes import gaussian, users
from fedmf.bayes.bpmf import BLOCK, LARGE
from fedmf.bayes.sample import Chain
from fedmf.bayes.steps import Sweeps
from fedmf.bayes.users import message_shape
from fedmf.data import from_triples
from fedmf.data.sets.simulated import simulate
from fedmf.errors import SettingError

K, D = 3, 4
ANY = -1e12, 1e12  # scale of ratings that the model draws
NONE = gaussian.Link.none(0, D), gaussian.Link.none(K, D)
RATINGS = simulate(12, 9, 70, seed=4)


def sweeps(ratings, block, seed=1):
    usual = {"mean": 3.0, "min_raters": 1, "burn_in": 0, "kept": (), "scale": (1, 5)}
    features = np.zeros((ratings.n_items, 0))
    return Sweeps(ratings, None, features, block=block, seed=seed, **usual)


def summed(steps):
    """Return the sum of the messages of all users, without rounding."""
    users = np.arange(steps.ratings.n_users)
    return FloatSum().sum(steps.vectors(users), dropouts={})


@pytest.mark.large
@pytest.mark.parametrize("block", [1, 2, K])
def test_columns_are_drawn_from_their_conditional_distribution(block):
    """Sweeps over the items alone have the exact posterior of each row, which is Gaussian.

    The users, their weights, the noise and the prior are fixed.
    """
    draw, noise, rounds = np.random.default_rng(8), 1.7, 4000
    root = draw.normal(size=(D, D))
    prior = gaussian.Prior(draw.normal(size=(9, D)), root @ root.T / 4 + np.eye(D))
    users, weights = draw.normal(size=(12, D)), draw.uniform(0.5, 2.0, size=12)
    around = gaussian.Prior(np.zeros(D), np.eye(D))
    chain = Chain(users, np.zeros((9, D)), weights, noise, around, around, *NONE)
    training, found = sweeps(RATINGS, block), []
    for number in range(1, rounds + 1):
        steps = training.local_steps(replace(chain, round=number), None)
        steps.drawn = users, weights
        table = 16 * noise * summed(steps).sum.reshape(steps.shape)[:9]
        sums = np.split(table, [-block - 1], axis=1)
        items = gaussian.draw_columns(draw, chain.items, steps.columns, prior, *sums)
        others = np.setdiff1d(np.arange(D), steps.columns)
        assert (items[:, others] == chain.items[:, others]).all()
        chain = replace(chain, items=items)
        found.append(items)
    z = np.column_stack((users[:, :K], np.ones(12)))
    for i in range(9):
        whose = RATINGS.users[RATINGS.items == i]
        rest = RATINGS.values[RATINGS.items == i] - 3.0 - users[whose, K]
        weighed = noise * weights[whose, None] * z[whose]
        precision = prior.precision + weighed.T @ z[whose]
        shift = prior.precision @ prior.mean[i] + weighed.T @ rest
        apart = np.array(found)[:, i] - np.linalg.solve(precision, shift)
        units = apart @ np.linalg.cholesky(precision)
        least = 5 / np.sqrt(rounds * block / K)  # standard errors, for dependent draws
        np.testing.assert_allclose(units.mean(axis=0), 0.0, atol=least)
        np.testing.assert_allclose(np.cov(units.T), np.eye(D), atol=1.5 * least)


@pytest.mark.large
@pytest.mark.parametrize("block", [1, K])
def test_sweeps_leave_the_joint_distribution_as_it_is(block):
    """Unknowns from their priors keep them while ratings and unknowns are drawn in turn.

    Geweke, "Getting it right", 2004. Each of the chains is short and independent, so that the
    errors of the means are known. χ² has D degrees of freedom for each row and centre, and a
    degree for each rating.
    """
    who, what = np.repeat(np.arange(5), 3), (np.arange(15) // 3 + 2 * np.arange(15)) % 5
    ratings, found = from_triples(who, what, np.zeros(15), scale=ANY), []
    assert np.unique(ratings.items).size == 5
    for seed in range(500):
        draw = np.random.default_rng(seed)
        chain = from_priors(draw, 5, 5)
        for number in range(1, 9):
            spread = draw.normal(size=15) / precisions(chain, ratings) ** 0.5
            now = ratings.with_values(means(chain, ratings) + spread, ANY)
            training = sweeps(now, block, seed)
            steps = training.local_steps(chain, None)
            chain = training.round_over(
                training.server_step(chain, steps, summed(steps)), number
            )
        errors = now.values - means(chain, ratings)
        sides = (chain.users, chain.user_prior), (chain.items, chain.item_prior)
        found.append(
            [
                *(sizes(rows, prior).mean() for rows, prior in sides),
                *(2 * sizes(np.zeros((1, D)), prior)[0] for _, prior in sides),
                6 * np.exp(-chain.noise),
                D * chain.weights.mean(),
                (precisions(chain, ratings) * errors**2).mean(),
            ]
        )
    apart = np.mean(found, axis=0) - [D, D, D, D, 3.0, D, 1.0]
    assert (np.abs(apart) < 3.5 * np.std(found, axis=0) / np.sqrt(500)).all(), apart


def from_priors(draw, *sizes):
    """Return a state of numbers of users and items, with all unknowns from their priors."""
    zero, none = np.zeros(D), gaussian.Link.none(0, D)
    priors = [gaussian.draw_prior(draw, 0.0, zero, np.zeros((D, D)), none) for _ in sizes]
    tables = []
    for n, one in zip(sizes, priors, strict=True):
        spread = draw.normal(size=(n, D)) @ np.linalg.inv(np.linalg.cholesky(one.precision))
        tables.append(np.ascontiguousarray(one.mean + spread))
    weights = gaussian.draw_weight(draw, np.zeros(sizes[0], dtype=np.int64), np.zeros(sizes[0]))
    return Chain(*tables, weights, gaussian.draw_noise(draw, 0.0, 0.0), *priors, *NONE)


def means(chain, ratings):
    left, right = chain.users[ratings.users], chain.items[ratings.items]
    return 3.0 + left[:, K] + right[:, K] + (left[:, :K] * right[:, :K]).sum(axis=1)


def precisions(chain, ratings):
    return chain.noise * chain.weights[ratings.users]


def sizes(rows, prior):
    """Return (x − μ)ᵀ Λ (x − μ) of each row."""
    return np.einsum("ia,ab,ib->i", rows - prior.mean, prior.precision, rows - prior.mean)


def test_every_factor_is_drawn_once_in_a_cycle():
    training = sweeps(RATINGS, 3)
    for first in (1, 5, 9):
        some = [training._columns(first + place, 10) for place in range(4)]
        assert all(one.size == 4 and one[-1] == 10 and (np.diff(one) > 0).all() for one in some)
        assert set(np.concatenate(some)) == {*range(11)}
    assert training._columns(1, 10).tolist() != training._columns(5, 10).tolist()
    assert sweeps(RATINGS, 10)._columns(7, 10).tolist() == [*range(11)]


def test_message_has_the_factors_of_the_round():
    assert message_shape(20_000, 16, 3) == (20_000 + 43, 14)
    assert message_shape(20_000, 16, 16) == (20_000 + 4, 170)


def test_large_catalogues_are_trained_in_more_rounds_of_fewer_factors():
    assert FedBPMF().plan(LARGE) == (16, 120, 20)
    assert FedBPMF().plan(LARGE + 1) == (BLOCK, 240, 40)
    assert FedBPMF(block=2).plan(9) == (2, 240, 40)
    assert FedBPMF(block=99, rounds=30).plan(9) == (16, 30, 5)
    assert FedBPMF(k=2).plan(LARGE + 1) == (2, 120, 20)
    assert FedBPMF(block=16, burn_in=9).plan(LARGE + 1) == (16, 120, 9)
    with pytest.raises(SettingError):
        FedBPMF(burn_in=120).plan(LARGE)
    with pytest.raises(SettingError):
        FedBPMF(block=0)


def test_few_fractional_bits_give_nearly_the_same_model():
    ratings = simulate(150, 100, 4000, seed=2)
    some, more = (
        FedBPMF(PlainSum(fractional_bits=bits), k=3, block=1, rounds=40).fit(ratings, ratings)
        for bits in (10, 24)
    )
    assert some.history_.last.train_rmse == pytest.approx(
        more.history_.last.train_rmse, abs=0.02
    )


def test_server_has_the_sums_of_the_users_moments(monkeypatch):
    """Σ y yᵀ and Σ y with y = (x, g), the number of ratings and Σ w e²."""
    chain, found = from_priors(np.random.default_rng(1), 12, 9), []
    own, real = np.random.default_rng(2).normal(size=(12, K)), gaussian.draw_linked_prior

    def linked(rng, n, *sums):
        found.append((n, *sums[:2]))
        return real(rng, n, *sums)

    monkeypatch.setattr(gaussian, "draw_linked_prior", linked)
    monkeypatch.setattr(gaussian, "draw_noise", lambda rng, *sums: found.append(sums) or 1.0)
    training = sweeps(RATINGS, 2)
    steps = training.local_steps(chain, None)
    steps._profiles = own
    training.server_step(chain, steps, summed(steps))
    (users, weights), (noise, (n, total, products)) = steps.drawn, found
    y = np.concatenate((users, own), axis=1)
    errors = RATINGS.values - means(replace(chain, users=users), RATINGS)
    np.testing.assert_allclose(noise, (70, weights[RATINGS.users] @ errors**2))
    assert n == pytest.approx(12)
    np.testing.assert_allclose(total, y.sum(axis=0))
    np.testing.assert_allclose(products, y.T @ y)


def test_moments_of_large_factors_fit_the_clip(monkeypatch):
    """In a long chain of blocks users' factors may grow; messages are in the prior's units."""
    chain = from_priors(np.random.default_rng(1), 12, 9)
    wide = gaussian.Prior(np.full(D, 3.0), np.diag([1e-3, 1e-3, 1.0, 1.0]))
    chain = replace(chain, user_prior=wide, items=chain.items / 1000)
    training, found = sweeps(RATINGS, 2), []
    for units in (users._units, lambda prior: np.ones(D)):
        monkeypatch.setattr(users, "_units", units)
        steps = training.local_steps(chain, None)
        largest = np.abs(summed(steps).sum).max() / 12
        found.append((largest, training.server_step(chain, steps, summed(steps)).items))
    (small, items), (large, plain) = found
    assert small < 16 < large
    np.testing.assert_allclose(items, plain, rtol=1e-9)
