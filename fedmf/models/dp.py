"""Differential privacy for whole users: the noise that a training needs, and FedMF under noise.

`fedmf.aggregate.NoisySum` clips each user's vector to norm C and adds Gaussian noise to the
sum. So all published Q together are (ε, δ)-differentially private for a user's *whole* history.

The idea is due to Hua, Xia and Zhong, "Differentially private matrix factorization", IJCAI
2015. The recommender is untrusted, the noise comes in shares from the users, and the user
factors are private. According to the abstract (the paper was not available) the authors perturb
the objective. Here the gradients of every round are perturbed and accounted for, and all data
of a user are protected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedmf.aggregate.noisy import Where
from fedmf.errors import SettingError, optional
from fedmf.models.federated import Floats, Raters
from fedmf.models.mf import NEUTRAL, FedMF
from fedmf.settings import Count, NotNegative, Positive, ProperFraction, UpToOne, check
from secagg.privacy.gaussian import sigma_of

# Rényi orders: each gives a valid bound; more orders take longer and tighten the bound little.
ORDERS = (*range(2, 17), 20, 24, 32, 48, 64)


def noise_multiplier(
    epsilon: float,
    delta: float,
    rounds: int,
    *,
    sampling_rate: float = 1.0,
    where: Where = "distributed",
) -> float:
    """Return the noise multiplier z of `NoisySum` for (ε, δ)-differentially private training.

    Neighbouring data differ in all ratings of a user. Without sampling ε is exact (Balle and
    Wang, ICML 2018). For sampled cohorts ε is a bound by Rényi accounting (Wang, Balle and
    Kasiviswanathan, AISTATS 2019, theorem 27). The bound needs a secret cohort: keep the
    training's seed secret (docs/privacy.md). Raises SettingError if a value is out of range, or
    local noise is combined with sampling. Raises MissingExtra if dp-accounting is not
    installed.

    Parameters
    ----------
    epsilon, delta : float, ε > 0 and 0 < δ < 1, δ well below 1 / n_users
    rounds : int, number of released sums, ≥ 1; an aborted round releases none
    sampling_rate
        Share of the users in a cohort, in (0, 1]: ``schedule.size(n_users) / n_users`` of a
        `Schedule`.
    where : see `NoisySum`
    """
    check(Positive, epsilon=epsilon)
    check(ProperFraction, delta=delta)
    check(Count, rounds=rounds)
    check(Where, where=where)
    check(UpToOne, sampling_rate=sampling_rate)
    if sampling_rate < 1 and where == "local":
        raise SettingError(f"sampling_rate = {sampling_rate!r} must be 1 if where = 'local'")
    # with numpy's float32 the accountant would compute in 32 bits
    epsilon, delta, sampling_rate = float(epsilon), float(delta), float(sampling_rate)
    rounds = int(rounds)
    unsampled = sigma_of(epsilon, delta) * math.sqrt(rounds)
    if where == "local":
        return 2 * unsampled
    if sampling_rate == 1:
        return unsampled
    dp_accounting = optional("dp_accounting", "finds the noise")
    rdp = optional("dp_accounting.rdp", "finds the noise")
    everyone = 10**9  # the bound knows only the ratio

    def event(z: float) -> object:
        sampled = dp_accounting.SampledWithoutReplacementDpEvent(
            everyone, math.ceil(sampling_rate * everyone), dp_accounting.GaussianDpEvent(z)
        )
        return dp_accounting.SelfComposedDpEvent(sampled, rounds)

    sampled = dp_accounting.calibrate_dp_mechanism(
        lambda: rdp.RdpAccountant(ORDERS, dp_accounting.NeighboringRelation.REPLACE_ONE),
        event,
        epsilon,
        delta,
        # At 0, where the search would start by itself, the accountant divides by zero.
        dp_accounting.LowerEndpointAndGuess(min(0.05, unsampled / 2), unsampled),
        tol=1e-3,  # the error of z, towards more noise
    )
    return min(2 * float(sampled), unsampled)


@dataclass(frozen=True, kw_only=True)
class DPFedMF(FedMF):
    """FedMF for training with `NoisySum`: users send nothing but their summand.

    **With any other aggregation, such as PlainSum(), the training has no noise, no privacy and
    no warning**; docs/privacy.md lists the private outputs.

    Users solve for p_u exactly. The server subtracts γ times the sum, without a division by the
    raters: counts of raters would need noise, too. Noise also moves unrated items. So the
    defaults have few factors and small steps. Train for few rounds, too.

    Parameters
    ----------
    k, reg, rate, start, mean, spread, biases
        See `FedMF`. `update` must stay "ridge" and `min_raters` 1. `mean` is a public number,
        as the mean of the ratings would not be private.
    """

    k: Count = 2
    rate: Positive = 0.01
    mean: NotNegative | None = NEUTRAL
    min_raters: Count = 1

    def _check(self) -> None:
        if self.mean is None:
            raise SettingError(
                "mean = None would sum the mean rating, which is not private: pass a public "
                f"number, such as {NEUTRAL:g}"
            )
        if self.update != "ridge" or self.min_raters != 1:
            raise SettingError(
                f"update = {self.update!r} and min_raters = {self.min_raters!r} must stay "
                "'ridge' and 1: counts of raters would not be private"
            )

    @property
    def needs_counts(self) -> bool:
        """False, as counts of raters would not be private."""
        return False

    def server_step(self, q: Floats, total: Floats, raters: Raters | None) -> Floats:
        """Return q_i − γ times the noisy sum of the clipped gradients."""
        moved = q.copy()
        moved[:, : self.width] -= self.rate * total
        return moved
