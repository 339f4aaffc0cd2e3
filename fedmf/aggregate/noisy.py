"""Sums of clipped tables with Gaussian noise: differential privacy for whole users."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.aggregation import Dropouts, IntegerSum, RoundAborted, in_the_sum
from fedmf.aggregate.vectors import Aggregate, Rows, Vectors
from fedmf.errors import SettingError
from fedmf.settings import (
    Count,
    Positive,
    ProperFraction,
    Settings,
    UpToOne,
    check,
    part_of,
)
from secagg.encoding.encoding import take
from secagg.privacy.gaussian import sigma_of
from secagg.protocol.noise import LARGEST_SHARE, LEAST_SHARE, STEPS, Share

Where = Literal["central", "distributed"]

TAIL = 12.0  # standard deviations of a user's noise for which the clip must leave room
LEAST = 256  # steps of σ, from which the distance from Gaussian noise is negligible
KEY = 16  # bytes of the AES key behind a stream of noise


def noise_multiplier(epsilon: float, delta: float, sums: int) -> float:
    """Return z of `NoisySum` for which `sums` sums are together (ε, δ)-differentially private.

    Neighbouring data differ in all ratings of a user, who has a table of zeros in one of the
    two, and is in every sum. ε is exact (Balle and Wang, ICML 2018): many sums cost as much as
    one sum with z / √sums. Raises SettingError if a value is out of range, and MissingExtra if
    dp-accounting is not installed.

    Parameters
    ----------
    epsilon, delta : float, ε > 0 and 0 < δ < 1, δ well below 1 / n_users
    sums : int, number of released sums, ≥ 1; an aborted sum releases nothing
    """
    check(Positive, epsilon=epsilon)
    check(ProperFraction, delta=delta)
    check(Count, sums=sums)
    # with numpy's float32 the accountant would compute in 32 bits
    return sigma_of(float(epsilon), float(delta)) * math.sqrt(int(sums))


@dataclass(frozen=True, kw_only=True)
class NoisySum(Settings):
    """Sum of users' tables, each clipped, with Gaussian noise.

    The noise is discrete Gaussian, in the shares that clients of `secagg` add for
    ``RoundParams(noise=…)``: from streams of AES-128, on the grid of the inner encoding
    (docs/noise.md). So private and plain sums have the same noise, and equal digests. The
    estimators of `fedmf.training.private.Private` size the noise.

    Parameters
    ----------
    inner
        Sum of the clipped tables. Its clip must leave room for the noise that users add.
    clip_norm : float, C > 0, the greatest L2 norm of a table; longer tables are scaled down
    noise_multiplier
        z > 0: noise of standard deviation σ = z · C, from `noise_multiplier`.
    where
        ``"central"``: a trusted party that knows the exact sum adds N(0, σ²).
        ``"distributed"``: each user adds a share of that noise before sending. Under secure
        aggregation no party then knows the exact sum. The accuracy is the same as "central".
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
    noise_multiplier: Positive
    where: Where = "distributed"
    honest: UpToOne = 1.0
    entropy: Callable[[int], bytes] = os.urandom
    _used: set[bytes] = field(default_factory=set, init=False, repr=False, compare=False)

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Sum clipped tables with noise; see `Aggregation.sum`.

        Raises
        ------
        SettingError
            If the clip of `inner` is too small for the noise. If the fractional_bits of `inner`
            are too few or too many for the noise. If `entropy` returns a wrong number of bytes,
            or the same bytes again.
        RoundAborted
            If fewer users are left than `honest` requires, or the sum of `inner` is aborted.
        """
        tables = Vectors(vectors, lambda user: self._clipped(vectors[user]), vectors.shape)
        if self.where == "central":
            self._check_room(0.0)
            share, (key,) = self._share(1), self._keys(1)
            exact = self.inner.sum(tables, dropouts=dropouts, session=session)
            integers = exact.integers + _drawn(share, key, exact.integers.size)
            total = self.inner.encoding.decode_integers(integers)
            return replace(exact, integers=integers, sum=total)
        users, left = part_of(self.honest, len(vectors)), len(in_the_sum(vectors, dropouts))
        if left < users:
            raise RoundAborted(
                f"{left} users are left, fewer than the noise of the sum needs: {users}"
            )
        self._check_room(self.noise_multiplier * self.clip_norm / math.sqrt(users))
        share = self._share(users)
        keys = dict(zip(sorted(vectors), self._keys(len(vectors)), strict=True))
        scale = self.inner.encoding.scale
        noisy = _noised(tables, lambda user, size: _drawn(share, keys[user], size), scale)
        return self.inner.sum(noisy, dropouts=dropouts, session=session)

    def deviation(self, survivors: int, cohort: int) -> float:
        """Return the deviation of a sum's noise, above σ if more users stay than needed."""
        shares = 1.0 if self.where == "central" else survivors / part_of(self.honest, cohort)
        return self.noise_multiplier * self.clip_norm * math.sqrt(shares)

    def _clipped(self, rows: Rows) -> Rows:
        """Scale a table to a norm of at most C, then round the table to the grid."""
        values = np.asarray(rows.values, dtype=np.float64)
        norm = float(np.linalg.norm(values))
        if norm > self.clip_norm:
            values = values * (self.clip_norm / norm)
        scale = self.inner.encoding.scale
        # towards zero: rounding to nearest could raise the norm above C
        return Rows(rows.indices, np.trunc(values * scale) / scale, rows.n_rows)

    def _check_room(self, sigma: float) -> None:
        """Validate that the inner encoding does not clip a table with noise of deviation σ."""
        needed = self.clip_norm + TAIL * sigma
        if needed > self.inner.clip:
            raise SettingError(
                f"the inner clip = {self.inner.clip:g} cuts off what users send, noise "
                f"included: raise it to {math.ceil(needed)}"
            )

    def _share(self, users: int) -> Share:
        """Return the noise of each of `users` users, who have σ together."""
        sigma = Fraction(self.noise_multiplier * self.clip_norm * self.inner.encoding.scale)
        # as private as Gaussian noise of variance σ²: docs/noise.md, "In the recommenders"
        square = (sigma**2 + Fraction(1, 12)) * STEPS**2 / users
        scaled = math.isqrt(math.ceil(square) - 1) + 1
        few = scaled < LEAST_SHARE or scaled**2 * users < (LEAST * STEPS) ** 2
        if few or scaled > LARGEST_SHARE:
            what, remedy = ("few", "raise") if few else ("many", "lower")
            raise SettingError(
                f"noise of {scaled / STEPS:.4g} steps of the grid for each user is of too "
                f"{what} steps: {remedy} the fractional_bits of the inner sum"
            )
        return Share(scaled)

    def _keys(self, count: int) -> list[bytes]:
        keys = [take(self.entropy, KEY) for _ in range(count)]
        # with a common key, knowing a user's noise is knowing all noise
        if len(set(keys)) < count or not self._used.isdisjoint(keys):
            raise SettingError(
                "entropy returned the same bytes twice: pass a function of new bytes at each "
                "call, such as os.urandom or np.random.default_rng(1).bytes"
            )
        self._used.update(keys[:1])  # a source that begins anew repeats the first key
        return keys


def _noised(
    tables: Vectors, noise: Callable[[int, int], NDArray[np.int64]], scale: float
) -> Vectors:
    """Return the tables with noise that each user adds, in steps of 1 / scale.

    `noise` is a function from the id of a user and a number of elements to as many integers.
    """
    everything = np.arange(tables.shape[0], dtype=np.int32)

    def noisy(user: int) -> Rows:
        table = tables[user].dense().reshape(tables.shape)
        added = noise(user, table.size).reshape(tables.shape)
        return Rows(everything, table + added / scale, everything.size)

    return Vectors(tables, noisy, tables.shape)


def _drawn(share: Share, key: bytes, size: int) -> NDArray[np.int64]:
    """Return the first `size` ≥ 1 numbers of a key's stream of noise."""
    return np.concatenate([block.copy() for block in share.blocks(key, 0, size)])
