"""Strategy of the server: sums of the nodes' tables, and the server's step after each sum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate
from fedmf.data import from_triples
from fedmf.data.internal import internal
from fedmf.errors import SettingError
from fedmf.flower.explicit import plan_of
from fedmf.flower.plan import COUNTS, MEAN, RATERS, STEP, TABLE, USERS, WEIGHT, Arrays, Step
from fedmf.models.estimator import Estimator
from fedmf.models.federated import Raters
from fedmf.settings import Count, check
from fedmf.training import History
from fedmf.training.loop import record_of
from fedmf.training.steps import Means

EXACT = 2**50
"""Bound on the integers of a sum that the mean in float64 gives back exactly."""


class Sums(TypedDict):
    """Arguments of the wrapper for secure sums, such as `secagg.flower.SecAgg`."""

    clip: float
    fractional_bits: int
    max_weight: int
    exclude: tuple[str, ...]
    averaging: bool


class FedSum(FedAvg):
    """Strategy that trains a recommender by sums of the nodes' tables.

    Wrap the strategy as ``SecAgg(strategy, **strategy.sums)``. Start the wrapper with
    ``strategy.initial_arrays`` for ``strategy.num_rounds`` rounds. The first rounds sum the
    mean rating and count the raters of each item, if the recommender needs that. A round
    without a sum leaves the model unchanged; the mean or the count is then repeated.

    Counts and sums are of the same number of nodes. A sum of fewer nodes than the count is not
    used, and the raters are counted again. The server has seen that sum. So the server is
    trusted not to look at such a sum, and to send the true counts. docs/privacy.md says how
    nodes can prevent such a sum.

    Parameters
    ----------
    recommender : Trainer, FedMMF, FCF or FederatedCF
        Settings of the training, the same as the nodes'.
    n_users : int
        Number of users of all nodes, ≥ 1.
    n_items : int
        m, the number of items, ≥ 1.
    scale : tuple of float
        Lowest and highest possible rating.
    largest : int
        Largest number of users of a node, ≥ 1. This number bounds the elements of a node's
        table; larger elements are clipped.
    min_nodes : int
        Number of nodes to wait for, ≥ 2. All connected nodes take part in each round.
    evaluate : bool
        True to send the trained model in an evaluate message, after the last round. Then also
        pass ``evaluate=…`` to the wrapper; see `secagg.flower.SecAgg`.

    Attributes
    ----------
    history_ : History
        A record of each round, without errors. The ids of the survivors in a digest are 0, 1,
        …, because the server does not know the users. So a digest equals the digest of a
        training in one process if no node dropped out.

    Raises
    ------
    SettingError
        A number is out of range, the recommender does not train on Flower, or the sums are too
        large to be exact.
    """

    def __init__(
        self,
        recommender: Estimator,
        *,
        n_users: int,
        n_items: int,
        scale: tuple[float, float],
        largest: int,
        min_nodes: int = 3,
        evaluate: bool = False,
    ) -> None:
        check(Count, n_users=n_users)
        check(Count, n_items=n_items)
        check(Count, largest=largest)
        nodes = max(min_nodes, 2)
        super().__init__(
            fraction_evaluate=float(evaluate),
            min_train_nodes=nodes,
            min_evaluate_nodes=nodes,
            min_available_nodes=nodes,
            weighted_by_key=WEIGHT,
        )
        self._plan = plan_of(recommender, n_items)
        encoding = self._plan.aggregation.encoding
        if n_users * encoding.max_encoded > EXACT:
            raise SettingError(
                f"sums of {n_users} users in [−{encoding.clip:g}, {encoding.clip:g}] with "
                f"{encoding.fractional_bits} fractional bits exceed 2^50: lower one of the two"
            )
        nothing = from_triples([], [], [], scale=scale, item_ids=np.arange(n_items))
        indptr = np.zeros(n_users + 1, dtype=np.int64)
        self._nobody = replace(nothing, indptr=indptr, user_ids=np.arange(n_users))
        self._mean: float | None = None
        self._raters: Raters | None = None
        self._begin()
        self._n_users, self._n_items, self._largest = n_users, n_items, largest
        self._counted: str | None = None
        self._counting = 0  # nodes of the last count
        self.history_ = History()

    @property
    def sums(self) -> Sums:
        """Arguments for the wrapper of secure sums; see `Sums`."""
        encoding = self._plan.aggregation.encoding
        return {
            "clip": self._largest * max(encoding.clip, 1.0),  # numbers of users, too
            "fractional_bits": encoding.fractional_bits,
            "max_weight": 1,
            "exclude": (*self._plan.names, RATERS, MEAN),
            "averaging": True,
        }

    @property
    def num_rounds(self) -> int:
        """Number of rounds to start, the mean and the count of raters included."""
        return self._plan.rounds + self._plan.needs_counts + self._plan.needs_mean

    @property
    def initial_arrays(self) -> ArrayRecord:
        """Arrays to start with."""
        return self._arrays(table=True)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return messages with the public arrays, and zeros in the place of the table."""
        config[USERS] = self._n_users
        config[STEP] = str(self._due)
        return super().configure_train(server_round, self._arrays(table=True), config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Do the server's step with the sum of the tables.

        Raises
        ------
        SettingError
            The nodes have more users than `n_users`, or the factors diverge. Also if users
            clipped many elements, or any element of a model that bears no clipping.
        DataError
            No item has enough raters.
        """
        replies = list(replies)
        mean, _ = super().aggregate_train(server_round, replies)
        nodes = sum(_weight(reply) for reply in replies if not reply.has_error())
        total = None if mean is None else self._total(mean, nodes)
        excess = 0.0 if mean is None else float(mean[COUNTS].numpy()[2])
        due = self._due
        if due is Step.SUM:
            fewer = self._plan.needs_counts and nodes < self._counting
            if total is None:
                self._step(None, 0.0, "too few nodes for a sum")
            elif fewer:
                self._step(None, 0.0, f"{nodes} nodes, fewer than the {self._counting} counted")
            else:
                self._step(total, excess)
            if fewer:  # an item may have fewer raters than counted
                self._raters = None
        elif total is not None and due is Step.MEAN:
            self._mean = Means(internal(self._nobody)).mean(total)
            self._plan = self._plan.at_mean(self._mean)
            self._begin()
        elif total is not None:
            self._raters = Raters(total.integers, len(total.survivors) / self._n_users)
            self._plan.trained(self._raters, self._n_items)
            self._counted, self._counting = total.digest, nodes
        users = 0 if total is None else len(total.survivors)
        return self._arrays(table=False), MetricRecord({"users": users})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return messages with the trained model after the last round, if asked for."""
        if server_round < self.num_rounds:
            return []
        return super().configure_evaluate(server_round, arrays, config, grid)

    @property
    def _due(self) -> Step:
        """Kind of the next sum."""
        if self._plan.needs_mean and self._mean is None:
            return Step.MEAN
        return Step.COUNT if self._plan.needs_counts and self._raters is None else Step.SUM

    def _begin(self) -> None:
        """Set the state before the first round."""
        self._training = self._plan.training(self._nobody, None, {})
        self._state = self._plan.start(self._training)
        self._public = self._plan.public(self._state, 1, {})

    def _arrays(self, *, table: bool) -> ArrayRecord:
        counts = np.empty(0, dtype=np.int64) if self._raters is None else self._raters.counts
        mean = np.empty(0) if self._mean is None else np.array([self._mean])
        arrays: Arrays = {**self._public, RATERS: counts, MEAN: mean}
        if table:
            shape = {Step.MEAN: (1, 4), Step.COUNT: (self._n_items, 1)}.get(self._due)
            if shape is None:
                shape = self._training.local_steps(self._state, self._raters).shape
            arrays |= {TABLE: np.zeros(shape), COUNTS: np.zeros(3)}
        return ArrayRecord({name: Array(array) for name, array in arrays.items()})

    def _total(self, mean: ArrayRecord, n: int) -> Aggregate:
        """Return the sum over all users, from the mean over n nodes."""
        counting = self._due is Step.COUNT
        fraction = 1.0 if counting else self._plan.aggregation.encoding.scale
        integers = _times(mean[TABLE], n * fraction)
        users, clipped, _ = _times(mean[COUNTS], n).tolist()
        if users > self._n_users:
            raise SettingError(
                f"the nodes have {users} users, more than n_users = {self._n_users}: raise that"
            )
        return Aggregate(integers / fraction, integers, tuple(range(users)), clipped)

    def _step(self, total: Aggregate | None, excess: float, aborted: str | None = None) -> None:
        """Do the server's step with a sum, or go on without one, and record the round."""
        plan, training = self._plan, self._training
        number = len(self.history_) + 1
        if total is not None:
            training.check_clipping(total)
            training.check_excess(total.clipped, excess)
            with np.errstate(all="ignore"):  # the step checks for infinite numbers
                steps = training.local_steps(self._state, self._raters)
                self._state = training.server_step(self._state, steps, total)
        self._state = training.round_over(self._state, number)
        self._public = plan.public(self._state, number + 1, self._public)
        raters = self._raters
        trained = None if raters is None else plan.trained(raters, self._n_items)
        record = record_of(number, self._n_users, total, aborted=aborted, trained_items=trained)
        record = replace(record, count_digest=self._counted)
        self._counted = None
        self.history_ = History((*self.history_, record))
        plan.report(record)


def _weight(reply: Message) -> int:
    """Return the number of nodes behind the mean in a reply: the sum of the nodes' weights."""
    record = reply.content["metrics"]
    weight = record[WEIGHT] if isinstance(record, MetricRecord) else None
    return weight if isinstance(weight, int) else 0


def _times(mean: Array, factor: float) -> NDArray[np.int64]:
    """Return `mean` times a factor, rounded to the integers behind the mean."""
    return np.rint(mean.numpy().reshape(-1) * factor).astype(np.int64)
