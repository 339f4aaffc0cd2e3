"""`Node`, the users of a Flower node, and `Counted`, the node's check of the raters."""

from __future__ import annotations

import hashlib

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Aggregate, PlainSum
from fedmf.data import Features, Ratings
from fedmf.data.checks import check_ratings
from fedmf.data.internal import internal
from fedmf.errors import SettingError
from fedmf.flower.explicit import plan_of
from fedmf.flower.plan import (
    COUNTS,
    MEAN,
    RATERS,
    STEP,
    TABLE,
    USERS,
    WEIGHT,
    Arrays,
    Plan,
    Step,
)
from fedmf.models.estimator import Estimator
from fedmf.models.federated import Raters
from fedmf.models.recommender import Recommender
from fedmf.training import Schedule
from fedmf.training.loop import Loop
from fedmf.training.steps import Means
from secagg.errors import RemoteProtocolError

_USERS, _SAID = "n-users", "said"


def record_of(run_id: int) -> str:
    """Return the name of the record in the Context of a node."""
    return f"fedmf {run_id} raters"


class Counted:
    """Count of raters of a run in the Context of a node: the basis of the node's later sums.

    The server states the number of raters of each item, and a node cannot count the raters of
    other nodes. But a node is in no sum before the node was in the run's count, nor with counts
    that cannot result from that count. Each check reads the messages alone, never ratings. If
    nodes left a sum because of their own counts, a server could choose by lies which single
    node is left.

    Parameters
    ----------
    context : Context
    n_items : int
    """

    def __init__(self, context: Context, n_items: int) -> None:
        self._state, self._name = context.state, record_of(context.run_id)
        self._n_items = n_items

    def note(self, n_users: int) -> None:
        """Note that the node takes part in a count of `n_users` users, as the server states."""
        self._state[self._name] = ConfigRecord({_USERS: n_users})

    def check(self, counts: NDArray[np.int64] | None, n_users: int) -> None:
        """Raise `RemoteProtocolError` ("raters") unless counts can be of the node's last count.

        The counts must be of all items and at most the number of users. All sums until the next
        count must have the same counts.
        """
        noted = self._state.get(self._name)
        if not isinstance(noted, ConfigRecord):
            raise _miscounted("this node was in no count of raters of the run")
        if counts is None or counts.dtype != np.int64 or counts.shape != (self._n_items,):
            raise _miscounted("the message has no number of raters of each item")
        said = hashlib.sha256(counts.astype("<i8").tobytes()).digest()
        if noted[_USERS] != n_users or noted.get(_SAID, said) != said:
            raise _miscounted("numbers of users or raters are not those of the last sum")
        if np.any(counts < 0) or np.any(counts > n_users):
            raise _miscounted("an item has more raters than there are users")
        noted[_SAID] = said


def _violation(message: str, check: str) -> RemoteProtocolError:
    return RemoteProtocolError(message, sender=None, phase="training", check=check)


def _miscounted(why: str) -> RemoteProtocolError:
    return _violation(f"{why}; the node is in the sums after the next count", "raters")


LARGEST_FACTOR = 2.0**20
"""Bound on factors and ratings between rounds, far beyond the numbers of any useful model."""


