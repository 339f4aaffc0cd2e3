"""Adam, as the server steps with it on what the users' gradients come to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedmf.context.model import Floats

__all__ = ["Adam"]

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # the constants of Kingma and Ba 2015


@dataclass(frozen=True, eq=False)
class Adam:
    """The state of Adam (Kingma and Ba, ICLR 2015, algorithm 1).

    Parameters
    ----------
    first, second
        m_t and v_t, float64, of the parameters' shape.
    steps
        t, the number of steps taken.
    """

    first: Floats
    second: Floats
    steps: int = 0

    @classmethod
    def like(cls, theta: Floats) -> Adam:
        """Return the state before the first step on parameters like these."""
        return cls(np.zeros_like(theta), np.zeros_like(theta))

    def step(self, theta: Floats, gradient: Floats, rate: float) -> tuple[Floats, Adam]:
        """Return the parameters after a step against `gradient`, and the state after it."""
        after = replace(
            self,
            first=BETA_1 * self.first + (1 - BETA_1) * gradient,
            second=BETA_2 * self.second + (1 - BETA_2) * gradient**2,
            steps=self.steps + 1,
        )
        mean = after.first / (1 - BETA_1**after.steps)
        deviation = np.sqrt(after.second / (1 - BETA_2**after.steps))
        return np.asarray(theta - rate * mean / (deviation + EPSILON)), after
