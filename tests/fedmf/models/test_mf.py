import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf.data import load
from fedmf.errors import SettingError
from fedmf.models import FedMF
from fedmf.models.federated import Raters
from own_step import own_step

TWO = np.array([True, True])
ZERO = FedMF(k=2, reg=0.0, start="zero-mean")


def small(seed, n_u=5, k=3, m=7):
    rng = np.random.default_rng(seed)
    items = rng.choice(m, n_u, replace=False).astype(np.int32)
    return rng.normal(size=(m, k)), rng.normal(size=k), items, rng.uniform(1, 5, n_u)


def test_paper_step_with_biases_is_as_by_hand():
    """One user, one item, one factor, λ = .5, γ = .1: r = 5, p = (1, 1, 1), q = (1, 2, 1).

    r̂ = b_i + q p + b_u = 1 + 2 + 1, e = 1. p ← 1 − .1 · (.5 − 2) = 1.15, b_u ← 1 − .1 ·
    (.5 − 1) = 1.05; then e = 5 − 1 − 2.3 − 1.05 = .65, and the item's gradients are
    .5 · 1 − .65 for b_i and .5 · 2 − .65 · 1.15 for q_i.
    """
    model = FedMF(
        k=1, reg=0.5, rate=0.1, update="paper", start="zero-mean", min_raters=1, biases=True
    )
    q, p_u = np.array([[1.0, 2.0, 1.0]]), np.ones(3)
    item, trained = np.array([0], dtype=np.int32), np.array([True])
    p_u, rows = own_step(model, q, p_u, item, np.array([5.0]), trained)
    np.testing.assert_allclose(p_u, [1.0, 1.15, 1.05])
    np.testing.assert_allclose(rows.dense(), [-0.15, 0.2525])
    moved = model.server_step(q, rows.dense().reshape(1, 2), None)
    np.testing.assert_allclose(moved, [[1.015, 1.97475, 1.0]])


@given(st.integers(0, 1000), st.sampled_from([1, 2, 5]), st.sampled_from([0.0, 0.3]))
def test_ridge_with_biases_is_ridge_with_an_intercept(seed, n_u, reg):
    """On what b_i and p₀ leave of the ratings; without λ the solution nearest to p₀."""
    q, p_u, items, values = small(seed, n_u, k=5)
    q[:, 4], p_u[0] = 1.0, 1.0
    model = FedMF(k=3, reg=reg, biases=True, mean=3.0)
    found, _ = own_step(model, q, p_u, items, values, np.ones(7, dtype=bool))
    start = np.array([1.0, 1.0, 1.0, 0.0])  # the bias of the user shrinks to 0
    design = np.vstack((q[items, 1:], np.sqrt(reg * n_u) * np.eye(4)))
    targets = np.concatenate((values - q[items, 0] - q[items, 1:] @ start, np.zeros(4)))
    assert found[0] == 1.0
    meant = start + np.linalg.lstsq(design, targets)[0]
    np.testing.assert_allclose(found[1:], meant, atol=1e-6)


def loss(model, q, p_u, items, values):
    """Return the user's part of eq. 2, as the stepwise eq. 3 and 4 regularise it."""
    rated, away = q[items], model.start == "neutral"
    centre = np.sqrt(model.mean / 3) if away else 0.0
    squares = ((rated - centre) ** 2).sum() + items.size * ((p_u - centre) ** 2).sum()
    return 0.5 * ((values - rated @ p_u) ** 2).sum() + 0.5 * model.reg * squares


@given(st.integers(0, 1000), st.sampled_from(["zero-mean", "neutral"]))
def test_gradients_are_those_of_the_loss(seed, start):
    """η_ui and the step of p_u against central differences of eq. 2."""
    q, p_u, items, values = small(seed)
    model = FedMF(k=3, reg=0.3, rate=0.01, update="paper", start=start, mean=3.8, min_raters=1)
    h = 1e-6
    numeric = np.zeros(3)
    for j, unit in enumerate(np.eye(3) * h):
        numeric[j] = loss(model, q, p_u + unit, items, values)
        numeric[j] -= loss(model, q, p_u - unit, items, values)
    moved, rows = own_step(model, q, p_u, items, values, np.ones(7, dtype=bool))
    np.testing.assert_allclose(moved, p_u - 0.01 * numeric / (2 * h), atol=1e-6)
    for index in np.ndindex(q.shape):
        shifted = np.zeros_like(q)
        shifted[index] = h
        above = loss(model, q + shifted, moved, items, values)
        below = loss(model, q - shifted, moved, items, values)
        slope = (above - below) / (2 * h)
        assert rows.dense().reshape(q.shape)[index] == pytest.approx(slope, abs=1e-5)


@given(st.integers(0, 1000), st.sampled_from([1, 2, 5]))
def test_ridge_solves_the_normal_equations(seed, n_u):
    q, p_u, items, values = small(seed, n_u)
    for model, centre in (
        (FedMF(k=3, reg=0.3, mean=2.7), np.sqrt(0.9)),
        (FedMF(k=3, reg=0.3, start="zero-mean"), 0.0),
    ):
        solved, _ = own_step(model, q, p_u, items, values, np.ones(7, dtype=bool))
        left = q[items].T @ q[items] @ solved + 0.3 * n_u * (solved - centre)
        np.testing.assert_allclose(left, q[items].T @ values, atol=1e-9)


