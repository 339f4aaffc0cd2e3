"""Noise on sums: sized by the analytic formula, on the grid, and never more than C per user."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from fedmf import SecAggSum
from fedmf.aggregate import PlainSum, RoundAborted
from fedmf.aggregate.noisy import NoisySum, noise_multiplier
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.errors import SettingError
from secagg import FixedPoint, Noise, RoundParams
from secagg.privacy import Budget, Loss
from watched_sum import Kept

WIDE = PlainSum(clip=1e5)


def tables(n_users, m=6, k=2, seed=0, size=5.0):
    rng = np.random.default_rng(seed)
    made = {
        user: Rows(
            np.sort(rng.choice(m, 3, replace=False)).astype(np.int32),
            rng.normal(0, size, size=(3, k)),
            m,
        )
        for user in range(n_users)
    }
    return Vectors(made, made.__getitem__, (m, k))


def noisy(where="central", *, z=1.0, clip=2.0, seed=0, inner=WIDE, **more):
    entropy = np.random.default_rng(seed).bytes
    return NoisySum(
        inner=inner, clip_norm=clip, noise_multiplier=z, where=where, entropy=entropy, **more
    )


def delta_of(z, epsilon):
    """Balle and Wang 2018, theorem 8: δ of the Gaussian mechanism with sensitivity 1."""
    return norm.cdf(0.5 / z - epsilon * z) - math.exp(epsilon) * norm.cdf(
        -0.5 / z - epsilon * z
    )


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("rounds", [1, 9])
def test_multiplier_is_that_of_the_analytic_gaussian(epsilon, rounds):
    z = noise_multiplier(epsilon, 1e-5, rounds)
    assert delta_of(z / math.sqrt(rounds), epsilon) == pytest.approx(1e-5, rel=1e-6)


@given(
    seed=st.integers(0, 10_000),
    user=st.integers(0, 3),
    clip=st.floats(1e-3, 50.0),
    size=st.sampled_from([0.01, 1.0, 100.0]),
    bits=st.sampled_from([4, 16]),
)
def test_user_changes_the_sum_by_at_most_the_clip(seed, user, clip, size, bits):
    """The norm of the difference as integers, exactly: rounding must not lengthen a table."""
    inner = PlainSum(clip=1e4, fractional_bits=bits)
    whole = tables(4, seed=seed, size=size)
    without = {one: whole[one] for one in whole}
    without[user] = replace(without[user], values=np.zeros_like(without[user].values))
    empty = Vectors(without, without.__getitem__, whole.shape)
    # the same noise for both, from the same entropy
    one, other = (
        noisy(z=100 / clip, clip=clip, inner=inner).sum(vectors, dropouts={})
        for vectors in (whole, empty)
    )
    moved = one.integers - other.integers
    assert sum(int(x) ** 2 for x in moved) <= (clip * 2.0**bits * (1 + 1e-9)) ** 2


def test_only_tables_longer_than_the_clip_are_clipped():
    """A table a little longer than the clip is clipped and a shorter one is not."""
    for length, kept in ((0.99, 0.99), (1.02, 1.0), (1.4, 1.0)):
        rows = Rows(np.array([1], np.int32), np.array([[0.6 * length, -0.8 * length]]), 3)
        one = Vectors({0: rows}, {0: rows}.__getitem__, (3, 2))
        spy = Kept(clip=1e5)
        noisy(clip=1.0, inner=spy).sum(one, dropouts={})
        assert np.linalg.norm(spy.sums[0]) == pytest.approx(kept, abs=1e-4)


@pytest.mark.parametrize(
    ("where", "n_users", "deviation"),
    [("central", 5, 3.0), ("distributed", 5, 3.0)],
)
def test_noise_in_the_sum_has_the_requested_deviation(where, n_users, deviation):
    """σ = z · C = 1.5 · 2 in the sum."""
    zeros = {u: Rows(np.array([0], np.int32), np.zeros((1, 4)), 5000) for u in range(n_users)}
    vectors = Vectors(zeros, zeros.__getitem__, (5000, 4))
    total = noisy(where, z=1.5, seed=3).sum(vectors, dropouts={})
    assert total.sum.std() == pytest.approx(deviation, rel=0.02)  # its own spread is .005
    assert abs(total.sum.mean()) < 0.05 * deviation
    kurtosis = ((total.sum / total.sum.std()) ** 4).mean()
    assert kurtosis == pytest.approx(3.0, abs=0.15)
    np.testing.assert_array_equal(total.integers, np.rint(total.sum * 2**16))
    assert np.unique(total.integers % 16).size == 16  # the low bits are noise, too


def test_unrated_rows_have_noise():
    spy = Kept(clip=1e5)
    noisy("distributed", inner=spy).sum(tables(4), dropouts={})
    assert all((vector != 0).all() for vector in spy.sums[0])
    scaled = np.array(spy.sums[0]) * 2**16
    np.testing.assert_array_equal(scaled, np.rint(scaled))


def test_check30_dropouts_leave_the_noise_of_the_honest():
    """With .5 honest of 8, each user's share is a quarter of σ²; 4 must be left."""
    zeros = {u: Rows(np.array([0], np.int32), np.zeros((1, 4)), 4000) for u in range(8)}
    vectors = Vectors(zeros, zeros.__getitem__, (4000, 4))
    aggregation = noisy("distributed", z=1.5, honest=0.5)
    gone = dict.fromkeys(range(4), "masked_input")
    assert aggregation.sum(vectors, dropouts=gone).sum.std() == pytest.approx(3.0, rel=0.03)
    with pytest.raises(RoundAborted, match=r"^3 users .* 4$"):
        aggregation.sum(vectors, dropouts={**gone, 4: "share_keys"})


