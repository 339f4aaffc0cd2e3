"""Sums of clipped tables with Gaussian noise: differential privacy for whole users."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.aggregation import Dropouts, IntegerSum, RoundAborted, in_the_sum
from fedmf.aggregate.vectors import Aggregate, Rows, Vectors
from fedmf.errors import SettingError, optional
from fedmf.settings import NotNegative, Positive, Settings, UpToOne, part_of

Where = Literal["central", "distributed", "local"]

TAIL = 12.0  # standard deviations: beyond the 11.954 that `_noise` can draw
LEAST_STEPS = 4  # steps of the grid in a standard deviation of a user's noise
MOST_STEPS = 2.0**32  # with more, the 53 bits of a float leave too few numbers in a step
BITS = 53  # bits of a word that a float represents exactly
WORDS = 3  # words for a number of noise: a sign and a significand, and twice an exponent


@dataclass(frozen=True, kw_only=True)
class NoisySum(Settings):
    """`Aggregation` that clips each user's table and adds Gaussian noise to the sum.

    The noise is added to integers, on the grid of the inner encoding (docs/privacy.md).
    Counting raters raises SettingError, as exact counts are not covered by noise.

    Parameters
    ----------
    inner
        Sum of the clipped tables. Its clip must leave room for the noise that users add.
    clip_norm : float, C > 0, the greatest L2 norm of a table; longer tables are scaled down
    noise_multiplier
        z ≥ 0: noise of standard deviation σ = z · C, from `fedmf.models.dp.noise_multiplier`.
    where
        ``"central"``: a trusted party that knows the exact sum adds N(0, σ²).
        ``"distributed"``: each user adds a share of that noise before sending. Under secure
        aggregation no party then knows the exact sum. The accuracy is the same as "central".
        ``"local"``: each user adds all of N(0, σ²), and needs no secure aggregation. The sum
        of n users then has √n times as much noise.
    honest
        With "distributed": share of the cohort, in (0, 1], that adds enough noise alone. A
        round with fewer survivors is aborted. Count colluding users, and a user who reads the
        sum, like dropped-out users: such users cannot be detected.
    entropy
        Function that takes a number of bytes and returns as many random bytes. Privacy needs
        `os.urandom`. With ``np.random.default_rng(seed).bytes`` an experiment is repeatable,
        but anyone who knows the seed can remove the noise.
    """

    inner: IntegerSum
    clip_norm: Positive
    noise_multiplier: NotNegative
    where: Where = "distributed"
    honest: UpToOne = 1.0
    entropy: Callable[[int], bytes] = os.urandom

    def _check(self) -> None:
        if not isinstance(self.inner, IntegerSum):
            raise SettingError(
                f"inner = {self.inner!r} must sum integers, such as PlainSum() or SecAggSum()"
            )
        check_honest(self.honest, self.where)

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Sum clipped tables with noise; see `Aggregation.sum`.

        Raises
        ------
        SettingError
            If the clip of `inner` is too small for the noise. If the fractional_bits of `inner`
            are too few or too many for the noise. If `entropy` returns no bytes, or a wrong
            number of bytes.
        RoundAborted
            If fewer users are left than `honest` requires, or the sum of `inner` is aborted.
        MissingExtra
            If scipy is not installed.
        """
        tables = Vectors(vectors, lambda user: self._clipped(vectors[user]), vectors.shape)
        if self.where == "central":
            total = self.inner.sum(tables, dropouts=dropouts, session=session)
            noise = self._noise(total.integers.size, self._grid_sigma(1.0))
            return with_noise(total, noise, self.inner)
        share = 1.0
        if self.where == "distributed":
            share = 1 / math.sqrt(honest_users(self.honest, vectors, dropouts))
        self._check_room(share)
        sigma = self._grid_sigma(share)
        noisy = noised(tables, lambda _, size: self._noise(size, sigma), self.inner)
        return self.inner.sum(noisy, dropouts=dropouts, session=session)

    def count(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Raise SettingError: exact counts are not private."""
        raise SettingError(
            "exact counts of raters would not be differentially private: train a model that "
            "needs none, such as DPFedMF(), or has min_raters=1"
        )

    def _clipped(self, rows: Rows) -> Rows:
        """Scale a table to a norm of at most C, then round the table to the grid."""
        values = np.asarray(rows.values, dtype=np.float64)
        norm = float(np.linalg.norm(values))
        if norm > self.clip_norm:
            values = values * (self.clip_norm / norm)
        scale = self.inner.encoding.scale
        # towards zero: rounding to nearest could raise the norm above C
        return Rows(rows.indices, np.trunc(values * scale) / scale, rows.n_rows)

    def _grid_sigma(self, share: float) -> float:
        return self.noise_multiplier * self.clip_norm * share * self.inner.encoding.scale

    def _check_room(self, share: float) -> None:
        """Validate that the inner encoding neither clips nor loses the users' noise."""
        sigma = self.noise_multiplier * self.clip_norm * share
        needed = self.clip_norm + TAIL * sigma
        if needed > self.inner.clip:
            raise SettingError(
                f"the inner clip = {self.inner.clip:g} cuts off the noise that users add: "
                f"raise it to {math.ceil(needed)}"
            )
        if 0 < self._grid_sigma(share) < LEAST_STEPS:
            raise SettingError(
                f"noise of deviation {sigma:g} is lost on a grid of "
                f"{1 / self.inner.encoding.scale:g}: raise fractional_bits"
            )

    def _noise(self, size: int, sigma: float) -> NDArray[np.int64]:
        """Draw round(N(0, sigma²)): a random sign, and the magnitude by inversion."""
        if sigma == 0:
            return np.zeros(size, dtype=np.int64)
        if sigma > MOST_STEPS:
            raise SettingError(
                f"noise with a deviation of {sigma:g} steps of the grid is more than "
                f"{MOST_STEPS:g}: lower fractional_bits"
            )
        special = optional("scipy.special", "draws the noise")
        # repeated bytes could cancel the noise, so there must be enough
        random = random_bytes(self.entropy, 8 * WORDS * size)
        words = np.frombuffer(random, dtype="<u8").reshape(WORDS, size)
        # uniform = significand · 2^(−1 − zeros), in (0, 1/2]: a significand of 53 bits in
        # (1/2, 1], and the number of zeros that a row of coin tosses begins with. Multiples of
        # 2^−53 would end the tail of the noise at 8 deviations.
        tosses = np.frexp((words[1:] >> np.uint64(64 - BITS)).astype(np.float64))[1]
        zeros = np.where(tosses[0] > 0, BITS - tosses[0], 2 * BITS - tosses[1])
        significand = 0.5 + ((words[0] >> np.uint64(12)) + 1.0) * 2.0**-BITS
        uniform = np.ldexp(significand, -1 - zeros)
        # the last bit of the word is not in the significand
        sign = np.where(words[0] & np.uint64(1), 1.0, -1.0)
        noise: NDArray[np.float64] = np.rint(sign * sigma * special.ndtri(uniform))
        return noise.astype(np.int64)


def check_honest(honest: float, where: str) -> None:
    """Raise SettingError for a share of honest users without distributed noise."""
    if honest < 1 and where != "distributed":
        raise SettingError(f"honest = {honest!r} must be 1 unless where = 'distributed'")


def honest_users(honest: float, vectors: Vectors, dropouts: Dropouts) -> int:
    """Return the number of users with enough noise; RoundAborted if fewer are left."""
    least, left = part_of(honest, len(vectors)), len(in_the_sum(vectors, dropouts))
    if left < least:
        raise RoundAborted(
            f"{left} users are left, fewer than the noise of the sum needs: {least}"
        )
    return least


def noised(
    tables: Vectors, noise: Callable[[int, int], NDArray[np.int64]], inner: IntegerSum
) -> Vectors:
    """Return the tables with noise that each user adds, in steps of the grid of `inner`.

    `noise` is a function from the id of a user and a number of elements to as many integers.
    """
    everything, scale = np.arange(tables.shape[0], dtype=np.int32), inner.encoding.scale

    def noisy(user: int) -> Rows:
        table = tables[user].dense().reshape(tables.shape)
        added = noise(user, table.size).reshape(tables.shape)
        return Rows(everything, table + added / scale, everything.size)

    return Vectors(tables, noisy, tables.shape)


def with_noise(exact: Aggregate, noise: NDArray[np.int64], inner: IntegerSum) -> Aggregate:
    """Return the sum with noise that a trusted party adds to the integers."""
    integers = exact.integers + noise
    return replace(exact, integers=integers, sum=inner.encoding.decode_integers(integers))


def random_bytes(entropy: Callable[[int], bytes], size: int) -> bytes:
    """Return `size` bytes of entropy; SettingError for another number of bytes, or no bytes."""
    given = entropy(size)
    try:
        data = bytes(memoryview(given))  # bytes(7) would be seven zeros
    except TypeError:
        raise SettingError(
            f"entropy returned {type(given).__name__} instead of bytes: pass a function such "
            "as os.urandom"
        ) from None
    if len(data) != size:
        raise SettingError(
            f"entropy returned {len(data)} bytes instead of {size}: pass a function that "
            "returns the requested number, such as os.urandom"
        )
    return data


def is_noisy(aggregation: object) -> bool:
    """Return True for a `NoisySum`, and for an aggregation with a `NoisySum` inside."""
    parts = getattr(aggregation, "__dict__", {}).values()
    return isinstance(aggregation, NoisySum) or any(
        is_noisy(part) for part in parts if callable(getattr(part, "count", None))
    )
