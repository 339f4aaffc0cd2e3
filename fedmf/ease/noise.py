"""Discrete Gaussian noise: the deviation that an (ε, δ) needs, and sums with that noise.

The noise is on the integers of the fixed-point encoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate
from fedmf.aggregate.aggregation import Dropouts, IntegerSum
from fedmf.aggregate.noisy import honest_users, noised, random_bytes, with_noise
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.errors import SettingError, optional
from secagg.oneshot.noise import Noise, blocks
from secagg.oneshot.privacy import ORDERS


def deviation(epsilon: float, delta: float) -> float:
    """Return σ of discrete Gaussian noise for messages with L2 norms of together at most 1.

    The noise gives ρ-zCDP with ρ = 1 / 2σ² for adding or removing a user (Canonne, Kamath and
    Steinke 2020, §2). The same holds for several sums, even if a later sum depends on earlier
    sums: squared norms add up, and so do the ρ (Bun and Steinke 2016, composition). ε follows
    from the Rényi divergences. Raises MissingExtra if dp-accounting is not installed.

    Parameters
    ----------
    epsilon, delta : float, ε > 0 and 0 < δ < 1, δ well below 1 / n_users
    """
    dp_accounting = optional("dp_accounting", "finds the noise")
    rdp = optional("dp_accounting.rdp", "finds the noise")
    # the divergence of a zCDP event is ρ α for either direction of the neighbours
    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    guess = float(dp_accounting.get_sigma_gaussian(float(epsilon), float(delta)))
    found = dp_accounting.calibrate_dp_mechanism(
        lambda: rdp.RdpAccountant(ORDERS, relation),
        lambda sigma: dp_accounting.ZCDpEvent(1 / (2 * sigma**2)),
        float(epsilon),
        float(delta),
        dp_accounting.LowerEndpointAndGuess(guess / 2, 1.1 * guess),
        tol=1e-6 * guess,  # the error of σ, towards more noise
    )
    return float(found)


Where = Literal["central", "distributed"]
KEY = 16  # bytes of the AES key behind a stream of noise

LEAST_STEPS = 4
"""Steps in a standard deviation of a share. A sum of n such shares is as private as a single
discrete Gaussian up to a term τ √d (Kairouz, Liu and Steinke, ICML 2021). With shares of s ≥ 4
steps, τ = 10 Σ_{k<n} exp(−2π² s² k / (k + 1)) < 10 n exp(−π² s²) < n · 10^−67."""


@dataclass(frozen=True, kw_only=True)
class DiscreteNoise:
    """Sum of tables that are rounded towards zero to the grid, with discrete Gaussian noise.

    The noise is drawn exactly, under the assumption that AES-128 is a pseudo-random generator
    (`secagg.oneshot.Noise`).

    Parameters
    ----------
    inner : sum of the tables; the numbers of a table are at most 1 in size
    sigma : float, σ > 0 of the noise in the sum
    where, honest, entropy : see `DPEase`
    """

    inner: IntegerSum
    sigma: float
    where: Where
    honest: float
    entropy: Callable[[int], bytes]
    _keys: set[bytes] = field(default_factory=set, init=False, repr=False)

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes) -> Aggregate:
        """Sum with noise; see `Aggregation.sum`.

        Raises
        ------
        SettingError
            If the clip or the fractional_bits of `inner` do not suit the noise. Also if
            `entropy` returns no bytes, a wrong number of bytes, or the same bytes again.
        RoundAborted
            If fewer users are left than `honest` requires, or the sum of `inner` is aborted.
        """
        scale = self.inner.encoding.scale

        def rounded(user: int) -> Rows:
            rows = vectors[user]
            return replace(rows, values=np.trunc(rows.values * scale) / scale)

        tables = Vectors(vectors, rounded, vectors.shape)
        if self.where == "central":
            self._check_room(0.0)
            exact = self.inner.sum(tables, dropouts=dropouts, session=session)
            noise = _drawn(exact.integers.size, self._noise(1), self._key())
            return with_noise(exact, noise, self.inner)

        share = self._noise(honest_users(self.honest, vectors, dropouts))
        self._check_room(share.bound(1) / scale)
        if share.sigma < LEAST_STEPS:
            raise SettingError(
                f"a user's noise of {float(share.sigma):g} steps of the grid is less than "
                f"{LEAST_STEPS}: raise the fractional_bits of the aggregation"
            )
        keys = {user: self._key() for user in sorted(vectors)}
        noisy = noised(tables, lambda user, size: _drawn(size, share, keys[user]), self.inner)
        return self.inner.sum(noisy, dropouts=dropouts, session=session)

    def _noise(self, users: int) -> Noise:
        """Return the noise of a share; `users` shares together have the deviation σ."""
        return Noise(Fraction(self.sigma * self.inner.encoding.scale / math.sqrt(users)))

    def _check_room(self, noise: float) -> None:
        if self.inner.clip < 1 + noise:
            raise SettingError(
                f"the aggregation's clip = {self.inner.clip:g} cuts off what users send: raise "
                f"it to {math.ceil(1 + noise)}"
            )

    def _key(self) -> bytes:
        key = random_bytes(self.entropy, KEY)
        if key in self._keys:  # with a common key, knowing a user's noise is knowing all noise
            raise SettingError(
                "entropy returned the same bytes twice: pass a function that returns new ones, "
                "such as os.urandom or np.random.default_rng(1).bytes"
            )
        self._keys.add(key)
        return key


def _drawn(size: int, noise: Noise, key: bytes) -> NDArray[np.int64]:
    """Return `size` numbers of the stream of a key."""
    drawn, at = np.empty(size, dtype=np.int64), 0
    for block in blocks(noise, key, size):
        drawn[at : at + block.size] = block
        at += block.size
    return drawn
