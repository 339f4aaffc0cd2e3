"""Users' part of a sweep: their draws and messages."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fedmf import _fast
from fedmf.aggregate.vectors import Rows
from fedmf.bayes.gaussian import Floats, check_solved, draw_weight, lower
from fedmf.bayes.sample import Chain
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.training.loop import LocalSteps
from fedmf.training.schedule import Draw

# A clip of 16, the default of the aggregations, then suits moments of up to 256. Counts stay
# exact, as 1/16 is a multiple of the rounding.
UNIT = 16.0


class Sweep(LocalSteps):
    """Users' part of a sweep: each user draws (p_u, b_u) and computes a message.

    Let z = (p_u, 1), with the residual e and the user's weight w. The message has a row for
    each rated item: the lower triangle of w z zᵀ, w z (r − μ − b_u), w e² and 1. Let y =
    (p_u, b_u, g_u) of the user. A few more rows have the lower triangle of y yᵀ and y, and then
    zeros. All numbers are divided by `UNIT`.

    Parameters
    ----------
    chain : state before the sweep
    ratings : ratings of the trained items, on the internal scale
    mean : float, μ
    seed : int, seed of the training, for the users' draws
    profiles : float64, shape (n, k), g_u
    """

    def __init__(
        self, chain: Chain, ratings: Ratings, mean: float, seed: int, profiles: Floats
    ) -> None:
        d = chain.items.shape[1]
        super().__init__(ratings, message_shape(ratings.n_items, d - 1))
        self.chain, self.mean, self._seed, self._profiles = chain, mean, seed, profiles

    @cached_property
    def drawn(self) -> tuple[Floats, Floats]:
        """Draws (p_u, b_u) and weights of all users, also of users without a message."""
        chain, ratings = self.chain, self.ratings
        # drawn for all users, so that a user's numbers do not depend on who sends a message
        rng = np.random.default_rng((self._seed, Draw.USERS, chain.round))
        normal = rng.standard_normal(chain.users.shape)
        noise = chain.noise * chain.weights
        prior = chain.user_prior
        centres = prior.mean + self._profiles @ chain.user_link.weights
        users = user_draws(
            ratings, chain.items, self.mean, noise, centres, prior.precision, normal
        )
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
        z, rest = self._centred(users, block)
        (rows, width), m = self.shape, self.ratings.n_items
        sent = np.empty((rest.size + (rows - m) * len(users), width))
        rated, own = sent[: rest.size], sent[rest.size :].reshape(len(users), -1)
        items = self.chain.items
        _fast.moments(block.indptr, block.items, rest, items, z, weights / UNIT, rated)
        rated[:, -1] = 1 / UNIT
        y = np.concatenate((users, self._profiles[block.users]), axis=1)
        moments = np.concatenate((lower(y), y), axis=1)
        own[:, : moments.shape[1]] = moments / UNIT
        own[:, moments.shape[1] :] = 0.0
        more = np.tile(np.arange(m, rows, dtype=np.int32), len(users))
        return Rows(np.concatenate((block.items, more)), sent, rows)

    def _centred(self, users: Floats, ratings: Block | Ratings) -> tuple[Floats, Floats]:
        """Return z = (p_u, 1) of the users, and r − μ − b_u of their ratings."""
        z = users.copy()
        z[:, -1] = 1.0
        bias = np.repeat(users[:, -1], np.diff(ratings.indptr))
        return z, ratings.values - self.mean - bias


def message_shape(m: int, k: int) -> tuple[int, int]:
    """Return the shape (rows, numbers in a row) of a user's message for m items and rank k."""
    d, size = k + 1, 2 * k + 1  # of x and of y
    width = d * (d + 3) // 2 + 2
    return m + -(-(size * (size + 3) // 2) // width), width


def user_draws(
    ratings: Block | Ratings,
    items: Floats,
    mean: float,
    noise: Floats,
    centres: Floats,
    precision: Floats,
    normal: Floats,
) -> Floats:
    """Draw (p_u, b_u) of users from their conditional distribution (eq. 11).

    Let x = (q_i, 1). A user's precision is Λ_U + α w Σ x xᵀ, and the shift is
    Λ_U c_u + α w Σ x (r − μ − b_i), over the rated items. The result has the shape (n, d). A
    row depends on no other row. Raises SettingError if a precision is not positive definite.

    Parameters
    ----------
    ratings : ratings of n users, on the internal scale
    items : float64, shape (m, d), rows (q_i, b_i)
    mean : float, μ
    noise : float64, shape (n,), α w_u of the users
    centres, precision : float64, shapes (n, d) and (d, d), c_u and Λ_U of the users' priors
    normal : float64, shape (n, d), standard normal numbers; zeros give the means
    """
    right = np.column_stack((items[:, -1] + mean, items[:, :-1], np.ones(len(items))))
    left = np.ones((len(normal), right.shape[1]))  # (1, p_u, b_u)
    shifts = np.ascontiguousarray(centres @ precision)
    block = ratings.indptr, ratings.items, ratings.values
    check_solved(_fast.draw_users(*block, right, left, 1, noise, precision, shifts, normal))
    return left[:, 1:]
