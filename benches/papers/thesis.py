"""Table 6.1 of Basu's thesis (2020): centralised, federated and secure training."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from benches.papers.centralised import SVD, surprise
from benches.papers.table import Mean, Panel, Row, Run, Table, Target, at_most
from benches.papers.training import errors, errors_after, history, parted, trainer
from fedmf.aggregate import Aggregation, PlainSum, SecAggSum
from fedmf.data import Split, load
from fedmf.data.splits import leave_last
from fedmf.masks import FedMMF, MeanMask
from fedmf.models import FedMF
from fedmf.training import History

LARGE, SMALL = "ml-100k", "ml-latest-small"
HELD_OUT = 3  # ratings per user: "the data was split 70/30", but his counts are these
SURPRISE_TEST = 0.25  # the default of Surprise's train_test_split

# Chosen on the last three ratings of each user *within* the training part of ml-latest-small,
# seed 0, from 9 settings of FedMF and 8 on the mean (λ of .06 to .3, k of 5, 20 and 40, raters
# of 1, 3 and 5, a shrinkage of 0 and 5; no full grid), rounds by the curve: .9272, and .9214
# on the mean, where a second setting had .9210 after 48 rounds.
MODEL = FedMF(k=20, reg=0.1, min_raters=5)
MASKED = FedMF(k=20, reg=0.1, min_raters=3)
MEAN = MeanMask(shrink=5.0)
ROUNDS = 32


def thesis_split() -> Split:
    """Return ml-latest-small with each user's last three ratings held out: 1,830 of them."""
    return leave_last(load(SMALL), HELD_OUT)


def _clipped(split: Split, predictions: NDArray[np.float64]) -> Mapping[str, float]:
    return errors(split.test, np.clip(predictions, *split.test.scale))


def _svd(split: Split, run: Run) -> Mapping[str, float]:
    model = SVD(epochs=run.fewer(20), seed=run.seed).fit(split.train)
    return _clipped(split, model.predict(split.test.users, split.test.items))


def _svd_large(run: Run) -> Mapping[str, float]:
    return _svd(parted(LARGE, run, SURPRISE_TEST), run)


def _surprise(run: Run) -> Mapping[str, float]:
    split = parted(LARGE, run, SURPRISE_TEST)
    found = surprise(split, "SVD", run.seed, clip=True, n_epochs=run.fewer(20))
    return _clipped(split, found)


def _federated(aggregation: Aggregation, run: Run) -> History:
    return history(thesis_split(), MODEL, ROUNDS, aggregation, run)


def _secure(run: Run) -> Mapping[str, float]:
    """Train with secure and plain sums; "same sums" is the share of rounds with equal sums."""
    secure, plain = _federated(SecAggSum(), run), _federated(PlainSum(), run)
    same = [one.digest == two.digest for one, two in zip(secure, plain, strict=True)]
    return {**errors_after(secure), "same sums": float(np.mean(same))}


def _masked(run: Run) -> Mapping[str, float]:
    split = thesis_split()
    model = FedMMF(MEAN, trainer(MASKED, ROUNDS, PlainSum(), run))
    return errors_after(model.fit(split.train, split.test).history_)


CENTRALISED = {"RMSE": Mean(0.9455)}
_ROWS = (
    Row("centralised SVD, ml-100k, 75/25, clipped", LARGE, _svd_large, paper=CENTRALISED),
    Row(
        "SVD of the library Surprise, ml-100k, 75/25, clipped",
        LARGE,
        _surprise,
        paper=CENTRALISED,
    ),
    Row("centralised SVD, thesis split, clipped", SMALL, lambda run: _svd(thesis_split(), run)),
    Row(
        "FedMF, thesis split",
        SMALL,
        lambda run: errors_after(_federated(PlainSum(), run)),
        paper={"RMSE": Mean(1.13412)},
        target=at_most("RMSE", 0.98),
    ),
    Row(
        "FedMF under secure aggregation, thesis split",
        SMALL,
        _secure,
        paper={"RMSE": Mean(1.13534)},
        target=at_most("RMSE", 0.98) | {"same sums": Target(at_least=1.0)},
        seeds=1,  # some minutes of protocol, for the same integers as above
    ),
    Row(
        "FedMMF on the user's mean, thesis split", SMALL, _masked, target=at_most("RMSE", 0.97)
    ),
)

TABLE = Table(
    key="thesis-6.1",
    title="Basu 2020, table 6.1: centralised, federated, secure",
    metrics=("RMSE", "MAE", "same sums"),
    panels=(Panel("RMSE", ("RMSE",)), Panel("MAE", ("MAE",))),
    rows=tuple(
        row for row in _ROWS if "Surprise" not in row.name or find_spec("surprise") is not None
    ),
    note="The thesis compares SVD on ml-100k with federated training on "
    "ml-latest-small; the third row is SVD on the latter. It states a 70/30 split, but "
    "its 99,006 and 1,830 ratings are the result of holding out each user's last three. "
    "Errors of SVD are of predictions clipped to the scale, as in Surprise, all others "
    "unclipped. The row of Surprise needs scikit-surprise. Seeds change the split of "
    "ml-100k, and elsewhere only the start. On ml-latest-small hyper-parameters were "
    "chosen on validation ratings of the one training part, which no test part "
    "overlaps. *same sums*: the share of the rounds whose summed integers are those of "
    "the plain sum.",
)
