"""Secure sums against plain ones, and a training under secure sums from end to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from time import perf_counter

from fedmf.aggregate import FloatSum, PlainSum, SecAggSum
from fedmf.data import load
from fedmf.head import LocalHead
from fedmf.history import History
from fedmf.masks import RidgeMask
from fedmf.metrics import mae, rmse
from fedmf.mmf import FedMMF
from fedmf.presets import PRESETS, Preset
from fedmf.reproduce.table import Row, Run, Table, Target
from fedmf.reproduce.training import errors_after, train, trainer
from fedmf.splits import random_split

__all__ = ["TABLES"]

DATA = "ml-100k"
NEIGHBOURS = 60
FAST = PRESETS["fast"]
SHORT = replace(FAST, rounds=3)
MASK, HEAD = RidgeMask(penalty=40.0), LocalHead()


def _settings(preset: Preset, **more: object) -> dict[str, object]:
    return {"model": asdict(preset.model), "rounds": preset.rounds, **more}


def _digests(history: History) -> list[str | None]:
    """Return the digests of all integers that were summed, counts and gradients."""
    return [digest for one in history for digest in (one.count_digest, one.digest)]


def _apart(one: History, other: History) -> float:
    return abs(errors_after(one)["RMSE"] - errors_after(other)["RMSE"])


def _secure(dropout: float, run: Run) -> dict[str, float]:
    """Train under both sums, and count those that are not the same integers."""
    split = random_split(load(DATA), seed=run.seed)
    secure, plain = (
        train(SHORT, split, one, run, dropout=dropout)
        for one in (SecAggSum(neighbours=NEIGHBOURS), PlainSum())
    )
    pairs = list(zip(_digests(secure), _digests(plain), strict=True))
    return {
        "sums": sum(one is not None for one, _ in pairs),
        "sums that differ": sum(one != other for one, other in pairs),
        "ΔRMSE": _apart(secure, plain),
    }


def _secure_row(dropout: float) -> Row:
    return Row(
        name=f"secret sharing against plain, {SHORT.rounds} rounds, {dropout:.0%} vanishing",
        data=DATA,
        run=partial(_secure, dropout),
        settings=_settings(SHORT, neighbours=NEIGHBOURS, dropout=dropout),
        target={"sums that differ": Target(at_most=0), "ΔRMSE": Target(at_most=0)},
        seeds=2,
    )


def _rounded(preset: Preset, run: Run) -> dict[str, float]:
    """Train under fixed-point and floating-point sums."""
    split = random_split(load(DATA), seed=run.seed)
    fixed, floating = (train(preset, split, one, run) for one in (PlainSum(), FloatSum()))
    return {"ΔRMSE": _apart(fixed, floating)}


def _rounded_row(name: str) -> Row:
    preset = PRESETS[name]
    return Row(
        name=f"fixed against floating point, preset {name}, {preset.rounds} rounds",
        data=DATA,
        run=partial(_rounded, preset),
        settings=_settings(preset, fractional_bits=PlainSum().fractional_bits),
        target={"ΔRMSE": Target(at_most=1e-5)},
    )


def _end_to_end(run: Run) -> Mapping[str, float]:
    """Train FedMMF by secret sharing with users vanishing, and let each fit a head."""
    start = perf_counter()
    split = random_split(load(DATA), seed=run.seed)
    secagg = SecAggSum(neighbours=NEIGHBOURS)
    model = FedMMF(MASK, trainer(FAST, secagg, run, dropout=0.1)).fit(split.train)
    whole = HEAD.fit(model.model_, split.train)
    seconds = perf_counter() - start
    test = split.test
    predictions = whole.predict(test.users, test.items)
    return {
        "RMSE without head": rmse(test.values, model.predict(test.users, test.items)),
        "RMSE": rmse(test.values, predictions),
        "MAE": mae(test.values, predictions),
        "seconds": seconds,
    }


TABLES = (
    Table(
        key="secure",
        title="Secure sums against plain ones: FedMF on MovieLens 100K",
        metrics=("sums", "sums that differ", "ΔRMSE"),
        rows=(_secure_row(0.0), _secure_row(0.1), *map(_rounded_row, PRESETS)),
        note=f"943 users as clients of the protocol with {NEIGHBOURS} neighbours each. Sums "
        "are compared by the SHA-256 of their integers, the count of the raters and the "
        "gradients of each round; as all are the same, what holds for the plain integers "
        "holds for the secure ones, and they are compared with floating point over whole "
        "trainings.",
    ),
    Table(
        key="end-to-end",
        title="FedMMF by secret sharing from end to end: MovieLens 100K, a tenth vanishing",
        metrics=("RMSE without head", "RMSE", "MAE", "seconds"),
        rows=(
            Row(
                name=f"one-order FedMMF + local head, {FAST.rounds} rounds",
                data=DATA,
                run=_end_to_end,
                settings=_settings(
                    FAST, neighbours=NEIGHBOURS, mask=asdict(MASK), head=asdict(HEAD)
                ),
                seeds=2,
            ),
        ),
        note=f"All 943 users are clients of the protocol with {NEIGHBOURS} neighbours each, in "
        "one process; in each round a tenth of them vanish in a random phase. Loading the data "
        "is part of the seconds.",
    ),
)
