"""Secure sums against plain ones: the same integers, and so the same recommender."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

from fedmf.aggregate import PlainSum, SecAggSum
from fedmf.data import load
from fedmf.history import History
from fedmf.presets import PRESETS, Preset
from fedmf.reproduce.table import Row, Run, Table, Target
from fedmf.reproduce.training import errors_after, train
from fedmf.splits import random_split

__all__ = ["TABLE"]

DATA = "ml-100k"
NEIGHBOURS = 60
SHORT = replace(PRESETS["fast"], rounds=3)


def _digests(history: History) -> list[str | None]:
    """Return the digests of all integers that were summed, counts and gradients."""
    return [digest for one in history for digest in (one.count_digest, one.digest)]


def _secure(dropout: float, run: Run) -> dict[str, float]:
    """Train under both sums, and count those that are not the same integers."""
    split = random_split(load(DATA), seed=run.seed)
    secagg = SecAggSum(neighbours=NEIGHBOURS)
    secure, plain = (
        train(SHORT, split, one, run, dropout=dropout) for one in (secagg, PlainSum())
    )
    pairs = list(zip(_digests(secure), _digests(plain), strict=True))
    return {
        "sums": len([one for one, _ in pairs if one is not None]),
        "sums that differ": sum(one != other for one, other in pairs),
        "ΔRMSE": abs(errors_after(secure)["RMSE"] - errors_after(plain)["RMSE"]),
    }


def _secure_row(dropout: float) -> Row:
    return Row(
        name=f"secret sharing against plain, {dropout:.0%} of the users vanishing",
        data=DATA,
        run=partial(_secure, dropout),
        settings=_settings(SHORT) | {"neighbours": NEIGHBOURS, "dropout": dropout},
        target={"sums that differ": Target(at_most=0), "ΔRMSE": Target(at_most=0)},
        seeds=2,
    )


def _settings(preset: Preset) -> dict[str, object]:
    return {"model": asdict(preset.model), "rounds": preset.rounds}


TABLE = Table(
    key="secure",
    title="Secure sums against plain ones: FedMF on MovieLens 100K",
    metrics=("sums", "sums that differ", "ΔRMSE"),
    rows=(_secure_row(0.0), _secure_row(0.1)),
    note=f"943 users as clients of the protocol with {NEIGHBOURS} neighbours each, preset "
    f"fast, {SHORT.rounds} rounds. Sums are compared by the SHA-256 of their integers: the "
    "count of the raters and the gradients of each round.",
)
