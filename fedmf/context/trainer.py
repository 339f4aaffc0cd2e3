"""Training of a context model: each round is one secure sum of the users' full gradients."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from fedmf.aggregate import Aggregate
from fedmf.aggregate.vectors import Rows
from fedmf.context.model import ContextModel, Floats
from fedmf.data import Features, Ratings
from fedmf.data.blocks import Block
from fedmf.data.checks import check_ratings
from fedmf.data.features import check_are_features
from fedmf.data.internal import internal, to_public
from fedmf.errors import Diverged, SettingError
from fedmf.models.estimator import not_continued
from fedmf.models.federated import Raters
from fedmf.models.mf import NEUTRAL
from fedmf.models.recommender import Recommender, Trained, pairs
from fedmf.settings import BelowOne, Count, Has, Seed
from fedmf.training import Adam
from fedmf.training.history import rmse
from fedmf.training.loop import Loop, Training, check_learnt, keep
from fedmf.training.optimisers import BETA_1, BETA_2
from fedmf.training.schedule import Callbacks, Draw, Scheduled, Summing
from fedmf.training.steps import LocalSteps

UNIT = 256.0
"""Divisor of every user's values before they are sent, a power of two.

So up to 4,096 ratings of a user fit the default clip of 16 of an aggregation, and so does the
sum of their gradients. The divided number of ratings is a multiple of 2^-16, so the encoding is
exact.
"""

SUCH = "FedLR(); FedMF() and FedALS() are for Trainer"


class ContextTrainer(Scheduled):
    """Trainer of a `ContextModel`; each user is a client of the aggregation.

    In a round each user of the cohort sends a vector (Σ_j ∇_j, n_u) / 256. The vector has the
    gradient summed over the user's own ratings, and the number of these ratings. The server
    divides the sum of the gradients by the sum of the numbers and takes a step of Adam. The
    items' features are public; a user's own features and rated items stay with the user. The
    model trains on the internal scale 1 to 5; predictions are mapped back to the ratings' own
    scale.

    Parameters
    ----------
    model : context model to train
    aggregation, rounds, seed, cohort, dropout, callbacks : see `Trainer`

    Attributes
    ----------
    parameters_ : float64 array, the trained θ, in the order that `model` documents
    model_ : Recommender, the model at θ for the users and items of the training
    history_ : History, a record of each round, without errors
    """

    parameters_: Floats
    model_: Recommender
    _former = MappingProxyType({"recommender_": "model_", "progress": "callbacks"})

    def __init__(
        self,
        model: Annotated[ContextModel, Has("gradient", SUCH)],
        aggregation: Summing | None = None,
        *,
        rounds: Count = 200,
        seed: Seed = 0,
        cohort: int | float | None = None,
        dropout: BelowOne = 0.0,
        callbacks: Callbacks = (),
    ) -> None:
        super().__init__(aggregation, seed=seed, cohort=cohort, dropout=dropout)
        self.model: ContextModel = model
        self.rounds, self.callbacks = rounds, callbacks
        self.__post_init__()

    def fit(
        self,
        train: Ratings,
        test: Ratings | Features | None = None,
        users: Features | None = None,
        *,
        items: Features | None = None,
        start: None = None,
    ) -> Self:
        """Train from the start. After Ctrl-C and after an error, see `Trainer.fit`.

        Parameters
        ----------
        train : ratings of all users
        test
            Not used, since no test error is recorded. Until 1.1, features here are `items`,
            with a warning.
        users : features with a row per user; None if users have no profile
        items : features with a row per item, required
        start : None, as `ContextTrainer` does not continue a training

        Raises
        ------
        SettingError
            If `items` or `users` is not `Features` or has another number of rows. Also if the
            cohort does not fit, or a user's numbers diverge or exceed the aggregation's clip.
            `Diverged` if the training error after the last round is beyond the scale.
        RoundAborted
            If every round was aborted.
        """
        self._forget()
        not_continued(self, start)
        if isinstance(test, Features):
            warn(
                "ContextTrainer.fit(train, items) is now fit(train, items=…); the old order "
                "goes with 1.1",
                DeprecationWarning,
                stacklevel=2,
            )
            items = test
        if items is None:
            raise SettingError("items is missing: pass items=, features with a row per item")
        check_ratings(train=train)
        if users is None:
            users = Features(np.zeros((train.n_users, 0)), ())
        check_are_features(items=items, users=users)
        parts = ("item", items, train.n_items), ("user", users, train.n_users)
        for what, features, n in parts:
            if len(features) != n:
                raise SettingError(
                    f"features of {len(features)} {what}s do not fit ratings of {n}: pass "
                    "both of the same data set"
                )
        self.schedule.size(train.n_users)  # raises before any work
        training = _ContextTraining(self.model, internal(train), items.matrix, users.matrix)
        n_features = items.matrix.shape[1] + users.matrix.shape[1]
        begun = self.model.initial(n_features, NEUTRAL, self.schedule.rng(Draw.START))
        rounds = Loop(self.aggregation, self.schedule, self.rounds).iterate(training, begun)
        theta, history = keep(rounds, begun, self.report)
        check_learnt(history)
        found = _Fitted(train, self.model, theta, items.matrix, users.matrix)
        self._check_error(found, train)
        self.parameters_, self.history_, self.model_ = theta, history, found
        return self

    def _check_error(self, found: Recommender, train: Ratings) -> None:
        """Raise `Diverged` if the training error is beyond the width of the scale."""
        if not train.n_ratings:
            return
        with np.errstate(all="ignore"):
            error = rmse(train.values, found.predict(train.users, train.items))
        low, high = train.scale
        if not error <= high - low:
            raise Diverged(
                f"the training diverges, with an error of {error:.3g} on a scale from {low:g} "
                f"to {high:g}: lower rate = {self.model.rate} of the model"
            )


@dataclass(frozen=True, eq=False)
class _Fitted(Trained):
    """Model at the learnt θ, for the users and items of the training."""

    train: Ratings
    model: ContextModel
    theta: Floats
    items: Floats
    users: Floats

    @property
    def scale(self) -> tuple[float, float]:
        return self.train.scale

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        rows, columns = pairs(users, items, self.n_users, self.n_items)
        x = np.hstack((self.users[rows.reshape(-1)], self.items[columns.reshape(-1)]))
        return to_public(self.model.predict(self.theta, x).reshape(rows.shape), self.scale)


class _ContextSteps(LocalSteps):
    """Vectors that users send: the gradients at θ, and the numbers of ratings."""

    def __init__(self, training: _ContextTraining, theta: Floats) -> None:
        super().__init__(training.ratings, (theta.size + 1, 1), at_once=1)
        self._training, self._theta = training, theta
        self._everything = np.arange(theta.size + 1, dtype=np.int32)

    def rows(self, block: Block) -> Rows:
        of, n = self._training, block.items.size
        profile = np.broadcast_to(of.users[block.users], (n, of.users.shape[1]))
        x = np.hstack((profile, of.items[block.items]))
        sent = np.append(of.model.gradient(self._theta, x, block.values), float(n))
        return Rows(self._everything, sent[:, None] / UNIT, self._everything.size)


class _ContextTraining(Training[Floats, _ContextSteps]):
    """Steps of Adam along the mean gradient; the state is θ."""

    clip_remedy = "raise that, or lower the model's rate if it diverges"

    def __init__(
        self, model: ContextModel, ratings: Ratings, items: Floats, users: Floats
    ) -> None:
        self.model, self.ratings, self.items, self.users = model, ratings, items, users
        self._move = Adam(rate=model.rate, beta1=BETA_1, beta2=BETA_2).fresh()

    def local_steps(self, state: Floats, raters: Raters | None) -> _ContextSteps:
        return _ContextSteps(self, state)

    def server_step(self, state: Floats, steps: _ContextSteps, total: Aggregate) -> Floats:
        n_ratings = total.sum[-1] * UNIT
        if n_ratings <= 0:
            return state
        mean = total.sum[:-1] * UNIT / n_ratings
        mean[1:] += self.model.reg * state[1:]
        return np.asarray(state - self._move(mean))
