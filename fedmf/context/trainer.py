"""Training a context model by full federated gradients, one secure sum a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Aggregation, PlainSum, RoundAborted
from fedmf.context.model import ContextModel, Floats
from fedmf.data import Ratings
from fedmf.errors import ModelError, SettingError
from fedmf.features import Features
from fedmf.model import numbers
from fedmf.optimisers import BETA_1, BETA_2, Adam
from fedmf.schedule import Draw, Schedule
from fedmf.sums.integer_sum import Progress
from fedmf.sums.vectors import Rows, Vectors

__all__ = ["ContextTrainer"]

UNIT = 256.0
"""What users divide by before they send, a power of two.

So a number of ratings up to 4,096 and the sum of as many gradients fit the clip of 16 that an
aggregation has by default, and the number is a multiple of its 2^-16, hence exact.
"""

CENTRE = 0.625  # of the scale, as of a neutral start of FedMF: 3.5 on 1 to 5


class ContextTrainer:
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
    clipped_ : int
        Elements over all rounds and users that lay beyond the aggregation's clip.
    interrupted_ : bool
        Whether Ctrl-C ended the training early; what the finished rounds taught is kept.

    Raises
    ------
    SettingError
        If a setting is out of range.
    """

    parameters_: Floats
    digests_: tuple[str, ...]
    clipped_: int
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
        if not isinstance(rounds, int) or rounds < 1:
            raise SettingError(f"rounds = {rounds!r} must be an integer of at least 1")
        self.model = model
        self.aggregation: Aggregation = PlainSum() if aggregation is None else aggregation
        self.rounds = rounds
        self.schedule = Schedule(seed=seed, cohort=cohort, dropout=dropout)
        self.progress = progress

    def fit(self, train: Ratings, items: Features, users: Features | None = None) -> Self:
        """Train from the start.

        A KeyboardInterrupt ends the training early and keeps what the finished rounds taught.

        Parameters
        ----------
        train
            The users' ratings.
        items, users
            One row per item, and one per user (None where nothing is known of them).

        Raises
        ------
        SettingError
            If the features are not of these items and users, or the settings do not fit.
        """
        if users is None:
            users = Features(np.zeros((train.n_users, 0)), ())
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
        self.parameters_, self.digests_, self.clipped_ = theta, (), 0
        self.interrupted_ = False
        try:
            for number in range(1, self.rounds + 1):
                self._round(number, move)
                self.progress(type(self.model).__name__, number, self.rounds)
        except KeyboardInterrupt:
            self.interrupted_ = True
        return self

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return the predicted ratings, not clipped to the scale.

        Parameters
        ----------
        users, items
            Integers of one shape (n,): numbers of users and items in the ratings.

        Raises
        ------
        ModelError
            If the model is not trained, or a number is out of range.
        """
        if not hasattr(self, "parameters_"):
            raise ModelError("the model is not trained yet: call fit first")
        rows = numbers("user", users, len(self._users))
        columns = numbers("item", items, len(self._items))
        x = np.hstack((self._users[rows], self._items[columns]))
        return self.model.predict(self.parameters_, x)

    def recommend(self, user: int, k: int = 10) -> tuple[NDArray[np.int64], Floats]:
        """Return the k items with the highest ŷ that the user has not rated, best first.

        Raises
        ------
        ModelError
            If the model is not trained, the user is unknown or k < 1.
        """
        if k < 1:
            raise ModelError(f"k = {k} recommendations: ask for at least one")
        items = np.arange(len(self._items)) if hasattr(self, "_items") else np.arange(0)
        scores = self.predict(np.full(items.size, user), items)
        fresh = np.setdiff1d(items, self._train.of_user(user)[0])
        best = fresh[np.argsort(-scores[fresh], kind="stable")][:k]
        return best.astype(np.int64), scores[best]

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
        n_ratings = total.sum[-1] * UNIT
        if n_ratings > 0:
            mean = total.sum[:-1] * UNIT / n_ratings
            mean[1:] += self.model.reg * theta[1:]
            self.parameters_ = theta - move(mean)
        self.digests_ = (*self.digests_, total.digest)
        self.clipped_ += total.clipped
