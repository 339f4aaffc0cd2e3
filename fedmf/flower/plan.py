"""`Plan`, the parts of a training that node and server share, and the names in messages.

Both sides make the recommender's own `Training`: a node with the ratings of the node's users,
the server without ratings. The server's state has factors of users, too, but these factors have
no meaning there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any, Self

from numpy.typing import NDArray

from fedmf.aggregate.aggregation import IntegerSum
from fedmf.data import Features, Ratings
from fedmf.errors import SettingError
from fedmf.models.federated import Raters
from fedmf.models.recommender import Recommender
from fedmf.training.loop import Training
from fedmf.training.schedule import Scheduled
from fedmf.training.steps import LocalSteps, Users

TABLE = "table"
"""Array with the sum of the users' tables; zeros in a message to a node."""
COUNTS = "counts"
"""Array of three numbers: users in the table, clipped elements, and excess.

The number of clipped elements is at most the number of users. The excess is `Training.excess`
per element of a table.
"""
RATERS = "raters"
"""Array with the number of raters of each item, int64; empty without a count of raters."""
MEAN = "mean"
"""Array with the mean rating on the internal scale; empty if there is no sum of ratings."""
USERS = "n-users"
"""Key of the number of users of all nodes in the ConfigRecord: no item has more raters."""
STEP = "step"
"""Key of the step in the ConfigRecord."""
WEIGHT = "num-examples"
"""Key of the weight, 1: a table is a sum already."""


class Step(StrEnum):
    """Kind of sum that a message asks for."""

    MEAN = "mean"
    COUNT = "count"
    SUM = "sum"


Arrays = dict[str, NDArray[Any]]
Rounds = Training[Any, Any]

ITEMS = "item-factors"
"""Name of the public array with the factors of all items."""


class Plan(ABC):
    """Parts of a training that differ between recommenders.

    Parameters
    ----------
    trainer : Scheduled, with an IntegerSum that encodes the tables, and no cohort or dropouts
    rounds : int, number of sums, without the count of raters
    needs_counts : bool, True if the raters of each item are counted first
    needs_mean : bool, True if the mean rating is summed before the count

    Raises
    ------
    SettingError
        The aggregation is not of integers, or the schedule has a cohort or dropouts.
    """

    names: tuple[str, ...] = (ITEMS,)
    """Names of the public arrays."""

    def __init__(
        self, trainer: Scheduled, rounds: int, *, needs_counts: bool, needs_mean: bool = False
    ) -> None:
        aggregation, schedule = trainer.aggregation, trainer.schedule
        if not isinstance(aggregation, IntegerSum):
            raise SettingError(
                f"aggregation = {aggregation!r} must be one of integers on Flower, such as "
                "PlainSum(): nodes encode the tables as it says"
            )
        if schedule.cohort is not None or schedule.dropout:
            raise SettingError(
                f"cohort = {schedule.cohort!r} and dropout = {schedule.dropout!r} are for "
                "simulations: leave them out, as all nodes take part"
            )
        self.aggregation, self.schedule, self.report = aggregation, schedule, trainer.report
        self.rounds, self.needs_counts, self.needs_mean = rounds, needs_counts, needs_mean

    def at_mean(self, mean: float) -> Self:
        """Return the plan with the mean rating; only called for `needs_mean`."""
        return self

    @abstractmethod
    def prepared(self, ratings: Ratings, features: Features | None) -> Arrays:
        """Return the private arrays that a node's users compute once, before any round."""

    @abstractmethod
    def training(self, ratings: Ratings, raters: Raters | None, private: Arrays) -> Rounds:
        """Return the steps of a round for the ratings of a node's users, or for no ratings."""

    @abstractmethod
    def start(self, training: Rounds) -> Any:
        """Return the state before the first round."""

    @abstractmethod
    def public(self, state: Any, number: int, before: Arrays) -> Arrays:
        """Return the public arrays of round `number`, given the arrays of the round before."""

    @abstractmethod
    def local(self, training: Rounds, public: Arrays, private: Arrays, users: Users) -> Any:
        """Return the state of a node's users in a round."""

    def kept(self, steps: LocalSteps, users: Users) -> Arrays:
        """Return the private arrays that a round changed."""
        return {}

    @abstractmethod
    def trained(self, raters: Raters, n_items: int) -> int | None:
        """Return the number of trained items for the records; DataError if 0 is too few."""

    @abstractmethod
    def fitted(
        self, training: Rounds, state: Any, ratings: Ratings, features: Features | None
    ) -> Recommender:
        """Return the recommender of a node's users for a state that `local` returned."""
