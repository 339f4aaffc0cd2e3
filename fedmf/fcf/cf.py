"""CF: centralised alternating least squares on implicit feedback, the reference for FCF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.aggregation import Progress, silent
from fedmf.data import Ratings
from fedmf.fcf.confidence import Implicit, solve
from fedmf.models import Factors
from fedmf.models.recommender import Estimator, not_continued
from fedmf.settings import Count, Has, Seed

Floats = NDArray[np.float64]


class CF(Estimator):
    """Centralised collaborative filtering, with all ratings in one place.

    The method is due to Hu, Koren and Volinsky 2008.

    Parameters
    ----------
    model : hyper-parameters, `Implicit()` by default
    epochs : int, number of passes; each solves for all y_i (eq. 9) and all x_u (eq. 7), ≥ 1
    seed : int, seed of the starting Y, ≥ 0
    progress : function of the name of the phase, the finished epochs and all epochs
    """

    model_: Factors
    _former = "factors_"

    def __init__(
        self,
        model: Annotated[Implicit, Has("confidence", "Implicit()")] | None = None,
        *,
        epochs: Count = 20,
        seed: Seed = 0,
        progress: Progress = silent,
    ) -> None:
        self.model = Implicit() if model is None else model
        self.epochs, self.seed, self.progress = epochs, seed, progress
        self.__post_init__()

    def fit(self, train: Ratings, test: Ratings | None = None, *, start: None = None) -> Self:
        """Learn X and Y from ratings of at least 0, such as `fedmf.fcf.views` returns.

        Parameters
        ----------
        train : ratings of all users
        test : not used, since no error is recorded
        start : None, as `CF` does not continue a training

        Raises
        ------
        DataError, SettingError
            If a rating, or the seed, is negative.
        KeyboardInterrupt
            On Ctrl-C; ``model_`` is then the result of the last finished epoch.
        """
        self._forget()
        not_continued(self, start)
        for done, (x, y) in enumerate(self.iterate(train), start=1):
            self.model_ = self.model.factors(x, y, train)
            self.progress("epochs", done, self.epochs)
        return self

    def iterate(self, ratings: Ratings) -> Iterator[tuple[Floats, Floats]]:
        """Yield X (n_users, k) and Y (n_items, k) after each epoch; X is exact for Y.

        `ratings` and errors are the same as in `fit`; no fitted attribute is set.
        """
        users = self.model.confidence(ratings).tables()
        items = users[0].T, users[1].T
        of_users = self.model.penalty(users[0].sum(axis=1), ratings.n_items)
        of_items = self.model.penalty(items[0].sum(axis=1), ratings.n_users)
        x = solve(self.model.start(ratings, self.seed), *users, of_users)
        for _ in range(self.epochs):
            y = solve(x, *items, of_items)
            x = solve(y, *users, of_users)
            yield x, y
