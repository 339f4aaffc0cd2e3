"""Draws of the sampler against the distributions that they are drawn from."""

import numpy as np
import pytest

from fedmf.bayes import gaussian
from fedmf.bayes.users import user_draws
from fedmf.data.blocks import Block
from fedmf.errors import SettingError
from fedmf.models.moments import triangle

NONE = gaussian.Link.none(0, 2)


@pytest.fixture
def rng():
    """The same draws whatever test ran before."""
    return np.random.default_rng(5)


def test_draws_have_the_mean_and_covariance_of_the_conditional(rng):
    root = rng.normal(size=(3, 3))
    precision = root @ root.T + np.eye(3)
    shift = np.array([1.0, -2.0, 0.5])
    n = 40_000
    own = precision[triangle(3)][None]
    drawn = gaussian.draws(
        np.tile(own, (n, 1)), np.tile(shift, (n, 1)), rng.normal(size=(n, 3))
    )
    covariance = np.linalg.inv(precision)
    np.testing.assert_allclose(drawn.mean(axis=0), covariance @ shift, atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.02)
    none = gaussian.draws(own, shift[None], np.zeros((1, 3)))
    np.testing.assert_allclose(none[0], covariance @ shift)


def test_draw_from_no_positive_definite_precision_raises():
    with pytest.raises(SettingError):
        gaussian.draws(np.array([[-1.0, 0.0, -1.0]]), np.zeros((1, 2)), np.zeros((1, 2)))


def test_users_are_drawn_from_their_ratings(rng):
    """With zero noise a draw is the ridge solution on the user's own items."""
    items = rng.normal(size=(5, 3))
    block = Block.of_one(np.array([0, 2, 4], dtype=np.int32), np.array([1.0, 4.0, 5.0]))
    prior = gaussian.Prior(np.array([0.1, 0.2, -0.3]), np.diag([2.0, 3.0, 4.0]))
    own = prior.mean[None], prior.precision
    drawn = user_draws(block, items, 3.0, np.array([2.5]), *own, np.zeros((1, 3)))
    x = np.column_stack((items[[0, 2, 4], :2], np.ones(3)))
    rest = block.values - 3.0 - items[[0, 2, 4], 2]
    normal = prior.precision + 2.5 * x.T @ x
    meant = np.linalg.solve(normal, prior.precision @ prior.mean + 2.5 * x.T @ rest)
    np.testing.assert_allclose(drawn[0], meant)


def test_user_without_ratings_is_drawn_from_the_prior():
    block = Block.of_one(np.zeros(0, dtype=np.int32), np.zeros(0))
    prior = gaussian.Prior(np.array([0.5, -1.0]), np.diag([4.0, 9.0]))
    own = prior.mean[None], prior.precision
    drawn = user_draws(block, np.ones((3, 2)), 3.0, np.ones(1), *own, np.ones((1, 2)))
    np.testing.assert_allclose(drawn[0], [0.5 + 1 / 2, -1.0 + 1 / 3])


def test_prior_finds_the_rows_it_was_given(rng):
    root = np.array([[1.0, 0.0], [0.8, 0.5]])
    rows = rng.normal(size=(5000, 2)) @ root.T + [1.0, -2.0]
    found = [
        gaussian.draw_prior(rng, 5000, rows.sum(axis=0), rows.T @ rows, NONE) for _ in range(50)
    ]
    mean = np.mean([one.mean for one in found], axis=0)
    covariance = np.linalg.inv(np.mean([one.precision for one in found], axis=0))
    np.testing.assert_allclose(mean, [1.0, -2.0], atol=0.05)
    np.testing.assert_allclose(covariance, root @ root.T, atol=0.06)
    assert np.std([one.mean[0] for one in found]) > 0.005  # drawn, not estimated


def test_prior_of_no_rows_is_the_hyper_prior(rng):
    """The mean of the Wishart distribution with ν = d and W = I is d · I.

    Of these draws one is singular but for 10⁻¹².
    """
    found = [
        gaussian.draw_prior(rng, 0.0, np.zeros(2), np.zeros((2, 2)), NONE) for _ in range(1500)
    ]
    average = np.mean([one.precision for one in found], axis=0)
    np.testing.assert_allclose(average, 2 * np.eye(2), atol=0.2)


