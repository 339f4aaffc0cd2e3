"""CF: centralised alternating least squares on implicit feedback, the reference for FCF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

import numpy as np

from fedmf.data import Ratings
from fedmf.fcf.confidence import Floats, Implicit, solve
from fedmf.fcf.federated import FORMER, XY
from fedmf.models import Factors
from fedmf.models.estimator import not_continued
from fedmf.settings import Count, Has, Seed
from fedmf.training.history import RoundRecord
from fedmf.training.loop import Round, keep
from fedmf.training.schedule import Callbacks, Iterative


class CF(Iterative):
    """Centralised collaborative filtering, with all ratings in one place.

    The method is due to Hu, Koren and Volinsky 2008.

    Parameters
    ----------
    model : hyper-parameters, `Implicit()` by default
    rounds : int, number of passes; each solves for all y_i (eq. 9) and all x_u (eq. 7), ≥ 1
    seed : int, seed of the starting Y, ≥ 0
    callbacks : functions that are called with the record of each finished pass

    Attributes
    ----------
    model_ : Factors, X and Y
    history_ : History, a record of each pass, without errors
    """

    model_: Factors
    _former = FORMER

    def __init__(
        self,
        model: Annotated[Implicit, Has("confidence", "Implicit()")] | None = None,
        *,
        rounds: Count = 20,
        seed: Seed = 0,
        callbacks: Callbacks = (),
    ) -> None:
        self.model = Implicit() if model is None else model
        self.rounds, self.seed, self.callbacks = rounds, seed, callbacks
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
            On Ctrl-C in the first pass. Later Ctrl-C keeps the finished passes, without an
            error.
        """
        self._forget()
        not_continued(self, start)
        nothing = XY(np.empty(0), np.empty(0), np.empty(0))
        records = (
            RoundRecord(round=number, cohort=train.n_users, survivors=train.n_users)
            for number in range(1, self.rounds + 1)
        )
        pairs = zip(self._passes(train), records, strict=True)
        rounds = (Round(state, None, record, None) for state, record in pairs)
        found, history = keep(rounds, nothing, self.report)
        if found is nothing:
            raise KeyboardInterrupt
        self.model_, self.history_ = self.model.factors(*found, train), history
        return self

    def iterate(self, ratings: Ratings) -> Iterator[tuple[Floats, Floats]]:
        """Yield X (n_users, k) and Y (n_items, k) after each pass; X is exact for Y.

        `ratings` and errors are the same as in `fit`; no fitted attribute is set.
        """
        return ((x, y) for x, y, _ in self._passes(ratings))

    def _passes(self, ratings: Ratings) -> Iterator[XY]:
        confidence = self.model.confidence(ratings)
        users, items = confidence.by_users, confidence.by_items
        of_users, of_items = (self.model.penalty(one.sums) for one in (users, items))
        first = np.eye(self.model.k)[0] * self.model.centred
        x = solve(self.model.start(ratings, self.seed), users, of_users, first)
        for _ in range(self.rounds):
            y = solve(x, items, of_items)
            centre = x.mean(axis=0) * self.model.centred
            x = solve(y, users, of_users, centre)
            yield XY(x, y, centre)
