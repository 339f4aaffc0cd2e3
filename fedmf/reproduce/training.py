"""What rows that train factors have in common: the rounds of a quick run, and progress."""

from __future__ import annotations

from fedmf.aggregate import Aggregation
from fedmf.data import Split
from fedmf.history import History
from fedmf.presets import Preset
from fedmf.reproduce.table import Run
from fedmf.trainer import Trainer

__all__ = ["errors_after", "train", "trainer"]


def trainer(
    preset: Preset, aggregation: Aggregation, run: Run, *, dropout: float = 0.0
) -> Trainer:
    """Return what trains a preset from the run's seed, for a tenth of its rounds if quick."""
    rounds = max(1, preset.rounds // 10) if run.quick else preset.rounds
    return Trainer(
        preset.model,
        aggregation,
        rounds=rounds,
        seed=run.seed,
        dropout=dropout,
        callbacks=[lambda record: run.progress("training", record.round, rounds)],
    )


def train(
    preset: Preset, split: Split, aggregation: Aggregation, run: Run, *, dropout: float = 0.0
) -> History:
    """Train a preset as `trainer` does, and return what each round came to."""
    made = trainer(preset, aggregation, run, dropout=dropout)
    return made.fit(split.train, split.test).history_


def errors_after(history: History) -> dict[str, float]:
    """Return RMSE and MAE on the test ratings after the last round."""
    last = history.last
    if last.test_rmse is None or last.test_mae is None:
        raise ValueError("there are no errors of a training without test ratings")
    return {"RMSE": last.test_rmse, "MAE": last.test_mae}