def test_ridge_without_penalty_and_few_ratings_still_solves():
    """Ridge without regularisation and too few ratings still solves."""
    q, items = np.array([[1.0, 0.0]]), np.zeros(1, dtype=np.int32)
    for model, meant in ((FedMF(k=2, reg=0.0, mean=2.0), 1.0), (ZERO, 0.0)):
        solved, _ = own_step(model, q, np.zeros(2), items, np.array([3.0]), TWO[:1])
        np.testing.assert_allclose(solved, [3.0, meant])


def test_ridge_steps_divide_by_raters_and_skip_unrated():
    """Ridge steps divide by the raters and leave the unrated alone."""
    model = FedMF(k=1, rate=0.5)
    q, total = np.array([[1.0], [2.0], [3.0]]), np.array([[4.0], [3.0], [0.0]])
    moved = model.server_step(q, total, Raters(np.array([4, 3, 0]), 1.0))
    np.testing.assert_allclose(moved, [[0.5], [1.5], [3.0]])
    with pytest.raises(SettingError, match="update = 'ridge' "):
        model.server_step(q, total, None)


def test_count_that_missed_users_is_scaled_to_all_raters():
    """Otherwise a step over twice the counted raters would be twice too long."""
    assert Raters(np.array([0, 1, 9]), 1.0).bound.tolist() == [1.0, 1.0, 9.0]
    np.testing.assert_allclose(Raters(np.array([0, 16]), 0.75).bound, [1.0, 20 / 0.75])
    rng = np.random.default_rng(0)
    for n_i, share in ((6, 0.9), (20, 0.6), (200, 0.4)):
        counts = rng.binomial(n_i, share, size=10_000)
        assert (Raters(counts, share).bound < 0.8 * n_i).mean() < 0.02


@pytest.mark.parametrize("update", ["paper", "ridge"])
def test_user_without_ratings_keeps_factors_and_sends_zeros(update):
    """A user without ratings keeps their factors and sends zeros."""
    q, p_u, _, _ = small(0)
    nothing = np.array([], dtype=np.int32)
    model = FedMF(k=3, update=update)
    moved, rows = own_step(model, q, p_u, nothing, np.array([]), np.ones(7, dtype=bool))
    np.testing.assert_array_equal(moved, p_u)
    np.testing.assert_array_equal(rows.dense(), np.zeros(21))


@pytest.mark.check(31)
def test_check31_items_with_few_raters_send_zeros():
    q, p_u, items, values = small(2, n_u=7)
    raters = Raters(np.array([0, 1, 2, 3, 4, 9, 1]), 1.0)
    model = FedMF(k=3, min_raters=3)
    trained = model.trained_items(raters, 7)
    assert trained.tolist() == [False, False, False, True, True, True, False]
    _, rows = own_step(model, q, p_u, items, values, trained)
    sent = rows.dense().reshape(7, 3)
    assert (sent[~trained] == 0).all()
    assert (sent[trained] != 0).all()


@pytest.mark.check(31)
def test_check31_counting_is_needed_iff_items_may_be_left_out():
    """Counting is needed exactly where items may be left out."""
    assert FedMF(update="paper", min_raters=2).needs_counts
    assert not FedMF(update="paper", min_raters=1).needs_counts
    assert FedMF().min_raters >= 3
    assert FedMF(update="paper", min_raters=1).trained_items(None, 4).all()


def test_starts_are_zero_mean_or_neutral():
    ratings = load("simulated")
    p, q = FedMF(k=10, start="zero-mean", spread=0.3).initial(ratings, np.random.default_rng(1))
    assert p.shape == (ratings.n_users, 10)
    assert q.shape == (ratings.n_items, 10)
    assert abs(q.mean()) < 0.02
    assert q.std() == pytest.approx(0.3, rel=0.05)
    for mean in (None, 4.2):
        model = FedMF(k=10, start="neutral", spread=0.01, mean=mean)
        p, q = model.initial(ratings, np.random.default_rng(1))
        first = p @ q.T
        assert first.mean() == pytest.approx(mean or 3.5, abs=0.02)
        assert first.std() < 0.1


def test_model_at_mean_shrinks_to_that_prediction():
    """The products of the rows to which λ shrinks; biases shrink to zero."""
    assert FedMF().needs_mean
    assert not FedMF(start="zero-mean").needs_mean
    for model in (FedMF(k=5), FedMF(k=5, biases=True)):
        known = model.at_mean(4.1)
        assert not known.needs_mean
        assert known.centre @ known.centre == pytest.approx(4.1)
        assert (known.centre == 0).sum() == 2 * model.biases
    assert not FedMF().at_mean(-0.1).centre.any()
    assert not FedMF(start="zero-mean", mean=3.0).centre.any()


def test_users_with_infinite_solutions_have_no_factors(capfd):
    for q in (np.full((2, 2), np.inf), np.array([[np.nan, 1.0], [1.0, 1.0]])):
        with np.errstate(all="ignore"):  # as the trainer has it; compiled steps warn of nothing
            items = np.arange(2, dtype=np.int32)
            found, _ = own_step(FedMF(k=2), q, np.ones(2), items, np.ones(2), TWO)
        assert np.isnan(found).all()
    assert capfd.readouterr() == ("", "")
