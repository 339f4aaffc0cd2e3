"""Interface of a federated model: the steps of a user and of the server in a round.

To add a model, write a frozen dataclass that inherits from `fedmf.settings.Settings` and has
the members of `FederatedModel`; `fedmf.Trainer` trains it. Export it from `fedmf.models`.
"""

from __future__ import annotations

from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block

__all__ = ["FederatedModel", "Raters"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Raters:
    """Number of users who rated each item, among the users that were counted.

    Parameters
    ----------
    counts : int64, shape (m,), raters among the counted users, ≤ n_i
    share : float, share of the cohort that was counted, 0 < share ≤ 1; the others dropped out
    """

    counts: NDArray[np.int64]
    share: float

    @property
    def bound(self) -> NDArray[np.float64]:
        """Bound that n_i hardly exceeds: two deviations above count / share, at least 1.

        It is n_i itself if no user dropped out. A step divided by a count of half the raters
        would be twice as long, and the item would never settle.
        """
        spread = np.sqrt(self.counts * (1 - self.share))
        return np.asarray(np.maximum((self.counts + 2 * spread) / self.share, 1.0))

    def at_least(self, least: int) -> NDArray[np.bool_]:
        """Return the items with so many raters, as bool, shape (m,)."""
        return np.asarray(self.counts >= least)


class FederatedModel(Protocol):
    """Hyper-parameters and steps of a factorisation r̂_ui = q_i · p_u.

    The server has Q, float64 (m, k), and every user their own p_u, float64 (k,). In a round
    each user computes and sends a table of m rows. The server computes the next Q from the sum
    of the tables. A model is a frozen dataclass of hyper-parameters only.

    Users' steps take a block of users. A user's numbers must not depend on the rest of the
    block. Then plain sums (in large blocks) and private sums (user by user) give the same
    integers.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def width(self) -> int:
        """Numbers that a user sends per item."""
        ...

    @property
    def needs_counts(self) -> bool:
        """True if the users must count the items' raters before the first sum."""
        ...

    @property
    def solves_users(self) -> bool:
        """True if p_u follows from Q alone, so that users find it without a round."""
        ...

    @property
    def bears_clipping(self) -> bool:
        """True if a step is still useful after the aggregation clipped elements of it."""
        ...

    @property
    def remedy(self) -> str:
        """Remedy if the factors diverge, in an error message after a colon."""
        ...

    def initial(self, ratings: Ratings, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the starting factors P (n_users, k) and Q (m, k)."""
        ...

    def trained_items(self, raters: Raters | None, n_items: int) -> NDArray[np.bool_]:
        """Return the trained items as bool, shape (m,); all if nothing was counted."""
        ...

    def find_users(self, q: Floats, p: Floats, block: Block) -> Floats:
        """Return the new factors of a block's users.

        Parameters
        ----------
        q : float64, shape (m, k)
        p : float64, shape (n, k), their current factors; a user without ratings keeps them
        block : ratings of the n users

        Returns
        -------
        p : float64, shape (n, k)
            A diverged user's row is NaN; the trainer raises SettingError.
        """
        ...

    def local_steps(
        self, q: Floats, p: Floats, block: Block, trained: NDArray[np.bool_]
    ) -> tuple[Floats, Rows]:
        """Do the part of a block's users in a round.

        Parameters
        ----------
        q, p, block
            See `find_users`.
        trained : bool, shape (m,), the result of `trained_items`

        Returns
        -------
        p
            The users' new factors.
        rows
            Their messages, one row of `width` floats for each rating in the order of the block;
            zeros where the item is not trained.
        """
        ...

    def server_step(self, q: Floats, total: Floats, raters: Raters | None) -> Floats:
        """Return the next Q from Q, (m, k), and the sum of the users' rows, (m, width)."""
        ...
