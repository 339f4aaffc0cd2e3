"""Interface of a federated model: the steps of a user and of the server in a round.

To add a model, write a frozen dataclass that inherits from `fedmf.settings.Settings` and has
the members of `FederatedModel`. Export the class from `fedmf.models`. `fedmf.Trainer` trains
the model.
"""

from __future__ import annotations

from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Raters:
    """Number of raters of each item, counted over the users who did not drop out.

    Parameters
    ----------
    counts : int64, shape (m,), counted raters, at most n_i, the raters in the cohort
    share : float, share of the cohort that was counted, 0 < share ≤ 1
    """

    counts: NDArray[np.int64]
    share: float

    @property
    def bound(self) -> NDArray[np.float64]:
        """Divisor of an item's step: n_i if no user dropped out, else a bound on n_i, ≥ 1.

        The bound is two standard deviations above count / share. A step divided by a count of
        half the raters would be twice as long, and the item's factors would never converge.
        """
        spread = np.sqrt(self.counts * (1 - self.share))
        return np.asarray(np.maximum((self.counts + 2 * spread) / self.share, 1.0))

    def at_least(self, least: int) -> NDArray[np.bool_]:
        """Return True for each item with at least `least` counted raters: bool, shape (m,)."""
        return np.asarray(self.counts >= least)


class FederatedModel(Protocol):
    """Hyper-parameters and steps of a factorisation r̂_ui = q_i · p_u.

    The server has Q, float64 (m, k), and every user their own p_u, float64 (k,). In a round
    each user computes and sends a table of m rows. The server computes the next Q from the sum
    of the tables. A model is a frozen dataclass of hyper-parameters only.

    A method for users takes a block of users. A user's result must not depend on the other
    users in the block. Then plain sums, computed in large blocks, and private sums, computed
    user by user, give the same integers. All ratings are on the internal scale, 1 to 5.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def width(self) -> int:
        """Number of floats that a user sends per item."""

    @property
    def needs_counts(self) -> bool:
        """True if the users must count the items' raters before the first sum."""

    @property
    def needs_mean(self) -> bool:
        """True if the trainer must have the mean rating summed before the first round.

        False if the attribute is missing; `at_mean` is then not called.
        """

    @property
    def solves_users(self) -> bool:
        """True if each user can compute p_u from Q and their ratings alone, at any time."""

    @property
    def bears_clipping(self) -> bool:
        """True if a step is still useful after the aggregation clipped elements of the sum."""

    @property
    def remedy(self) -> str:
        """Remedy for the error message if the factors diverge, such as "halve the rate"."""

    def at_mean(self, mean: float) -> Self:
        """Return the model with the mean rating, a float on the internal scale 1 to 5."""

    def initial(self, ratings: Ratings, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the starting factors P (n_users, k) and Q (m, k)."""

    def trained_items(self, raters: Raters | None, n_items: int) -> NDArray[np.bool_]:
        """Return True for each item to train: bool, shape (m,); for all if `raters` is None."""

    def find_users(self, q: Floats, p: Floats, block: Block) -> Floats:
        """Return the new factors of a block's users.

        Parameters
        ----------
        q : float64, shape (m, k)
        p : float64, shape (n, k), current factors of the users; without ratings they are kept
        block : ratings of the n users

        Returns
        -------
        p : float64, shape (n, k)
            If a user's factors diverge, the row is NaN, and the trainer raises SettingError.
        """

    def local_steps(
        self, q: Floats, p: Floats, block: Block, trained: NDArray[np.bool_]
    ) -> tuple[Floats, Rows]:
        """Compute the new factors and the messages of a block's users in a round.

        Parameters
        ----------
        q, p, block : see `find_users`
        trained : bool, shape (m,), the result of `trained_items`

        Returns
        -------
        p
            The users' new factors.
        rows
            The users' messages: a row of `width` floats for each rating, in the order of the
            block. The row of an item that is not trained is zero.
        """

    def server_step(self, q: Floats, total: Floats, raters: Raters | None) -> Floats:
        """Return the next Q from Q, shape (m, k), and the sum of all tables, (m, width)."""
