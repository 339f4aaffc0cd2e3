"""Functions that the tables share: the split of a run, its training, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benches.papers.table import Run
from fedmf.aggregate import Aggregation, PlainSum
from fedmf.context import ContextTrainer
from fedmf.data import Ratings, Split, load
from fedmf.data.splits import random_split
from fedmf.masks.protocol import FittedMask
from fedmf.models import FederatedModel
from fedmf.models.mf import Preset
from fedmf.models.recommender import Recommender
from fedmf.training import History, RoundRecord, Trainer, mae, rmse

# A table whose runs split the ratings again must name the test ratings that had a part in the
# choice of hyper-parameters. A fifth is for the test, drawn by each seed.
SEED_0_SEEN = (
    "Hyper-parameters were chosen on validation ratings of seed 0's training part. It has none "
    "of seed 0's test ratings, but four fifths of any other seed's."
)
SEEDS_0_AND_1_SEEN = (
    "Hyper-parameters were chosen on validation ratings of seed 0's training part, some also "
    "on those of seed 1's. Together the two have 96 % of all ratings, including four fifths of "
    "either seed's test ratings, so no test part is untouched."
)
ALS_SEEN = (
    "Those of exact federated ALS were chosen on the training parts of seeds 0 to 2, which "
    "together have 99 % of all ratings, so no test part of that row is untouched."
)
CLIP = 64.0
"""Clip that exceeds all moments of ALS; FedMF's gradients stay below 16."""


def parted(data: str, run: Run, test: float = 0.2) -> Split:
    """Load a data set and split its ratings at random, with the run's seed."""
    return random_split(load(data), test, seed=run.seed)


def trainer(
    model: FederatedModel,
    rounds: int,
    aggregation: Aggregation,
    run: Run,
    *,
    dropout: float = 0.0,
    callbacks: Sequence[Callable[[RoundRecord], None]] = (),
) -> Trainer:
    """Return a trainer with the run's seed, for a tenth of the rounds in a quick run."""
    return Trainer(
        model,
        aggregation,
        rounds=run.fewer(rounds, least=2),
        seed=run.seed,
        dropout=dropout,
        callbacks=callbacks,
    )


def in_the_clear(preset: Preset, run: Run, dropout: float = 0.0) -> Trainer:
    """Return a trainer of a preset with plain sums; see `trainer`."""
    return trainer(preset.model, preset.rounds, PlainSum(), run, dropout=dropout)


def history(
    split: Split,
    model: FederatedModel,
    rounds: int,
    aggregation: Aggregation,
    run: Run,
    dropout: float = 0.0,
) -> History:
    """Train as `trainer` does, and return the history with the test errors."""
    made = trainer(model, rounds, aggregation, run, dropout=dropout)
    return made.fit(split.train, split.test).history_


def errors(test: Ratings, predictions: NDArray[np.float64]) -> dict[str, float]:
    """Return RMSE and MAE of predictions, which are in the order of the ratings."""
    return {"RMSE": rmse(test.values, predictions), "MAE": mae(test.values, predictions)}


def judged(model: Recommender | FittedMask | ContextTrainer, test: Ratings) -> dict[str, float]:
    """Return RMSE and MAE of a fitted recommender on test ratings."""
    return errors(test, model.predict(test.users, test.items))


def errors_after(history: History) -> dict[str, float]:
    """Return RMSE and MAE on the test ratings after the last round."""
    last = history.last
    if last.test_rmse is None or last.test_mae is None:
        raise ValueError("a training without test ratings has no errors: pass a test part")
    return {"RMSE": last.test_rmse, "MAE": last.test_mae}
