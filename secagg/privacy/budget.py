"""Budget of a client or of a session."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from secagg._check import check_kind, is_real
from secagg._printable import in_short
from secagg.errors import BudgetSpent, ParameterError
from secagg.privacy.distance import NONE
from secagg.privacy.gaussian import sigma_of
from secagg.privacy.loss import Loss

_SHARE = 2.0**-12
"""Part of ε, and of δ, that is set aside for the distance from exact Gaussians."""
EXPOSED = 2.0**-10
"""Part of δ that is set aside for the graphs that expose a client."""


@dataclass(frozen=True)
class Budget:
    """(ε, δ) that all sums of a client's data together may spend.

    The budget holds although results of earlier sums decide on the noise of later sums, and on
    their number. So losses are compared with four bounds that are fixed in advance: Σ μ² of
    Gaussian mechanisms (Smith and Thakurta 2022), the distance from Gaussian mechanisms, the
    failures, and the exposure by sparse graphs. The smaller of two values of ε would be a bound
    that earlier results choose. It holds against the parties of every sum, see `against`.

    Parameters
    ----------
    epsilon : float
        ε > 0. Above 30 the failures of the noise's bounds exceed most budgets.
    delta : float
        δ, 0 < δ < 1, well below 1 / number of clients.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not is_real(self.epsilon) or not 0 < self.epsilon < math.inf:
            raise ParameterError(
                f"epsilon must be a number above 0, not {in_short(self.epsilon)}"
            )
        if not is_real(self.delta) or not 0 < self.delta < 1:
            raise ParameterError(
                f"delta must be above 0 and below 1, not {in_short(self.delta)}"
            )
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def left(self) -> tuple[float, float]:
        """ε and δ for exact Gaussian mechanisms, less what is set aside; δ can be below 0."""
        # a law within e^±a, 2a ≤ ε _SHARE, changes δ by this factor; see `Loss.epsilon`
        near = math.exp(-self.epsilon * _SHARE / 2) - _SHARE
        return self.epsilon * (1 - _SHARE), self.delta * (1 - EXPOSED) * near

    @cached_property
    def squares(self) -> Fraction:
        """Largest Σ μ² of sums within the budget.

        MissingExtra is raised if dp-accounting is not installed.
        """
        epsilon, delta = self.left
        sigma = sigma_of(epsilon, max(delta, 0.0))  # δ < 0: so large an ε leaves nothing
        return 1 / Fraction(sigma) ** 2 if math.isfinite(sigma) else Fraction(0)

    def allows(self, loss: Loss) -> bool:
        """Return whether the loss of all sums is within the budget.

        Raises
        ------
        MissingExtra
            dp-accounting is not installed.
        """
        check_kind("loss", loss, Loss, "a secagg.privacy.Loss")
        failing = loss.failure * (1 + math.exp(min(self.epsilon, 700.0)))
        # together, since earlier results can decide which of both distances grows
        slack = loss.law.beyond(loss.sampler).steady_slack
        return (
            loss.squares <= self.squares
            and 2 * slack <= self.epsilon * _SHARE
            and failing <= self.delta * (1 - EXPOSED) * _SHARE
            and loss.exposure <= self.delta * EXPOSED
        )

    def check(self, spent: Loss, sums: int, following: Loss) -> None:
        """Raise `BudgetSpent` unless the budget has room for another sum.

        Parameters
        ----------
        spent : Loss
            Loss of the earlier sums.
        sums : int
            Number of these sums, for the message.
        following : Loss
            Loss of the next sum.
        """
        if self.allows(spent + following):
            return
        budget = f"epsilon {self.epsilon:g} and delta {self.delta:g}"
        if following.failure >= 1:
            why = "has no noise, so no budget allows it; add noise to the parameters"
        elif self.allows(following):
            earlier = "1 sum" if sums == 1 else f"{sums} sums"
            why = f"with this noise is too much after {earlier}; sum these data no more"
        elif self.allows(replace(following, law=NONE)):
            why = "has noise of too few steps for its elements; encode with more steps"
        elif self.allows(replace(following, exposure=0.0)):
            why = "exposes a client too often; take more neighbours, or a larger threshold"
        elif self.allows(replace(following, law=NONE, failure=0.0)):
            why = (
                "has bounds that fail too often for so large an epsilon; take a smaller budget"
            )
        else:
            alone = f"epsilon {following.epsilon(self.delta):.3g} alone"
            why = f"has too little noise, {alone}; take parameters with a larger sigma"
        raise BudgetSpent(f"a sum {why} (the budget has {budget})")
