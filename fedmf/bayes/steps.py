"""Sweep of the sampler: the users' draws and messages, and the server's draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedmf import _fast
from fedmf.aggregate import Aggregate
from fedmf.aggregate.vectors import Rows
from fedmf.bayes.gaussian import (
    Link,
    Prior,
    check_solved,
    draw_link,
    draw_noise,
    draw_prior,
    draw_weight,
    draws,
    lower,
    symmetric,
    triangle,
)
from fedmf.bayes.sample import Sample, predictions
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.data.internal import to_public
from fedmf.errors import Diverged
from fedmf.models.federated import Raters
from fedmf.training.history import RoundRecord, mae, rmse
from fedmf.training.loop import LocalSteps, Training
from fedmf.training.schedule import Draw

__all__ = ["Chain", "Sweep", "Sweeps", "user_draws"]

Floats = NDArray[np.float64]

# A clip of 16, the default of the aggregations, then suits moments of up to 256. Counts stay
# exact, as 1/16 is a multiple of the rounding.
UNIT = 16.0


@dataclass(frozen=True, eq=False)
class Chain:
    """State of the sampler after a sweep.

    Parameters
    ----------
    users, items : float64, shapes (n, d) and (m, d): (p_u, b_u) and (q_i, b_i)
    weights : float64, shape (n,), w_u
    noise : float, α
    user_prior, item_prior, link : see `Sample`
    round : int, number of the next round, ≥ 1
    samples : draws kept so far
    guesses
        Sums of their predictions, for the training ratings and the test ratings if there are
        any; before the first kept draw the predictions of the last one.
    """

    users: Floats
    items: Floats
    weights: Floats
    noise: float
    user_prior: Prior
    item_prior: Prior
    link: Link
    round: int = 1
    samples: tuple[Sample, ...] = ()
    guesses: tuple[Floats, ...] = ()

    @property
    def sample(self) -> Sample:
        """The draw in the form that is kept."""
        users, items = self.users.astype(np.float32), self.items.astype(np.float32)
        weights = self.weights.astype(np.float32)
        return Sample(
            users, items, weights, self.noise, self.user_prior, self.item_prior, self.link
        )


class Sweep(LocalSteps):
    """Users' part of a sweep, in which each user draws (p_u, b_u) and computes a message.

    The message has a row for each rated item: the lower triangle of w z zᵀ, w z (r − μ − b_u),
    w e² and 1, with z = (p_u, 1), the residual e and the user's weight w. One more row has the
    lower triangle of x xᵀ and x for the user's own x = (p_u, b_u). All numbers are divided by
    `UNIT`.

    Parameters
    ----------
    chain : state before the sweep
    ratings : ratings of the trained items, on the internal scale
    mean : float, μ
    seed : int, seed of the training, for the users' generators
    """

    def __init__(self, chain: Chain, ratings: Ratings, mean: float, seed: int) -> None:
        d = chain.items.shape[1]
        super().__init__(ratings, (ratings.n_items + 1, d * (d + 3) // 2 + 2))
        self.chain, self.mean, self._seed = chain, mean, seed

    @cached_property
    def drawn(self) -> tuple[Floats, Floats]:
        """Draws (p_u, b_u) and weights of all users; those without a message draw, too."""
        chain, ratings = self.chain, self.ratings
        # A row or number of each array is a user's, whoever sends a message.
        rng = np.random.default_rng((self._seed, Draw.USERS, chain.round))
        normal = rng.standard_normal(chain.users.shape)
        noise = chain.noise * chain.weights
        users = user_draws(ratings, chain.items, self.mean, noise, chain.user_prior, normal)
        z, rest = self._centred(users, ratings)
        pairs = ratings.users.astype(np.int64), ratings.items.astype(np.int64)
        found = np.empty(rest.size)
        _fast.predict(z, chain.items, *pairs, found)
        errors = rest - found
        squares = np.bincount(pairs[0], errors * errors, ratings.n_users).astype(np.float64)
        return users, draw_weight(rng, np.diff(ratings.indptr), chain.noise * squares)

    def rows(self, block: Block) -> Rows:
        """Return the messages of a block's users."""
        users, weights = (table[block.users] for table in self.drawn)
        m, d = self.ratings.n_items, users.shape[1]
        z, rest = self._centred(users, block)
        sent = np.empty((rest.size + len(users), self.shape[1]))
        rated, own = sent[: rest.size], sent[rest.size :]
        items = self.chain.items
        _fast.moments(block.indptr, block.items, rest, items, z, weights / UNIT, rated)
        rated[:, -1] = 1 / UNIT
        own[:, : -d - 2] = lower(users) / UNIT
        own[:, -d - 2 : -2] = users / UNIT
        own[:, -2:] = 0.0
        places = np.concatenate((block.items, np.full(len(users), m, dtype=np.int32)))
        return Rows(places, sent, m + 1)

    def _centred(self, users: Floats, ratings: Block | Ratings) -> tuple[Floats, Floats]:
        """Return z = (p_u, 1) of the users, and r − μ − b_u of their ratings."""
        z = users.copy()
        z[:, -1] = 1.0
        bias = np.repeat(users[:, -1], np.diff(ratings.indptr))
        return z, ratings.values - self.mean - bias


