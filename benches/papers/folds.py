"""Table `folds`: the five splits of MovieLens 100K that come with the data, u1 to u5."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from benches.papers.others import BIASES, CONTENDERS, DEFAULT
from benches.papers.table import Below, Panel, Results, Row, Run, Table
from benches.papers.training import errors
from fedmf.data import load
from fedmf.data.splits import FOLDS, official

DATA, SEEDS = "ml-100k", 3


def _title(fold: int, name: str) -> str:
    return f"u{fold}: {name} (set on {CONTENDERS[name][0]})"


def _judged(fold: int, name: str, run: Run) -> dict[str, float]:
    split = official(load(DATA), fold)
    return errors(split.test, CONTENDERS[name][1](split, run))


def _row(fold: int, name: str) -> Row:
    below = {"RMSE": Below(_title(fold, BIASES), 0.01)} if name == DEFAULT else {}
    run = partial(_judged, fold, name)
    return Row(_title(fold, name), DATA, run, below=below, seeds=SEEDS)


def means(results: Results) -> Sequence[str]:
    """Return a sentence with the mean RMSE of each model over the five folds that were run."""
    found = list[str]()
    for name in (DEFAULT, BIASES):
        runs = [results.get(_title(fold, name), ()) for fold in FOLDS]
        if all(runs):
            mean = fmean(fmean(run["RMSE"] for run in fold) for fold in runs)
            found.append(f"{name}, mean RMSE over u1 to u5: {mean:.4f}.")
    return found


TABLE = Table(
    key="folds",
    title="The official splits of MovieLens 100K, u1 to u5",
    metrics=("RMSE", "MAE"),
    panels=(Panel("test RMSE", ("RMSE",)),),
    rows=tuple(_row(fold, name) for name in (DEFAULT, BIASES) for fold in FOLDS),
    note="Seeds change the chain and the validation part of the biases, not the split. Errors "
    "unclipped. In brackets: the ratings on which the settings were chosen. For FedBPMF this "
    "is a random part of ML-100K, which has four fifths of each fold's test ratings. "
    "Published on u1, centralised: GC-MC .905 (van den Berg et al. 2017), GLocal-K .889 (Han "
    "et al. 2021).",
    findings=means,
)
