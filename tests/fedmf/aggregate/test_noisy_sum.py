"""The noise itself: normal, and without holes as far out as it goes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, norm

from fedmf.aggregate import NoisySum, PlainSum
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.errors import SettingError


def noise(size, sigma, entropy):
    """Noise that a trusted server adds to the empty sum, on a grid of 2^−16."""
    zero = Rows(np.array([0], np.int32), np.zeros((1, 1)), size)
    vectors = Vectors({0: zero}, {0: zero}.__getitem__, (size, 1))
    aggregation = NoisySum(
        inner=PlainSum(),
        clip_norm=1.0,
        noise_multiplier=sigma * 2.0**-16,
        where="central",
        entropy=entropy,
    )
    return aggregation.sum(vectors, dropouts={}).integers


def test_noise_is_normal_and_of_many_bits():
    """200,000 numbers at σ = 2^32: few come twice, as many would of a uniform of 24 bits."""
    drawn = noise(200_000, 2.0**32, np.random.default_rng(0).bytes)
    assert kstest(drawn / 2.0**32, norm.cdf).statistic < 0.004  # .0043 once in 1,000 seeds
    # n² / (4 √π σ) = 1.3 pairs are expected, and 600 of a uniform with 24 bits and a sign
    assert drawn.size - np.unique(drawn).size <= 8


def words(significands, tosses):
    """An entropy that gives these words of significand and sign, and these two of tosses."""

    def entropy(size):
        n = len(significands)
        made = np.concatenate([significands, *(np.full(n, one, np.uint64) for one in tosses)])
        assert made.nbytes == size
        return made.astype("<u8").tobytes()

    return entropy


@pytest.mark.parametrize("zeros", [0, 1, 30, 52, 53, 80, 105])
def test_noise_reaches_every_integer_in_the_tail(zeros):
    """After so many zeros the uniform is in (2^−(zeros + 2), 2^−(zeros + 1)], all of it."""
    tosses = (1 << (63 - zeros), 0) if zeros < 53 else (0, 1 << (116 - zeros))
    sigma, n = 2.0**14, 100_000
    some = np.random.default_rng(0).integers(0, 2**64, n, dtype=np.uint64)
    drawn = np.abs(noise(n, sigma, words(some, tosses)))
    far, near = (-sigma * norm.ppf(2.0 ** -(zeros + more)) for more in (2, 1))
    assert near - 1 <= drawn.min() <= near + 1
    assert far - 1 <= drawn.max() <= far + 1
    # where ten values of each integer are expected, each has one, but for the rarest few
    assert np.unique(drawn).size >= 0.99 * (far - near)


def test_noise_steps_in_the_tail_are_as_fine():
    """Neighbouring significands, 2^−52 apart, move numbers of 2^32 steps by less than one."""
    start = np.uint64(1) << np.uint64(63)
    some = start + (np.arange(1000, dtype=np.uint64) << np.uint64(12 + 14))
    for tosses in ((1 << 63, 0), (1, 0), (0, 1 << 20)):
        drawn = np.sort(noise(1000, 2.0**32, words(some, tosses)))
        assert np.diff(drawn).max() <= 2**5


def test_noise_stays_within_the_tail():
    last = noise(1, 2.0**30, lambda size: bytes(size))
    assert 11.95 < abs(last[0]) / 2.0**30 < 12.0


def test_noise_too_large_for_floats_raises():
    with pytest.raises(SettingError, match="fractional_bits"):
        noise(1, 2.0**33, np.random.default_rng(0).bytes)
