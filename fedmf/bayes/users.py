"""Users' part of a sweep: their draws and messages."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedmf import _fast
from fedmf.aggregate.vectors import Rows
from fedmf.bayes.gaussian import Floats, Prior, check_solved, draw_weight
from fedmf.bayes.sample import Chain
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.models.moments import lower
from fedmf.training.schedule import Draw
from fedmf.training.steps import LocalSteps

# A clip of 16, the default of the aggregations, then suits moments of up to 256.
UNIT = 16.0
# sums over a user's ratings, of up to 65,536, are sent as multiples of UNIT, and the rest
HIGH = 256.0
# profiles are small: with less, products of two are rounded to zero at 10 fractional bits
PROFILE = 4.0


class Sweep(LocalSteps):
    """Users' part of a sweep: each user draws (p_u, b_u) and computes a message.

    Let z be the round's columns of (p_u, 1), with the residual e and the user's weight w. The
    message has a row for each rated item: the lower triangle of w z zᵀ, and w z e. Let y =
    (p_u, b_u, 4 g_u, 1) of the user, or 0 without a rating, as such a draw tells nothing of the
    prior. A few more rows have the lower triangle of y yᵀ, the number of ratings and Σ w e²,
    and then zeros. In z and y, p_u is divided by `units`; all numbers are divided by `UNIT`.

    Parameters
    ----------
    chain : state before the sweep
    ratings : ratings of the trained items, on the internal scale
    mean : float, μ
    seed : int, seed of the training, for the users' draws
    profiles : float64, shape (n, k), g_u
    columns : columns of the items that the round draws, ascending; the last is the bias
    """

    def __init__(
        self,
        chain: Chain,
        ratings: Ratings,
        mean: float,
        seed: int,
        profiles: Floats,
        columns: NDArray[np.intp],
    ) -> None:
        shape = message_shape(ratings.n_items, chain.items.shape[1] - 1, columns.size - 1)
        super().__init__(ratings, shape)
        self.chain, self.mean, self._seed, self._profiles = chain, mean, seed, profiles
        self.columns, self.units = columns, _units(chain.user_prior)

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
        errors = self._errors(users, ratings)
        squares = np.bincount(ratings.users, errors * errors, ratings.n_users).astype(float)
        return users, draw_weight(rng, np.diff(ratings.indptr), chain.noise * squares)

    def rows(self, block: Block) -> Rows:
        """Return the messages of a block's users."""
        users, weights = (table[block.users] for table in self.drawn)
        errors = self._errors(users, block)
        (rows, width), m = self.shape, self.ratings.n_items
        sent = np.empty((errors.size + (rows - m) * len(users), width))
        rated, own = sent[: errors.size], sent[errors.size :].reshape(len(users), -1)
        whose = np.repeat(np.arange(len(users)), block.counts)
        z = (_extended(users) / self.units)[:, self.columns]
        moments = weights[:, None] / UNIT * np.concatenate((lower(z), z), axis=1)
        np.take(moments, whose, axis=0, out=rated, mode="clip")  # writes without a buffer
        rated[:, -self.columns.size :] *= errors[:, None]
        own_profiles = PROFILE * self._profiles[block.users]
        y = np.column_stack((users / self.units, own_profiles, np.ones(len(users))))
        y *= (block.counts > 0)[:, None]
        squares = weights * np.bincount(whose, errors * errors, len(users))
        whole, rest = np.divmod(np.column_stack((block.counts, squares)) / UNIT, 1.0)
        digits = np.stack((whole / HIGH, rest), axis=2).reshape(len(users), 4)
        about = np.concatenate((lower(y) / UNIT, digits), axis=1)
        own[:, : about.shape[1]] = about
        own[:, about.shape[1] :] = 0.0
        more = np.tile(np.arange(m, rows, dtype=np.int32), len(users))
        return Rows(np.concatenate((block.items, more)), sent, rows)

    def _errors(self, users: Floats, ratings: Block | Ratings) -> Floats:
        """Return the residuals e of ratings, for the rows (p_u, b_u) of their users."""
        whose = np.repeat(np.arange(len(users)), np.diff(ratings.indptr))
        found = np.empty(whose.size)
        items = ratings.items.astype(np.int64)
        _fast.predict(_extended(users), self.chain.items, whose, items, found)
        return np.asarray(ratings.values - self.mean - users[whose, -1] - found)


def _extended(users: Floats) -> Floats:
    """Return the rows (p_u, 1) for the rows (p_u, b_u)."""
    rows = users.copy()
    rows[:, -1] = 1.0
    return rows


def _units(prior: Prior) -> Floats:
    """Return the units of (p_u, b_u): powers of two, not below the prior's root mean square.

    The ratings determine only the products of users' and items' factors. In a long chain of
    blocks the users' factors can grow as the items' shrink, and with them the moments.
    """
    size = np.sqrt(prior.mean**2 + np.diagonal(np.linalg.inv(prior.precision)))
    units = np.exp2(np.ceil(np.log2(np.maximum(size, 1.0))))
    return np.append(units[:-1], 1.0)  # z has 1 in the place of b_u


def message_shape(m: int, k: int, block: int) -> tuple[int, int]:
    """Return the shape (rows, numbers in a row) of a user's message.

    Parameters
    ----------
    m : number of items
    k, block : number of factors of an item, and of the factors that a round draws
    """
    size = 2 * k + 2  # of y
    width = (block + 1) * (block + 4) // 2
    return m + -(-(size * (size + 1) // 2 + 4) // width), width


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
