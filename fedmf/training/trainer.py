"""Federated training, round by round: cohort, local steps, secure sum, server step, metrics.

Every choice the loop makes (the starting factors, each round's cohort and dropouts) is drawn
from the seed and the number of the round alone. So two trainings with the same seed and
different aggregations see the same users doing the same, and must arrive at the same integers.

The errors that are recorded after each round are the simulation's, which sees all ratings; in
a deployment the users would have to sum their squared errors securely, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Aggregate, Aggregation, RoundAborted
from fedmf.aggregate.vectors import Rows, Table, Vectors
from fedmf.data import Ratings
from fedmf.data.blocks import Block, blocks
from fedmf.data.checks import check_parts
from fedmf.errors import ModelError, SettingError
from fedmf.models import Factors, FederatedModel, FedMF
from fedmf.models.raters import Raters
from fedmf.settings import check_able
from fedmf.training.counting import count_raters, vectors_of
from fedmf.training.history import History, RoundRecord
from fedmf.training.metrics import mae, rmse
from fedmf.training.schedule import Draw, Scheduled

__all__ = ["Trainer"]

Floats = NDArray[np.float64]


class Trainer(Scheduled):
    """Trains a federated model on ratings, each user a client of the aggregation.

    Parameters
    ----------
    model
        What is trained: the hyper-parameters and steps, `FedMF` for one.
    aggregation
        How the users' gradients are summed.
    rounds
        How many, at least 1.
    seed
        Of every random choice that training makes, at least 0. (The keys and masks of secure
        aggregation come from the operating system; the sum does not depend on them.)
    cohort
        Who takes part in a round: a number of users of at least 3, a fraction of them in
        (0, 1], or None for everyone. A sampled cohort counts the raters of the items in each
        round anew; everyone counts only once.
    dropout
        The probability in [0, 1) with which a user vanishes in a round, before sending the
        message of a phase that is drawn evenly from all four. Those who vanish before their
        masked input are not in the sum and keep their factors.
    callbacks
        Called with the record of each round when it is over.

    Attributes
    ----------
    factors_ : Factors
        What was learnt.
    history_ : History
        A record of each round.

    Raises
    ------
    SettingError
        If a setting is out of range.
    """

    factors_: Factors
    history_: History

    def __init__(
        self,
        model: FederatedModel | None = None,
        aggregation: Aggregation | None = None,
        *,
        rounds: int = 40,
        seed: int = 0,
        cohort: int | float | None = None,
        dropout: float = 0.0,
        callbacks: Sequence[Callable[[RoundRecord], None]] = (),
    ) -> None:
        super().__init__(aggregation, rounds=rounds, seed=seed, cohort=cohort, dropout=dropout)
        self.model: FederatedModel = FedMF() if model is None else model
        check_able(
            "local_steps",
            "FedMF(); models of features, such as FedLR(), are for ContextTrainer",
            model=self.model,
        )
        if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
            raise SettingError(
                f"callbacks = {callbacks!r} must be a list of functions, such as [print]"
            )
        self.callbacks = tuple(callbacks)

    def fit(self, train: Ratings, test: Ratings | None = None) -> Self:
        """Train from the start, and measure the errors after each round.

        A KeyboardInterrupt ends the training early: what the finished rounds taught is kept,
        and ``history_.interrupted`` says so. After an error, its own or a callback's, the
        trainer is as if it had never been fitted.

        Parameters
        ----------
        train, test
            Over the same users and items, as of `Split`.

        Raises
        ------
        SettingError
            If the settings do not fit the data, the factors grow beyond all bounds, or what
            must not be clipped was.
        DataError
            If there is no rating in `train` or `test`.
        """
        for name in ("factors_", "history_"):
            vars(self).pop(name, None)
        check_parts(train, test)
        self.schedule.size(train.n_users)  # an impossible cohort is refused before any work
        p, q = self.model.initial(train, self.schedule.rng(Draw.START))
        self._check_finite(p, q)
        done = _Progress(Factors.of(p, q, train), None, ())
        interrupted = False
        try:
            for number in range(1, self.rounds + 1):
                with np.errstate(all="ignore"):  # told by _check_finite
                    done = self._round(number, done, train, test)
                for callback in self.callbacks:
                    callback(done.records[-1])
        except KeyboardInterrupt:
            interrupted = True
        self.factors_, self.history_ = done.factors, History(done.records, interrupted)
        return self

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return the predicted ratings; see `Factors.predict`."""
        return self._fitted().predict(users, items)

    def recommend(self, user: int, k: int = 10) -> tuple[NDArray[np.int64], Floats]:
        """Return the best unrated items; see `Factors.recommend`."""
        return self._fitted().recommend(user, k)

    def _fitted(self) -> Factors:
        if not hasattr(self, "factors_"):
            raise ModelError("the model is not trained yet: call fit first")
        return self.factors_

    def _round(
        self, number: int, before: _Progress, train: Ratings, test: Ratings | None
    ) -> _Progress:
        """Do one round; `before` stays as it is, so that an interrupt loses this round only."""
        start = perf_counter()
        users = self.schedule.users(number, train.n_users)
        factors, sums = before.factors, list[Aggregate]()
        raters = before.raters if users.size == train.n_users else None
        aborted: str | None = None
        count_digest: str | None = None
        try:
            if raters is None and self.model.needs_counts:
                raters, counted = count_raters(
                    self.aggregation,
                    self.schedule,
                    number,
                    users,
                    train,
                    self._session("count", number),
                )
                count_digest = counted.digest
                sums.append(counted)
            trained = self.model.trained_items(raters, train.n_items)
            moved, gradients = self._local_steps(users, factors, trained, train)
            total = self.aggregation.sum(
                gradients,
                dropouts=self.schedule.dropouts(Draw.DROPOUTS, number, users),
                session=self._session("sum", number),
            )
            sums.append(total)
            self._check_clipped(total)
            factors = self._moved(factors, raters, total, moved, train)
        except RoundAborted as error:
            aborted = str(error)
        record = RoundRecord(
            round=number,
            cohort=users.size,
            survivors=0 if aborted else len(sums[-1].survivors),
            aborted=aborted,
            trained_items=(
                None
                if raters is None
                else int(self.model.trained_items(raters, train.n_items).sum())
            ),
            client_seconds=sum(one.client_seconds for one in sums),
            server_seconds=sum(one.server_seconds for one in sums),
            key_holder_seconds=sum(one.key_holder_seconds for one in sums),
            bytes_up=sum(one.bytes_up for one in sums),
            bytes_down=sum(one.bytes_down for one in sums),
            clipped=sum(one.clipped for one in sums),
            digest=None if aborted else sums[-1].digest,
            count_digest=count_digest,
            train_rmse=_error(factors, train),
        )
        self._check_finite(np.array(record.train_rmse))
        if test is not None:
            predictions = factors.predict(test.users, test.items)
            record = replace(
                record,
                test_rmse=rmse(test.values, predictions),
                test_mae=mae(test.values, predictions),
            )
        record = replace(record, seconds=perf_counter() - start)
        return _Progress(factors, raters, (*before.records, record))

    def _session(self, what: str, number: int) -> bytes:
        return f"fedmf {what} {number}".encode()

    def _local_steps(
        self,
        users: NDArray[np.int64],
        factors: Factors,
        trained: NDArray[np.bool_],
        train: Ratings,
    ) -> tuple[Floats, Vectors]:
        """Return what the users send, and a table that fills with the p_u behind it."""
        q, p = factors.item_factors, factors.user_factors
        moved = p.copy()

        def step(block: Block) -> Rows:
            moved[block.users], rows = self.model.local_steps(q, p[block.users], block, trained)
            self._check_finite(rows.values)
            return rows

        return moved, vectors_of(users, train, step, self.model.width)

    def _moved(
        self,
        factors: Factors,
        raters: Raters | None,
        total: Aggregate,
        moved: Floats,
        train: Ratings,
    ) -> Factors:
        """Return the factors after the server's step, and the users' as they then are."""
        q = self.model.server_step(
            factors.item_factors, total.sum.reshape(train.n_items, self.model.width), raters
        )
        self._check_finite(q)  # before users solve with it
        p = factors.user_factors.copy()
        survivors = np.array(total.survivors)
        p[survivors] = moved[survivors]
        if self.model.solves_users:  # exact and local: every user can do it at any time
            for block in blocks(train, np.arange(train.n_users), self.model.width):
                p[block.users] = self.model.find_users(q, p[block.users], block)
        self._check_finite(p)
        return replace(factors, user_factors=p, item_factors=q)

    def _check_clipped(self, total: Aggregate) -> None:
        if total.clipped and not self.model.bears_clipping:
            raise SettingError(
                f"{total.clipped} elements lay beyond the clip of the aggregation, and "
                f"{type(self.model).__name__} does not bear that: raise its clip"
            )

    def _check_finite(self, *tables: Table) -> None:
        if not all(np.isfinite(table).all() for table in tables):
            raise SettingError(f"the factors have grown beyond all bounds: {self.model.remedy}")


@dataclass(frozen=True)
class _Progress:
    """What has been reached after some rounds; replaced as a whole."""

    factors: Factors
    raters: Raters | None
    records: tuple[RoundRecord, ...]


def _error(factors: Factors, ratings: Ratings) -> float:
    return rmse(ratings.values, factors.predict(ratings.users, ratings.items))
