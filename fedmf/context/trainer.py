"""Training a context model by full federated gradients, one secure sum a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Aggregation, RoundAborted
from fedmf.aggregate.aggregation import Progress
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.context.model import ContextModel, Floats
from fedmf.data import Features, Ratings
from fedmf.data.checks import check_ratings
from fedmf.data.features import check_are_features
from fedmf.errors import ModelError, SettingError
from fedmf.settings import check_able, check_how_many, number, pairs
from fedmf.training import Adam
from fedmf.training.optimisers import BETA_1, BETA_2
from fedmf.training.schedule import Draw, Scheduled

__all__ = ["ContextTrainer"]

UNIT = 256.0
"""What users divide by before they send, a power of two.

So a number of ratings up to 4,096 and the sum of as many gradients fit the clip of 16 that an
aggregation has by default, and the number is a multiple of its 2^-16, hence exact.
"""

CENTRE = 0.625  # of the scale, as of a neutral start of FedMF: 3.5 on 1 to 5


class ContextTrainer(Scheduled):
    """Trains a `ContextModel` on ratings, each user a client of the aggregation.

    In a round each user of the cohort sends one vector (Σ_j ∇_j, n_u) / 256: the gradient
    summed over their own ratings, and how many these are, which is as private as the
    gradient. The server learns the two sums, divides one by the other, and takes a step of
    Adam. The items' features are public; the user's own, and which items they rated, stay
    with the user. The models are small, so that a vector has dozens of elements, not
    thousands.

    Parameters
    ----------
    model
        Whose parameters are trained.
    aggregation
        How the users' vectors are summed; None for `PlainSum`.
    rounds
        How many, at least 1.
    seed, cohort, dropout
        Who takes part and who vanishes, as of `Trainer`.
    progress
        Called after each round with what is done, the round and their number.

    Attributes
    ----------
    parameters_ : float64 array
        θ, as `model` lays it out.
    digests_ : tuple of str
        Of each round's sum, `Aggregate.digest`; "" where the round was aborted.
    interrupted_ : bool
        Whether Ctrl-C ended the training early; what the finished rounds taught is kept.

    Raises
    ------
    SettingError
        If a setting is out of range.
    """

    parameters_: Floats
    digests_: tuple[str, ...]
    interrupted_: bool

    def __init__(
        self,
        model: ContextModel,
        aggregation: Aggregation | None = None,
        *,
        rounds: int = 200,
        seed: int = 0,
        cohort: int | float | None = None,
        dropout: float = 0.0,
        progress: Progress = lambda what, done, of: None,
    ) -> None:
        super().__init__(aggregation, rounds=rounds, seed=seed, cohort=cohort, dropout=dropout)
        check_able("gradient", "FedLR(); FedMF() and FedALS() are for Trainer", model=model)
        self.model: ContextModel = model
        self.progress = progress

    def fit(self, train: Ratings, items: Features, users: Features | None = None) -> Self:
        """Train from the start.

        A KeyboardInterrupt ends the training early and keeps what the finished rounds taught.
        After an error, its own or that of `progress`, nothing is fitted.

        Parameters
        ----------
        train
            The users' ratings.
        items, users
            One row per item, and one per user (None where nothing is known of them).

        Raises
        ------
        SettingError
            If the features are something else, such as an array, or not of these items and
            users, the settings do not fit, or a user's numbers exceed the aggregation's clip or
            all bounds.
        """
        for name in ("parameters_", "digests_", "interrupted_"):
            vars(self).pop(name, None)
        check_ratings(train=train)
        if users is None:
            users = Features(np.zeros((train.n_users, 0)), ())
        check_are_features(items=items, users=users)
        for what, features, n in (
            ("item", items, train.n_items),
            ("user", users, train.n_users),
        ):
            if len(features) != n:
                raise SettingError(
                    f"there are features of {len(features)} {what}s but ratings of {n}: take "
                    "both from the same data set"
                )
        self._items, self._users, self._train = items.matrix, users.matrix, train
        low, high = train.scale
        theta = self.model.initial(
            items.matrix.shape[1] + users.matrix.shape[1],
            low + CENTRE * (high - low),
            self.schedule.rng(Draw.START),
        )
        move = Adam(rate=self.model.rate, beta1=BETA_1, beta2=BETA_2).fresh()
        self.parameters_, self.digests_ = theta, ()
        self.interrupted_ = False
        try:
            for done in range(1, self.rounds + 1):
                with np.errstate(over="ignore", invalid="ignore"):  # told by the sum
                    self._round(done, move)
                self.progress(type(self.model).__name__, done, self.rounds)
        except KeyboardInterrupt:
            self.interrupted_ = True
        except BaseException:
            del self.parameters_, self.digests_
            raise
        return self

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return the predicted ratings, not clipped to the scale.

        Parameters
        ----------
        users, items
            Integers of one shape: numbers of users and items in the ratings.

        Returns
        -------
        float64 array, of the same shape

        Raises
        ------
        ModelError
            If the model is not trained, a number is out of range or the shapes differ.
        """
        self._check_fitted()
        rows, columns = pairs(users, items, len(self._users), len(self._items))
        x = np.hstack((self._users[rows.reshape(-1)], self._items[columns.reshape(-1)]))
        return self.model.predict(self.parameters_, x).reshape(rows.shape)

    def recommend(self, user: int, k: int = 10) -> tuple[NDArray[np.int64], Floats]:
        """Return the k items with the highest ŷ that the user has not rated, best first.

        Parameters
        ----------
        user
            0 ≤ user < n_users.
        k
            How many, k ≥ 1; fewer are returned where fewer are left.

        Returns
        -------
        items : int64 array, shape (≤ k,)
            Items of the same features differ by rounding at most, and may come in any order.
        predictions : float64 array, of the same shape

        Raises
        ------
        ModelError
            If the model is not trained, the user is unknown, or k is not an integer of at
            least 1.
        """
        self._check_fitted()
        row = number("user", user, len(self._users))
        check_how_many(k)
        fresh = np.setdiff1d(np.arange(len(self._items)), self._train.of_user(row)[0])
        scores = self.predict(np.full(fresh.size, row), fresh)
        best = np.argsort(-scores, kind="stable")[:k]
        return fresh[best].astype(np.int64), scores[best]

    def _check_fitted(self) -> None:
        if not hasattr(self, "parameters_"):
            raise ModelError("the model is not trained yet: call fit first")

    def _round(self, number: int, move: Callable[[Floats], Floats]) -> None:
        """Do one round, which an interrupt before its end leaves undone."""
        users = self.schedule.users(number, self._train.n_users)
        theta = self.parameters_

        def contribution(user: int) -> Rows:
            items, values = self._train.of_user(user)
            profile = np.broadcast_to(self._users[user], (items.size, self._users.shape[1]))
            x = np.hstack((profile, self._items[items]))
            sent = np.append(self.model.gradient(theta, x, values), float(items.size))
            return Rows(everything, sent[:, None] / UNIT, everything.size)

        everything = np.arange(theta.size + 1, dtype=np.int32)
        try:
            total = self.aggregation.sum(
                Vectors(users.tolist(), contribution, (everything.size, 1)),
                dropouts=self.schedule.dropouts(Draw.DROPOUTS, number, users),
                session=f"fedmf context {number}".encode(),
            )
        except RoundAborted:
            self.digests_ = (*self.digests_, "")
            return
        if total.clipped:
            raise SettingError(
                f"{total.clipped} elements of the users' vectors lie beyond the clip of the "
                "aggregation: raise its clip, or lower the model's rate if it diverges"
            )
        n_ratings = total.sum[-1] * UNIT
        if n_ratings > 0:
            mean = total.sum[:-1] * UNIT / n_ratings
            mean[1:] += self.model.reg * theta[1:]
            self.parameters_ = theta - move(mean)
        self.digests_ = (*self.digests_, total.digest)
