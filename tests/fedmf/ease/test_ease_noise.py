"""Noise of DPEase: its size, its shares, and the norm of what users send."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf.aggregate import PlainSum, RoundAborted, SecAggSum
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.ease.noise import LEAST_STEPS, DiscreteNoise, deviation
from fedmf.ease.shallow import closed_form, denoised, from_triangle, marks, triangle
from fedmf.errors import SettingError
from watched_sum import Kept

SCALE = 2.0**16


def noised(where="distributed", inner=None, *, sigma=0.5, honest=1.0, entropy=None):
    return DiscreteNoise(
        inner=PlainSum() if inner is None else inner,
        sigma=sigma,
        where=where,
        honest=honest,
        entropy=np.random.default_rng(2).bytes if entropy is None else entropy,
    )


def empty(n_users, size):
    rows = Rows(np.zeros(0, np.int32), np.zeros((0, 1)), size)
    return Vectors(range(n_users), lambda user: rows, (size, 1))


def summed(noise, vectors, dropouts=None):
    return noise.sum(vectors, dropouts=dropouts or {}, session=b"")


@pytest.mark.parametrize("where", ["central", "distributed"])
def test_noise_of_the_sum_has_the_deviation_sigma(where):
    total = summed(noised(where), empty(9, 20_000))
    assert total.sum.std() == pytest.approx(0.5, rel=0.02)
    assert abs(total.sum.mean()) < 0.02
    assert ((total.sum / total.sum.std()) ** 4).mean() == pytest.approx(3.0, abs=0.15)
    np.testing.assert_array_equal(total.integers, total.sum * SCALE)
    assert np.unique(total.integers % 16).size == 16
    assert np.unique(total.integers).size > 0.8 * total.integers.size


def test_share_of_a_user_has_the_variance_of_one_of_the_honest():
    spy = Kept()
    summed(noised(inner=spy, honest=0.5), empty(8, 20_000))
    for table in spy.sums[0]:
        assert table.std() == pytest.approx(0.5 / math.sqrt(4), rel=0.03)
    assert not np.array_equal(spy.sums[0][0], spy.sums[0][1])


def test_fewer_users_than_the_honest_abort():
    """.5 of 7 users are 4."""
    gone = dict.fromkeys(range(3), "masked_input")
    total = summed(noised(honest=0.5), empty(7, 9_000), gone)
    assert total.sum.std() == pytest.approx(0.5, rel=0.03)
    with pytest.raises(RoundAborted):
        summed(noised(honest=0.5), empty(7, 9), {**gone, 3: "share_keys"})


def test_users_who_drop_out_leave_the_others_noise():
    """The keys are drawn for all users, so that every sum asks for the same ones."""
    gone = {1: "advertise_keys", 4: "unmasking"}
    plain = summed(noised(honest=0.5), empty(6, 50), gone)
    secure = summed(noised(honest=0.5, inner=SecAggSum(threshold=4)), empty(6, 50), gone)
    assert plain.digest == secure.digest


@pytest.mark.parametrize("where", ["central", "distributed"])
def test_settings_of_the_sum_that_spoil_the_noise_raise(where):
    for wrong in ({"inner": PlainSum(clip=0.9)}, {"entropy": lambda size: bytes(size - 1)}):
        with pytest.raises(SettingError):
            summed(noised(where, **wrong), empty(4, 3))


def test_entropy_that_repeats_itself_raises():
    """As a generator that is made anew at each call, for the users or for a second sum."""

    def same(size):
        return np.random.default_rng(1).bytes(size)

    with pytest.raises(SettingError, match="twice"):
        summed(noised(entropy=same), empty(4, 3))
    central = noised("central", entropy=same)
    summed(central, empty(4, 3))
    with pytest.raises(SettingError, match="twice"):
        summed(central, empty(4, 3))


def test_share_that_the_grid_or_the_clip_loses_raises():
    assert summed(noised(sigma=2 * LEAST_STEPS / SCALE), empty(4, 3))
    for inner, users in ((PlainSum(fractional_bits=4), 9), (PlainSum(clip=2.0), 4)):
        with pytest.raises(SettingError):
            summed(noised(inner=inner), empty(users, 3))


@given(st.lists(st.integers(0, 59), unique=True), st.sampled_from([0.05, 0.95, 1.0]))
def test_sent_integers_have_at_most_the_norm(items, part):
    """On the grid: rounding to the nearest would exceed the bound."""
    items = np.array(sorted(items), dtype=np.int32)
    for made in (triangle, marks):
        rows = made(items, 60, math.sqrt(part))
        spy = Kept()
        vectors = Vectors([0], lambda user: rows, (rows.n_rows, 1))  # noqa: B023
        summed(noised("central", spy), vectors)
        sent = (spy.sums[0][0] * SCALE).astype(int)
        np.testing.assert_array_equal(sent, spy.sums[0][0] * SCALE)
        assert sum(int(one) ** 2 for one in sent) <= part * 2**32
        count = items.size * (items.size + 1) // 2 if made is triangle else items.size
        assert np.count_nonzero(sent) == count
        assert (sent @ sent) > 0.99 * part * 2**32 or not count


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_deviation_is_that_of_concentrated_privacy(epsilon):
    """Canonne, Kamath and Steinke 2020, proposition 12, by a grid of orders of its own."""
    delta, orders = 1e-5, 1 + 10 ** np.linspace(-2, 4, 3001)

    def reached(sigma):
        rho = 1 / (2 * sigma**2)
        logs = (
            (orders - 1) * (orders * rho - epsilon)
            - np.log(orders - 1)
            + orders * np.log1p(-1 / orders)
        )
        return math.exp(logs.min())

    sigma = deviation(epsilon, delta)
    assert reached(sigma) <= delta * 1.0001
    assert reached(0.99 * sigma) > delta


PLACES = np.array([1, 2, 4])


def test_triangle_is_that_of_the_outer_product():
    x = np.zeros(5)
    x[PLACES] = 1
    rows = triangle(PLACES, 5, None)
    assert rows.values.dtype == np.int64
    column = rows.dense()
    np.testing.assert_array_equal(from_triangle(column, 5), np.outer(x, x))
    scaled = triangle(PLACES, 5, 1.0).dense()
    np.testing.assert_allclose(scaled, column / np.sqrt(6))


def test_marks_are_the_rated_items():
    np.testing.assert_array_equal(marks(PLACES, 6, None).dense(), [0, 1, 1, 0, 1, 0])
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
