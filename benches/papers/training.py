"""What rows that train have in common: the rounds of a quick run, progress, and the errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benches.papers.table import Run
from fedmf.aggregate import Aggregation, PlainSum
from fedmf.data import Ratings, Split
from fedmf.models import FederatedModel
from fedmf.models.presets import Preset
from fedmf.training import History, RoundRecord, Trainer, mae, rmse

__all__ = [
    "ALS_SEEN",
    "SEEDS_0_AND_1_SEEN",
    "SEED_0_SEEN",
    "errors",
    "errors_after",
    "summed",
    "train",
    "trainer",
    "trainer_of",
]

# What the note of a table must say whose runs part the ratings anew: which test ratings had
# their say in the choice of hyper-parameters. A fifth is for the test, drawn anew by each seed.
SEED_0_SEEN = (
    "Hyper-parameters were chosen on validation ratings of seed 0's training part, which has "
    "none of seed 0's test ratings and four fifths of any other seed's."
)
SEEDS_0_AND_1_SEEN = (
    "Hyper-parameters were chosen on validation ratings of seed 0's training part, some on "
    "those of seed 1's also: the two hold 96 % of all ratings, four fifths of seed 0's and of "
    "seed 1's test ratings among them, so that no test part is untouched."
)
ALS_SEEN = (
    "Those of exact federated ALS were chosen on the training parts of seeds 0 to 2, which "
    "together hold 99 % of all ratings: for that row no test part is untouched."
)


def summed(by: PlainSum) -> dict[str, object]:
    """Return what a row's settings must say of the sum that it trains by."""
    return {"sum": "PlainSum", "clip": by.clip, "fractional bits": by.fractional_bits}


def trainer_of(
    model: FederatedModel,
    rounds: int,
    aggregation: Aggregation,
    run: Run,
    *,
    dropout: float = 0.0,
    callbacks: Sequence[Callable[[RoundRecord], None]] = (),
) -> Trainer:
    """Return what trains a model from the run's seed, for a tenth of the rounds if quick."""
    fewer = max(2, rounds // 10) if run.quick else rounds
    return Trainer(
        model,
        aggregation,
        rounds=fewer,
        seed=run.seed,
        dropout=dropout,
        callbacks=[
            *callbacks,
            lambda record: run.progress("training", record.round, fewer),
        ],
    )


def trainer(
    preset: Preset, aggregation: Aggregation, run: Run, *, dropout: float = 0.0
) -> Trainer:
    """Return what trains a preset, as `trainer_of`."""
    return trainer_of(preset.model, preset.rounds, aggregation, run, dropout=dropout)


def train(
    preset: Preset, split: Split, aggregation: Aggregation, run: Run, *, dropout: float = 0.0
) -> History:
    """Train a preset as `trainer` does, and return what each round came to."""
    made = trainer(preset, aggregation, run, dropout=dropout)
    return made.fit(split.train, split.test).history_


def errors(test: Ratings, predictions: NDArray[np.float64]) -> dict[str, float]:
    """Return RMSE and MAE of predictions of ratings, in their order."""
    return {"RMSE": rmse(test.values, predictions), "MAE": mae(test.values, predictions)}


def errors_after(history: History) -> dict[str, float]:
    """Return RMSE and MAE on the test ratings after the last round."""
    last = history.last
    if last.test_rmse is None or last.test_mae is None:
        raise ValueError("there are no errors of a training without test ratings")
    return {"RMSE": last.test_rmse, "MAE": last.test_mae}
