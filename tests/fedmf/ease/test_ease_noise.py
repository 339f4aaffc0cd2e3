"""Messages of DPEase and their norm, and what the server computes from the sum."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedmf.aggregate.noisy import NoisySum
from fedmf.aggregate.vectors import Vectors
from fedmf.ease.shallow import closed_form, denoised, marks, triangle
from fedmf.models.moments import symmetric
from watched_sum import Kept

SCALE = 2.0**16


@given(st.lists(st.integers(0, 59), unique=True), st.sampled_from([0.05, 0.95, 1.0]))
def test_sent_integers_have_at_most_the_norm(items, part):
    """On the grid: rounding to the nearest would exceed the bound."""
    items = np.array(sorted(items), dtype=np.int32)
    for made in (triangle, marks):
        rows = made(items, 60, math.sqrt(part))
        spy = Kept()
        vectors = Vectors([0], lambda user: rows, (rows.n_rows, 1))  # noqa: B023
        aggregation = NoisySum(inner=spy, clip_norm=1.0, noise_multiplier=0.5, where="central")
        aggregation.sum(vectors, dropouts={})
        sent = (spy.sums[0][0] * SCALE).astype(int)
        np.testing.assert_array_equal(sent, spy.sums[0][0] * SCALE)
        assert sum(int(one) ** 2 for one in sent) <= part * 2**32
        count = items.size * (items.size + 1) // 2 if made is triangle else items.size
        assert np.count_nonzero(sent) == count
        assert (sent @ sent) > 0.99 * part * 2**32 or not count


PLACES = np.array([1, 2, 4])


def test_triangle_is_that_of_the_outer_product():
    x = np.zeros(5)
    x[PLACES] = 1
    column = triangle(PLACES, 5, 1.0).dense()
    np.testing.assert_allclose(symmetric(column, 5), np.outer(x, x) / np.sqrt(6))


def test_marks_are_the_rated_items():
    assert np.flatnonzero(marks(PLACES, 6, 1.0).dense()).tolist() == PLACES.tolist()
    np.testing.assert_allclose(marks(PLACES, 6, 0.5).dense()[PLACES], 0.5 / np.sqrt(3))
    assert not marks(PLACES[:0], 6, 0.5).dense().any()


def test_columns_of_the_closed_form_solve_their_regressions():
    """Each column is the ridge regression of an item on all others."""
    rng = np.random.default_rng(0)
    x = (rng.random((40, 6)) < 0.4).astype(float)
    weights = closed_form(x.T @ x, 2.0)
    for item in range(6):
        others = np.delete(np.arange(6), item)
        left = x[:, others].T @ x[:, others] + 2.0 * np.eye(5)
        np.testing.assert_allclose(
            weights[others, item], np.linalg.solve(left, x[:, others].T @ x[:, item])
        )
        assert weights[item, item] == 0


def test_denoising_brings_a_table_of_low_rank_closer():
    rng = np.random.default_rng(1)
    parts = rng.normal(size=(200, 3))
    exact = 3.0 * parts @ parts.T
    noise = np.triu(rng.normal(size=(200, 200)))
    noise += np.triu(noise, 1).T
    found = denoised(exact + noise, 1.0)
    np.testing.assert_allclose(denoised(np.diag([3.0, 5, 0, 0]), 1.0), np.diag([0, 3, 0, 0]))
    assert np.abs(found - exact).std() < 0.3 * noise.std()
    assert np.linalg.matrix_rank(found) == 3
