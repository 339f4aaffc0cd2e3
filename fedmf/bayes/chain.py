"""State of the sampler between two sweeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.bayes.gaussian import Link, Prior
from fedmf.bayes.sample import Sample
from fedmf.bayes.traits import Traits

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chain:
    """State of the sampler after a sweep.

    Parameters
    ----------
    users, items : float64, shapes (n, d) and (m, d): (p_u, b_u) and (q_i, b_i)
    weights : float64, shape (n,), w_u
    noise : float, α
    user_prior, item_prior, link, user_link : see `Sample`
    traits : implicit feedback, None before the middle of the burn-in
    round : int, number of the next round, ≥ 1
    samples : draws kept so far
    guesses
        Sums of the predictions of the kept draws, for the training ratings and any test
        ratings. Before the first kept draw, the predictions of the latest draw.
    """

    users: Floats
    items: Floats
    weights: Floats
    noise: float
    user_prior: Prior
    item_prior: Prior
    link: Link
    user_link: Link
    traits: Traits | None = None
    round: int = 1
    samples: tuple[Sample, ...] = ()
    guesses: tuple[Floats, ...] = ()

    @property
    def sample(self) -> Sample:
        """The draw in kept form, as float32."""
        users, items, weights = (
            table.astype(np.float32) for table in (self.users, self.items, self.weights)
        )
        priors, links = (self.user_prior, self.item_prior), (self.link, self.user_link)
        return Sample(users, items, weights, self.noise, *priors, *links)