class Node:
    """Users of a node; make one in each function of a ClientApp.

    Between two rounds, the Context of the node has the record "fedmf <run>". The record has
    FedMMF's masked ratings, and the factors of the users if the factors do not follow from the
    item factors. The record never leaves the node. A node that loses the record, by a restart,
    begins with the starting factors.

    If the recommender has `min_raters`, the record "fedmf <run> raters" notes the run's count.
    The node is in a sum only if the node was in that count and the server's counts are
    possible: at most the number of users, and the same in all sums until the next count. A
    server that lies within these limits learns gradients of few raters; see docs/privacy.md.

    Parameters
    ----------
    recommender : Trainer, FedMMF, FCF or FederatedCF
        Settings of the training, the same as the server's. The clip and the fractional bits of
        the aggregation encode the tables.
    ratings : Ratings
        Ratings of the node's users on all items. Rows for users of other nodes are not used.
    users : int array, optional
        Numbers of the node's users in `ratings`; by default all rows.
    features : Features, optional
        Features of the items for the masks of FedMMF; see `FedMMF.fit`.

    Raises
    ------
    SettingError
        The recommender is of another class, or has an aggregation of floats, a cohort or
        dropouts. Also if `users` are no numbers of rows, or a mask diverged.
    DataError
        The ratings do not suit the recommender.
    """

    def __init__(
        self,
        recommender: Estimator,
        ratings: Ratings,
        users: ArrayLike | None = None,
        features: Features | None = None,
    ) -> None:
        check_ratings(ratings=ratings)
        self._plan = plan_of(recommender, ratings.n_items)
        self._users = _numbers(users, ratings.n_users)
        mine = np.zeros(ratings.n_users, dtype=np.bool_)
        mine[self._users] = True
        self._ratings, self._features = ratings.take(mine[ratings.users]), features

    def train(self, message: Message, context: Context) -> Message:
        """Return the reply to a train message of `FedSum`: the sum of the users' tables.

        Raises
        ------
        SettingError
            The message is not from `FedSum`, or the factors of a user diverge. The mods of
            `secagg.flower` then send zeros, and the server does not see which node did so.
        RemoteProtocolError
            The server's counts of raters cannot be of the run's count ("raters"). Or an element
            of the message's factors is NaN or beyond 2^20 ("model").
        """
        record, config = message.content.get("arrays"), message.content.get("config")
        if (
            not isinstance(record, ArrayRecord)
            or not isinstance(config, ConfigRecord)
            or not isinstance(n_users := config.get(USERS), int)
        ):
            raise SettingError("the message is not one of FedSum: use that strategy")
        excess = 0.0
        if config[STEP] == Step.COUNT:
            loop = Loop(PlainSum(), Schedule(), 1)
            total = loop.count(1, self._users, self._ratings)[1]
            Counted(context, self._ratings.n_items).note(n_users)
        elif config[STEP] == Step.MEAN:
            means = Means(internal(self._ratings)).vectors(self._users)
            total = _plain(self._plan).sum(means, dropouts={})
        else:
            total, excess = self._sum(record, context, n_users)
        # at most the number of users, which fits the clip of the secure sum
        clipped = min(total.clipped, self._users.size)
        excess /= total.sum.size
        counts = np.array([self._users.size, clipped, excess], dtype=np.float64)
        table = total.sum.reshape(record[TABLE].shape)
        found = ArrayRecord({TABLE: Array(table), COUNTS: Array(counts)})
        content = RecordDict({"arrays": found, "metrics": MetricRecord({WEIGHT: 1})})
        return Message(content, reply_to=message)

    def model(self, arrays: ArrayRecord, context: Context) -> Recommender:
        """Return the recommender of the node's users, for the arrays of an evaluate message.

        The result is a `Factors`, or for FedMMF a `Combined`. Only the node's users have a
        meaning.
        """
        public, raters, plan = _read(arrays, self._plan)
        private = self._private(context)
        training = plan.training(self._ratings, raters, private)
        state = plan.local(training, public, private, self._users)
        return plan.fitted(training, state, self._ratings, self._features)

    def _sum(
        self, record: ArrayRecord, context: Context, n_users: int
    ) -> tuple[Aggregate, float]:
        """Return the sum of the users' tables and the excess; keep the users' new arrays."""
        public, raters, plan = _read(record, self._plan)
        if plan.needs_counts:
            counts = None if raters is None else raters.counts
            Counted(context, self._ratings.n_items).check(counts, n_users)
        private = self._private(context)
        with np.errstate(all="ignore"):  # the steps check for infinite numbers
            training = plan.training(self._ratings, raters, private)
            state = plan.local(training, public, private, self._users)
            steps = training.local_steps(state, raters)
            total = _plain(plan).sum(steps.vectors(self._users), dropouts={})
            kept = {**private, **plan.kept(steps, self._users)}
        if kept:
            # so that no later step of a node fails by numbers that an earlier message caused
            arrays = {
                name: Array(np.clip(np.nan_to_num(array), -LARGEST_FACTOR, LARGEST_FACTOR))
                for name, array in kept.items()
            }
            context.state[_name(context)] = ArrayRecord(arrays)
        return total, training.excess(total, raters)

    def _private(self, context: Context) -> Arrays:
        """Return the arrays that the node has kept of this run, and drop older runs' arrays."""
        name, state = _name(context), context.state
        mine = (name, record_of(context.run_id))
        for other in [key for key in state if key.startswith("fedmf ") and key not in mine]:
            del state[other]
        kept = state.get(name)
        if isinstance(kept, ArrayRecord):
            return {key: array.numpy() for key, array in kept.items()}
        return self._plan.prepared(self._ratings, self._features)


def _plain(plan: Plan) -> PlainSum:
    """Return the sum in the clear with the plan's encoding."""
    encoding = plan.aggregation.encoding
    return PlainSum(clip=encoding.clip, fractional_bits=encoding.fractional_bits)


def _name(context: Context) -> str:
    return f"fedmf {context.run_id}"


def _numbers(users: ArrayLike | None, n_users: int) -> NDArray[np.int64]:
    """Return the numbers of a node's users, ascending."""
    if users is None:
        found = np.arange(n_users)
    else:
        given = np.asarray(users)
        if (
            given.ndim != 1
            or given.dtype.kind not in "iu"
            or np.unique(given).size != given.size
        ):
            raise SettingError("users must be different numbers of rows, such as [0, 8, 16]")
        found = np.sort(given).astype(np.int64)
    if not found.size or found[0] < 0 or found[-1] >= n_users:
        raise SettingError(
            f"users must be numbers of the {n_users} rows of the ratings, at least one: pass "
            "those of this node"
        )
    return found


def _read(record: ArrayRecord, plan: Plan) -> tuple[Arrays, Raters | None, Plan]:
    """Return the public arrays, the raters if they were counted, and the plan at the mean."""
    arrays = {name: array.numpy() for name, array in record.items()}
    for name, array in arrays.items():
        # checked in the message alone: a model that failed at some nodes only could single out
        # the remaining nodes
        if array.dtype.kind == "f" and not np.all(np.abs(array) <= LARGEST_FACTOR):
            raise _violation(
                f"{name} has an element beyond 2^20 or NaN; restart the server's training with "
                "a lower learning rate",
                "model",
            )
    counts, mean = arrays.pop(RATERS), arrays.pop(MEAN)
    raters = Raters(counts, 1.0) if counts.size else None
    return arrays, raters, plan.at_mean(float(mean[0])) if mean.size else plan
