"""Records of the rounds of a training, and the error measures `rmse` and `mae`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError, ModelError

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """Record of a round, in plain numbers that can be written as JSON.

    Attributes
    ----------
    round : int, 1, 2, …
    cohort, survivors : int, users in the cohort, and users with a vector in the sum
    aborted : str, reason why the round was aborted, with the factors unchanged; None if not
    trained_items : int, number of items with enough raters; None before the first count
    train_rmse, test_rmse, test_mae : float, errors after the round; None if not measured
    client_seconds, server_seconds
        Time of all users together, and of the server, for the sum and the count of raters.
    key_holder_seconds : float, time of the key holder or the trustees, 0 if there are none
    seconds : float, time of the whole round by the clock, with the measurement of errors
    bytes_up, bytes_down : float, mean per user as in `Aggregate`, with the count
    clipped : int, number of elements that exceeded the clip of the fixed-point encoding
    digest, count_digest : str or None, `Aggregate.digest` of any sum and of any counts
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

    def __repr__(self) -> str:
        users = f"{self.survivors:,} of {self.cohort:,} users"
        return f"<RoundRecord: round {self.round}, {users}{_shown(self)}>"


@dataclass(frozen=True)
class History:
    """Records of a training's rounds; `interrupted` is True if Ctrl-C ended the training."""

    rounds: tuple[RoundRecord, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        end = _shown(self.rounds[-1]) if self.rounds else ""
        return f"<History: rounds {len(self.rounds):,}{end}>"

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
        """Return the history as a dictionary for ``json.dumps``."""
        return {
            "interrupted": self.interrupted,
            "rounds": [asdict(record) for record in self.rounds],
        }


def _shown(record: RoundRecord) -> str:
    return "" if record.test_rmse is None else f", test RMSE {record.test_rmse:.4f}"


def rmse(ratings: Floats, predictions: Floats) -> float:
    """Return the root mean squared error, √(mean (r − r̂)²) (FedMMF, section 4.3).

    Ratings and predictions are arrays of the same shape (n,), n ≥ 1; otherwise DataError.
    """
    return float(np.sqrt(np.mean(_differences(ratings, predictions) ** 2)))


def mae(ratings: Floats, predictions: Floats) -> float:
    """Return the mean absolute error, mean |r − r̂|; see `rmse` for shapes and errors."""
    return float(np.mean(np.abs(_differences(ratings, predictions))))


def _differences(ratings: Floats, predictions: Floats) -> Floats:
    if ratings.shape != predictions.shape or ratings.size == 0:
        raise DataError(
            f"an error needs one prediction per rating and at least one rating, not "
            f"{predictions.shape} predictions of {ratings.shape} ratings"
        )
    return ratings - predictions
