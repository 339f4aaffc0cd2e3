"""What a training records of each of its rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from fedmf.errors import ModelError

__all__ = ["History", "RoundRecord"]


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """What one round did; plain numbers, so that it can be written as JSON.

    Attributes
    ----------
    round
        1, 2, …
    cohort, survivors
        How many users took part, and how many of their vectors are in the sum.
    aborted
        Why there was no sum, or None. The factors are then as they were.
    trained_items
        How many items had raters enough, None while nothing has been counted.
    train_rmse, test_rmse, test_mae
        The errors after the round; None where none are measured, as of a training without
        test ratings, of features, or of implicit feedback.
    client_seconds, server_seconds
        What the users together and the server took to aggregate, counting included where the
        round counted the raters.
    key_holder_seconds
        What those took who decrypt and are neither, 0 where there are none.
    seconds
        The whole round by the clock, metrics included.
    bytes_up, bytes_down
        Per user on average, as of `Aggregate`, counting included.
    clipped
        Elements beyond the clip of the fixed-point encoding.
    digest, count_digest
        `Aggregate.digest` of the gradients' sum, and of the raters' count if the round made
        one.
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
    """The rounds of a training, and whether it was interrupted before its last."""

    rounds: tuple[RoundRecord, ...] = ()
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[RoundRecord]:
        return iter(self.rounds)

    @property
    def last(self) -> RoundRecord:
        """The record of the last round; ModelError if there is none."""
        if not self.rounds:
            raise ModelError("the training was interrupted before its first round was over")
        return self.rounds[-1]

    def as_dict(self) -> dict[str, object]:
        """Return what ``json.dumps`` writes."""
        return {
            "interrupted": self.interrupted,
            "rounds": [asdict(record) for record in self.rounds],
        }
