"""Records of the rounds of a training, with errors averaged per rating."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError, ModelError

__all__ = ["History", "RoundRecord", "mae", "rmse"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """Record of one round, in plain numbers that can be written as JSON.

    Attributes
    ----------
    round : int, 1, 2, …
    cohort, survivors : int, users in the cohort, and users whose vectors are in the sum
    aborted : str, reason for a missing sum (the factors are then unchanged), or None
    trained_items : int, items with enough raters; None before the first count
    train_rmse, test_rmse, test_mae : float, errors after the round; None if not measured
    client_seconds, server_seconds
        Time that the users together and the server took to aggregate, counting included.
    key_holder_seconds : float, time of other parties that decrypt, 0 if there are none
    seconds : float, the whole round by the clock, metrics included
    bytes_up, bytes_down : float, mean per user as in `Aggregate`, counting included
    clipped : int, elements beyond the clip of the fixed-point encoding
    digest, count_digest : str, `Aggregate.digest` of the sum, and of the raters' count if any
    """

    round: int
    cohort: int
    survivors: int = 0
    aborted: str | None = None
    trained_items: int | None = None
    train_rmse: float | None = None
    test_rmse: float | None = None
    test_mae: float | None = None
    client_seconds: float = 0.0
    server_seconds: float = 0.0
    key_holder_seconds: float = 0.0
    seconds: float = 0.0
    bytes_up: float = 0.0
    bytes_down: float = 0.0
    clipped: int = 0
    digest: str | None = None
    count_digest: str | None = None


@dataclass(frozen=True)
class History:
    """Rounds of a training; `interrupted` if it was stopped before the last round."""

    rounds: tuple[RoundRecord, ...] = ()
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[RoundRecord]:
        return iter(self.rounds)

    @property
    def last(self) -> RoundRecord:
        """Record of the last round; ModelError if there is none."""
        if not self.rounds:
            raise ModelError(
                "the training was interrupted before the end of its first round: fit again"
            )
        return self.rounds[-1]

    def as_dict(self) -> dict[str, object]:
        """Return the history for ``json.dumps``."""
        return {
            "interrupted": self.interrupted,
            "rounds": [asdict(record) for record in self.rounds],
        }


def rmse(ratings: Floats, predictions: Floats) -> float:
    """Root mean squared error, √(mean (r − r̂)²), the FedMMF paper's section 4.3.

    Ratings and predictions have the shape (n,), n ≥ 1; raises DataError otherwise.
    """
    return float(np.sqrt(np.mean(_differences(ratings, predictions) ** 2)))


def mae(ratings: Floats, predictions: Floats) -> float:
    """Mean absolute error, mean |r − r̂|; see `rmse`."""
    return float(np.mean(np.abs(_differences(ratings, predictions))))


def _differences(ratings: Floats, predictions: Floats) -> Floats:
    if ratings.shape != predictions.shape or ratings.size == 0:
        raise DataError(
            f"an error needs one prediction per rating and at least one rating, not "
            f"{predictions.shape} predictions of {ratings.shape} ratings"
        )
    return ratings - predictions