def test_mean_user_is_expected_to_rate_the_mean_of_all_ratings(rng):
    """Five ratings of the first item and one of the last: Σ n_i (p̄ · q_i + b̄ + b_i) = 0."""
    items, raters = rng.normal(size=(3, 3)), np.array([5.0, 0.0, 1.0])
    prior = gaussian.Prior(np.array([0.3, -0.2, 7.0]), np.diag([1.0, 2.0, 3.0]))
    rated = prior.rated(items, raters)
    assert rated.mean[:2].tolist() == [0.3, -0.2]
    assert raters @ (items[:, :2] @ rated.mean[:2] + items[:, 2] + rated.mean[2]) == (
        pytest.approx(0.0, abs=1e-12)
    )
    assert (rated.precision == prior.precision).all()


def test_noise_and_weight_have_the_means_of_their_posteriors(rng):
    noises = [gaussian.draw_noise(rng, 1000.0, 250.0) for _ in range(2000)]
    assert np.mean(noises) == pytest.approx(501 / 126, rel=0.01)
    weights = gaussian.draw_weight(rng, np.full(4000, 20), np.full(4000, 10.0))
    assert np.mean(weights) == pytest.approx((gaussian.NU + 20) / (gaussian.NU + 10), rel=0.02)


def test_linked_prior_recovers_the_line_from_sums(rng):
    """With features off the centre, of unequal spread, and one of a single value."""
    centre = np.array([5.0, 1.0, 2.0])
    apart = rng.normal(size=(4000, 3)) * [1.0, 0.1, 0.0]
    weights = np.array([[1.0, -1.0], [0.0, 2.0], [0.0, 0.0]])
    rows = apart @ weights + [0.3, -0.2] + 0.1 * rng.normal(size=(4000, 2))
    y = np.concatenate((rows, apart + centre), axis=1)
    link = gaussian.Link.none(3, 2)
    for _ in range(5):
        prior, link = gaussian.draw_linked_prior(rng, 4000.0, y.sum(axis=0), y.T @ y, link)
    np.testing.assert_allclose(link.weights, weights, atol=0.1)
    np.testing.assert_allclose(prior.mean + centre @ link.weights, [0.3, -0.2], atol=0.02)
    np.testing.assert_allclose(np.linalg.inv(prior.precision), 0.01 * np.eye(2), atol=0.002)


def test_linked_prior_keeps_its_prior_when_rows_are_drawn_anew(rng):
    """Rows from the link and the link from the rows: λ must stay ~ Gamma(1, 1).

    Geweke, "Getting it right: joint distribution tests of posterior simulators", 2004.
    """
    features = rng.normal(size=(6, 3))
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    prior, link, found = gaussian.Prior(np.zeros(2), np.eye(2)), gaussian.Link.none(3, 2), []
    for _ in range(1500):
        root = np.linalg.cholesky(np.linalg.inv(prior.precision))
        rows = prior.mean + features @ link.weights + rng.normal(size=(6, 2)) @ root.T
        y = np.concatenate((rows, features), axis=1)
        prior, link = gaussian.draw_linked_prior(rng, 6.0, y.sum(axis=0), y.T @ y, link)
        found.append((np.log(link.precision), np.linalg.slogdet(prior.precision)[1]))
    # the means of log λ, and of log |Λ| = log χ²(2) + log χ²(1)
    np.testing.assert_allclose(np.mean(found, axis=0), [-0.577, -1.154], atol=1.2)


def test_linked_prior_without_features_keeps_its_link(rng):
    rows = np.concatenate((rng.normal(size=(50, 2)), np.zeros((50, 1))), axis=1)
    link = gaussian.Link.none(1, 2)
    prior, same = gaussian.draw_linked_prior(rng, 50.0, rows.sum(axis=0), rows.T @ rows, link)
    assert same is link
    assert np.isfinite(prior.mean).all()


def test_linked_prior_bears_sums_that_rounding_made_indefinite(rng):
    """Equal features, whose weights cancel: an error of 1e-3 is that of millions."""
    rows = np.concatenate(
        (rng.normal(size=(50, 1)), rng.normal(size=(50, 1)) @ np.ones((1, 2))), 1
    )
    rounded = rows.T @ rows - 1e-3 * np.eye(3)
    link = gaussian.Link(np.array([[1e5], [-1e5]]), 1.0)
    prior, link = gaussian.draw_linked_prior(rng, 50.0, rows.sum(axis=0), rounded, link)
    assert np.isfinite(prior.mean).all()
    assert np.isfinite(link.weights).all()