@pytest.mark.parametrize("where", ["central", "distributed"])
@pytest.mark.parametrize("wrong", [lambda n: b"", lambda n: bytes(2 * n), lambda n: n])
def test_entropy_of_wrong_length_or_type_raises(where, wrong):
    aggregation = replace(noisy(where), entropy=wrong)
    with pytest.raises((SettingError, TypeError)):
        aggregation.sum(tables(3), dropouts={})


@pytest.mark.parametrize("where", ["central", "distributed"])
def test_secure_sums_give_the_same_noisy_integers(where):
    vectors = tables(5)
    plain = noisy(where, inner=PlainSum(clip=100.0)).sum(vectors, dropouts={})
    secure = noisy(where, inner=SecAggSum(clip=100.0)).sum(vectors, dropouts={})
    assert plain.digest == secure.digest
    assert noisy(where, seed=1).sum(vectors, dropouts={}).digest != plain.digest


def test_default_entropy_is_the_operating_systems():
    """Noise comes from the operating system by default."""
    aggregation = NoisySum(inner=WIDE, clip_norm=1.0, noise_multiplier=1.0)
    first = aggregation.sum(tables(3), dropouts={})
    assert first.digest != aggregation.sum(tables(3), dropouts={}).digest


@pytest.mark.parametrize(
    "make",
    [
        lambda: noisy("local"),
        lambda: noise_multiplier(1.0, 1.0, 1),
        lambda: noise_multiplier(1.0, 1e-5, 0),
        lambda: noise_multiplier(0.0, 1e-5, 1),
    ],
)
def test_settings_out_of_range_raise(make):
    with pytest.raises(SettingError):
        make()


@pytest.mark.check(14)
def test_check14_the_tail_of_the_noise_must_fit_the_encoding():
    """2 + 12 · 2 / √4 of each of 4 users: 14 and not 13.9."""
    noisy("distributed", inner=PlainSum(clip=14.0)).sum(tables(4), dropouts={})
    with pytest.raises(SettingError, match=r"clip = 13\.9 .* 14$"):
        noisy("distributed", inner=PlainSum(clip=13.9)).sum(tables(4), dropouts={})
    with pytest.raises(SettingError, match="fractional_bits"):
        noisy("distributed", z=1e-5).sum(tables(3), dropouts={})
    with pytest.raises(SettingError, match="clip"):
        noisy("central", inner=PlainSum(clip=1.9)).sum(tables(3), dropouts={})


def noise(size, sigma):
    """Noise that a trusted server adds to the empty sum, on a grid of 2^−16."""
    zero = Rows(np.array([0], np.int32), np.zeros((1, 1)), size)
    vectors = Vectors({0: zero}, {0: zero}.__getitem__, (size, 1))
    aggregation = noisy(z=sigma * 2.0**-16, clip=1.0, inner=PlainSum())
    return aggregation.sum(vectors, dropouts={}).integers


