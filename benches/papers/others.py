"""Table `others`: ratings of other people, on which no setting of the models was chosen.

All rows of a data set use the same splits, so that differences are paired by the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benches.papers import baselines
from benches.papers.baselines import Baseline
from benches.papers.table import Below, Panel, Row, Run, Table, at_most
from benches.papers.training import CLIP, errors, parted, trainer
from fedmf.aggregate import PlainSum
from fedmf.bayes import FedBPMF
from fedmf.data import Split
from fedmf.models import PRESETS, FedALS, FederatedModel

TITLES: Mapping[str, str] = {
    "filmtrust": "FilmTrust",
    "douban": "Douban",
    "ml-latest-small": "ML-latest",
    "ml-100k": "ML-100K",
    "ml-1m": "ML-1M",
}
REQUIRED = {"filmtrust": 0.800, "douban": 0.729}
SEEDS = 3
BIASES, DEFAULT = "biases", "FedBPMF"
ALS_ROUNDS = 10


def _bayesian(split: Split, run: Run) -> NDArray[np.float64]:
    model = FedBPMF(seed=run.seed, rounds=12 if run.quick else None).fit(split.train)
    return model.predict(split.test.users, split.test.items)


def _factorised(
    model: FederatedModel, rounds: int, split: Split, run: Run
) -> NDArray[np.float64]:
    made = trainer(model, rounds, PlainSum(clip=CLIP), run).fit(split.train)
    return made.predict(split.test.users, split.test.items)


FAST = PRESETS["fast"]
OWN = "own training ratings"
CONTENDERS: Mapping[str, tuple[str, Baseline]] = {
    "user's mean": ("nothing", baselines.user_means),
    BIASES: (OWN, baselines.biases),
    "SVD of Surprise": (OWN, baselines.surprise_svd),
    "SVD++ of Surprise": (OWN, baselines.surprise_svdpp),
    "FedMF fast": ("ML-100K", partial(_factorised, FAST.model, FAST.rounds)),
    "FedALS": ("ML-100K", partial(_factorised, FedALS(), ALS_ROUNDS)),
    DEFAULT: ("ML-100K", _bayesian),
}
"""Rows of each data set: the ratings on which its settings were chosen, and its predictions."""
LEFT_OUT = {("ml-1m", "SVD++ of Surprise")}  # hours


def _title(data: str, name: str) -> str:
    return f"{TITLES[data]}: {name} (set on {CONTENDERS[name][0]})"


def _judged(data: str, predict: Baseline, run: Run) -> dict[str, float]:
    split = parted(data, run)
    return errors(split.test, predict(split, run))


def _row(data: str, name: str) -> Row:
    best = name == DEFAULT
    return Row(
        _title(data, name),
        data,
        partial(_judged, data, CONTENDERS[name][1]),
        target=at_most("RMSE", REQUIRED.get(data) if best else None),
        below={"RMSE": Below(_title(data, BIASES), 0.0)} if best else {},
        seeds=SEEDS,
    )


TABLE = Table(
    key="others",
    title="Ratings of other people",
    metrics=("RMSE", "MAE"),
    panels=(Panel("test RMSE", ("RMSE",)),),
    rows=tuple(
        _row(data, name)
        for data in TITLES
        for name in CONTENDERS
        if (data, name) not in LEFT_OUT
    ),
    note="80/20 split per rating, errors unclipped. In brackets: the ratings on which the "
    "settings were chosen. Rows set on their own training ratings choose among a few "
    "settings on a tenth of them, and are trained again on all. Rows set on ML-100K were not "
    "changed for the other sets; the training parts of ML-100K's seeds overlap with the test "
    "parts of other seeds. The rows of Surprise need scikit-surprise; SVD++ on ML-1M is left "
    "out for its time.",
)
