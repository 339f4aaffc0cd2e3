"""Base class of the estimators whose sums have noise for differential privacy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypedDict, cast

from fedmf.aggregate.aggregation import IntegerSum
from fedmf.aggregate.noisy import NoisySum, Where, noise_multiplier
from fedmf.errors import SettingError
from fedmf.settings import BelowOne, Positive, ProperFraction, Seed, UpToOne
from fedmf.training.schedule import Scheduled, Summing


class PrivateSettings(TypedDict, total=False):
    """Types of the settings of `Private`, for the constructors that pass them on."""

    epsilon: float
    delta: float
    where: Where
    honest: float
    seed: int
    dropout: float
    entropy: Callable[[int], bytes]


class Private(Scheduled):
    """Estimator of noised sums, (ε, δ)-differentially private for whole users.

    The guarantee is against a server of secure sums that follows the protocol and the readers
    of the outputs that docs/privacy.md lists, with other users up to 1 − `honest` of all and
    fewer than can open a message of these sums. Who sums in plain sees each message, with a
    part of the noise.

    All sums of a training together cost (ε, δ), and so does all that is computed from them.
    Neighbouring data differ by adding or removing all ratings of a user, who takes part in
    either case. The ids of users and items are public. A second training on the same ratings
    costs (ε, δ) again.

    Parameters
    ----------
    aggregation
        Sum of integers, `PlainSum()` by default, or `SecAggSum`, `OneShotSum`, `PaillierSum`.
        The clip must leave room for the noise.
    epsilon : float, ε > 0, of all sums together
    delta : float, δ, 0 < δ < 1, well below 1 / n_users
    where
        ``"distributed"``: each user adds a share of the noise before sending, so that under
        secure aggregation no party knows the exact sum. ``"central"``: a trusted party that
        knows the exact sum adds the noise. The accuracy is the same. Simulations of many users
        and numbers need "central", as all shares are drawn.
    honest
        With "distributed": share of the users, in (0, 1], that adds enough noise alone; see
        `fedmf.aggregate.noisy.NoisySum`.
    seed, dropout : see `Schedule`; the seed decides about dropouts alone
    entropy
        Function that takes a number of bytes and returns as many random bytes. Privacy needs
        `os.urandom`. With ``np.random.default_rng(seed).bytes`` an experiment is repeatable,
        but anyone who knows the seed can remove the noise.
    """

    def __init__(
        self,
        aggregation: Summing | None = None,
        *,
        epsilon: Positive = 8.0,
        delta: ProperFraction = 1e-5,
        where: Where = "distributed",
        honest: UpToOne = 1.0,
        seed: Seed = 0,
        dropout: BelowOne = 0.0,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(aggregation, seed=seed, dropout=dropout)
        self.epsilon, self.delta, self.where = epsilon, delta, where
        self.honest, self.entropy = honest, entropy

    def _check(self) -> None:
        if not isinstance(self.aggregation, IntegerSum):
            raise SettingError(
                f"aggregation = {self.aggregation!r} must sum integers, such as PlainSum() or "
                "SecAggSum()"
            )
        if self.honest < 1 and self.where != "distributed":
            raise SettingError(
                f"honest = {self.honest!r} must be 1 unless where = 'distributed'"
            )

    def noisy(self, sums: int) -> NoisySum:
        """Return the sum of messages of norm 1, with noise for `sums` sums that cost (ε, δ)."""
        return NoisySum(
            inner=cast(IntegerSum, self.aggregation),  # as `_check` has validated
            clip_norm=1.0,
            noise_multiplier=noise_multiplier(self.epsilon, self.delta, sums),
            where=self.where,
            honest=self.honest,
            entropy=self.entropy,
        )