def test_noise_is_normal_and_of_many_bits():
    """200,000 numbers at σ = 2^27: few come twice, as many would of a uniform of 24 bits."""
    drawn = noise(200_000, 2.0**27)
    assert kstest(drawn / 2.0**27, norm.cdf).statistic < 0.004  # .0043 once in 1,000 seeds
    # n² / (4 √π σ) = 42 pairs are expected, and 600 of a uniform with 24 bits and a sign
    assert drawn.size - np.unique(drawn).size <= 80


@pytest.mark.parametrize("sigma", [255.9, 2.0**28 + 1])
def test_noise_that_is_not_as_private_as_gaussian_noise_raises(sigma):
    """docs/privacy.md, "On the grid": below 256 steps what is added to ε can be large."""
    with pytest.raises(SettingError, match="fractional_bits"):
        noise(1, sigma)


def test_noise_makes_up_for_the_rounding():
    """N_Z(0, v) is as private as Gaussian noise of variance v − 1/12."""
    share = noisy("distributed", z=256 * 2.0**-16, clip=1.0)._share(4)
    assert 256**2 + 1 / 12 <= 4 * (share.scaled / 256) ** 2 < 256**2 + 4.1


@pytest.mark.parametrize("where", ["central", "distributed"])
def test_entropy_that_repeats_itself_raises(where):
    """As a generator that is made anew at each call, for the users or for a second sum."""
    users = 1 if where == "central" else 4
    begins_anew = replace(noisy(where), entropy=lambda n: np.random.default_rng(1).bytes(n))
    if where == "central":
        begins_anew.sum(tables(users), dropouts={})
    with pytest.raises(SettingError, match="twice"):
        begins_anew.sum(tables(users), dropouts={})
    source = np.random.default_rng(1)
    restored = replace(noisy(where), entropy=source.bytes)
    state = source.bit_generator.state
    restored.sum(tables(users), dropouts={})
    source.bit_generator.state = state
    with pytest.raises(SettingError, match="twice"):
        restored.sum(tables(users), dropouts={})


def test_share_of_a_user_has_the_variance_of_one_of_the_honest():
    spy = Kept(clip=1e5)
    zeros = {u: Rows(np.array([0], np.int32), np.zeros((1, 4)), 4000) for u in range(8)}
    vectors = Vectors(zeros, zeros.__getitem__, (4000, 4))
    noisy("distributed", z=1.5, inner=spy, honest=0.5).sum(vectors, dropouts={})
    for table in spy.sums[0]:
        assert table.std() == pytest.approx(3.0 / math.sqrt(4), rel=0.03)
    assert not np.array_equal(spy.sums[0][0], spy.sums[0][1])


def test_users_who_drop_out_leave_the_others_noise():
    """The keys are drawn for all users, so that every sum asks for the same keys."""
    gone, wide = {1: "advertise_keys", 4: "unmasking"}, {"clip": 100.0}
    plain = noisy("distributed", honest=0.5, inner=PlainSum(**wide))
    secure = noisy("distributed", honest=0.5, inner=SecAggSum(threshold=4, **wide))
    one, other = (each.sum(tables(6), dropouts=gone) for each in (plain, secure))
    assert one.digest == other.digest


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_noise_is_that_of_clients_and_within_their_budget(epsilon):
    """A client of secagg adds the same share, and a ledger allows as many sums and no more.

    σ of `noise_multiplier` is exact. So the noise of a budget, which sets parts of ε and δ
    aside, is larger by less than 2^−10.
    """
    users, sums, norm = 64, 5, 1.0
    sigma = noise_multiplier(epsilon, 1e-5, sums) * (1 + 2.0**-10)
    steps = 2.0**16 * sigma
    encoding = FixedPoint(1024.0, 16)
    params = RoundParams(
        n_clients=users,
        length=1,
        threshold=users,
        encoding=encoding,
        noise=Noise(math.hypot(steps, 12**-0.5)),
        min_survivors=users,
    )
    own = noisy("distributed", z=sigma, clip=norm)._share(users)
    assert abs(own.scaled - params.share.scaled) <= 1
    # of a vector of norm 1, not of the encoding's largest
    mu = Loss.of(params).squares * Fraction(norm * 2**16) ** 2 / encoding.max_encoded**2
    budget = Budget(epsilon, 1e-5)
    assert sums * mu <= budget.squares < (sums + 1) * mu