class Sweeps(Training[Chain, Sweep]):
    """Training of the sampler; a round is a sweep.

    Parameters
    ----------
    ratings, test : training and test ratings on the internal scale; `test` may be None
    features : float64, F, shape (m, f), standardised; f = 0 for no link
    mean : float, μ
    seed, min_raters : see `FedBPMF`
    kept : numbers of the rounds after which a draw is kept, ascending
    scale : public scale, for the errors
    """

    clip_remedy = "a clipped moment has another posterior; raise that to 64"

    def __init__(
        self,
        ratings: Ratings,
        test: Ratings | None,
        features: Floats,
        *,
        mean: float,
        seed: int,
        min_raters: int,
        kept: range | Sequence[int],
        scale: tuple[float, float],
    ) -> None:
        self.ratings, self.test, self.features = ratings, test, features
        self.mean, self.seed, self.min_raters, self.scale = mean, seed, min_raters, scale
        self.needs_counts = min_raters > 1
        self._kept = frozenset(kept)
        self._trained: tuple[Raters | None, Ratings] = (None, ratings)

    def local_steps(self, state: Chain, raters: Raters | None) -> Sweep:
        """Return the users' part of the next sweep; ratings of untrained items are left out."""
        if raters is not None and raters is not self._trained[0]:
            enough = raters.at_least(self.min_raters)[self.ratings.items]
            self._trained = raters, self.ratings.take(enough)
        return Sweep(state, self._trained[1], self.mean, self.seed)

    def server_step(self, state: Chain, steps: Sweep, total: Aggregate) -> Chain:
        """Draw α, the hyper-priors, the link and all items, in this order (section 3.3)."""
        rng = np.random.default_rng((self.seed, Draw.SERVER, state.round))
        d = state.items.shape[1]
        # all users, as far as the survivors tell
        scale = UNIT * self.ratings.n_users / len(total.survivors)
        table = total.sum.reshape(steps.shape) * scale
        moments, shifts = table[:, : -d - 2], table[:, -d - 2 : -2]
        squares, counts = table[:-1, -2], table[:-1, -1]
        noise = draw_noise(rng, float(counts.sum()), float(squares.sum()))
        products = symmetric(moments[-1], d)
        user_prior = draw_prior(rng, float(self.ratings.n_users), shifts[-1], products)
        seen = counts > 0
        rest = (state.items - self.features @ state.link.weights)[seen]
        item_prior = draw_prior(rng, float(seen.sum()), rest.sum(axis=0), rest.T @ rest)
        link = draw_link(rng, self.features[seen], state.items[seen], item_prior, state.link)
        expected = item_prior.mean + self.features @ link.weights
        items = draws(
            item_prior.precision[triangle(d)] + noise * moments[:-1],
            expected @ item_prior.precision + noise * shifts[:-1],
            rng.standard_normal(state.items.shape),
        )
        users, weights = steps.drawn
        chain = replace(
            state,
            users=users,
            items=items,
            weights=weights,
            noise=noise,
            user_prior=user_prior,
            item_prior=item_prior,
            link=link,
        )
        return self._with_predictions(chain)

    def _with_predictions(self, chain: Chain) -> Chain:
        """Return the state with this draw kept, and its predictions added, if it is due."""
        due = chain.round in self._kept
        if chain.samples and not due:
            return chain
        parts = [self.ratings] if self.test is None else [self.ratings, self.test]
        sample = chain.sample
        found = [predictions(sample, self.mean, part.users, part.items) for part in parts]
        if not due:
            return replace(chain, guesses=tuple(found))
        if chain.samples:
            found = [old + new for old, new in zip(chain.guesses, found, strict=True)]
        return replace(chain, samples=(*chain.samples, sample), guesses=tuple(found))

    def round_over(self, state: Chain, number: int) -> Chain:
        """Return the state with the number of the next round."""
        return replace(state, round=number + 1)

    def measured(self, record: RoundRecord, state: Chain, raters: Raters | None) -> RoundRecord:
        """Return the record with the errors of the average of all draws kept so far."""
        if raters is not None:
            trained = int(raters.at_least(self.min_raters).sum())
            record = replace(record, trained_items=trained)
        if not state.guesses:
            return record
        share = 1 / max(len(state.samples), 1)
        train, *tests = (to_public(share * one, self.scale) for one in state.guesses)
        error = rmse(to_public(self.ratings.values, self.scale), train)
        if not error <= self.scale[1] - self.scale[0]:
            raise Diverged(
                f"the draws diverge: a training error of {error:.3g} on a scale from "
                f"{self.scale[0]:g} to {self.scale[1]:g}; check the ratings, or lower k"
            )
        record = replace(record, train_rmse=error)
        if self.test is None:
            return record
        values = to_public(self.test.values, self.scale)
        return replace(record, test_rmse=rmse(values, tests[0]), test_mae=mae(values, tests[0]))


def user_draws(
    ratings: Block | Ratings,
    items: Floats,
    mean: float,
    noise: Floats,
    prior: Prior,
    normal: Floats,
) -> Floats:
    """Draw (p_u, b_u) of users from their conditional distribution (eq. 11).

    A user's precision is Λ_U + α w Σ x xᵀ and the shift Λ_U μ_U + α w Σ x (r − μ − b_i), over
    the rated items, with x = (q_i, 1). The result has the shape (n, d). A row depends on no
    other row. Raises SettingError if a precision is not positive definite.

    Parameters
    ----------
    ratings : ratings of n users, on the internal scale
    items : float64, shape (m, d), rows (q_i, b_i)
    mean, prior : μ and the users' prior
    noise : float64, shape (n,), α w_u of the users
    normal : float64, shape (n, d), standard normal numbers; zeros give the means
    """
    right = np.column_stack((items[:, -1] + mean, items[:, :-1], np.ones(len(items))))
    left = np.ones((len(normal), right.shape[1]))  # (1, p_u, b_u)
    shifts = np.tile(prior.precision @ prior.mean, (len(normal), 1))
    block = ratings.indptr, ratings.items, ratings.values
    check_solved(
        _fast.draw_users(*block, right, left, 1, noise, prior.precision, shifts, normal)
    )
    return left[:, 1:]
