"""Secure sums, shared or encrypted, against plain ones, and secure training end to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import zip_longest
from time import perf_counter

from benches.papers.table import Row, Run, Table, Target
from benches.papers.training import (
    SEEDS_0_AND_1_SEEN,
    errors,
    errors_after,
    trainer,
    trainer_of,
)
from fedmf.aggregate import Aggregation, PaillierSum, PlainSum, SecAggSum
from fedmf.data import load
from fedmf.data.sets.simulated_views import simulate_views
from fedmf.data.splits import random_split
from fedmf.fcf import FCF, Implicit
from fedmf.masks import FedMMF, LocalHead, RidgeMask
from fedmf.models import PRESETS, FedALS, FederatedModel
from fedmf.training import History, rmse

__all__ = ["TABLES"]

DATA = "ml-100k"
NEIGHBOURS = 60
FAST = PRESETS["fast"]
MASK, HEAD = RidgeMask(penalty=40.0), LocalHead()
CLIP = 64.0  # beyond all moments of ALS; FedMF's gradients stay below 16
ALS = FedALS()
IMPLICIT = Implicit(k=4)
VIEWERS, STEPS = 300, 3  # of FCF, and the sums of its one epoch
KEY_BITS = 3072
LOST = "users lost"  # how many were left out of a sum, over all sums but the count of raters


@dataclass(frozen=True)
class _Trained:
    """What two trainings are compared by: the digests of all sums, and the error if any.

    `lost` is how many users were left out of a sum, over all sums but the count of raters.
    """

    digests: tuple[str | None, ...]
    lost: int
    rmse: float | None = None


def _lost(history: History) -> int:
    return sum(one.cohort - one.survivors for one in history)


def _trained(history: History) -> _Trained:
    """Return the digests of all integers that were summed, counts and gradients."""
    found = (digest for one in history for digest in (one.count_digest, one.digest))
    return _Trained(
        tuple(one for one in found if one is not None),
        _lost(history),
        errors_after(history)["RMSE"],
    )


def _factors(
    data: str,
    model: FederatedModel,
    rounds: int,
    dropout: float,
    summing: Aggregation,
    run: Run,
) -> _Trained:
    split = random_split(load(data), seed=run.seed)
    made = trainer_of(model, rounds, summing, run, dropout=dropout)
    return _trained(made.fit(split.train, split.test).history_)


def _masked(rounds: int, summing: Aggregation, run: Run) -> _Trained:
    split = random_split(load(DATA), seed=run.seed)
    model = FedMMF(MASK, trainer_of(FAST.model, rounds, summing, run))
    return _trained(model.fit(split.train, split.test).history_)


def _views(dropout: float, summing: Aggregation, run: Run) -> _Trained:
    model = FCF(IMPLICIT, summing, epochs=1, steps=STEPS, dropout=dropout, seed=run.seed)
    sums = [s.aggregate for s in model.iterate(simulate_views(VIEWERS, seed=run.seed))]
    return _Trained(
        tuple(None if one is None else one.digest for one in sums),
        sum(VIEWERS - (0 if one is None else len(one.survivors)) for one in sums),
    )


def _shared(clip: float, bits: int) -> Aggregation:
    return SecAggSum(neighbours=NEIGHBOURS, clip=clip, fractional_bits=bits)


def _encrypted(clip: float, bits: int) -> Aggregation:
    return PaillierSum(trust="key holder", bits=KEY_BITS, clip=clip, fractional_bits=bits)


def _compared(
    train: Callable[[Aggregation, Run], _Trained],
    summing: Callable[[float, int], Aggregation],
    encoding: Mapping[str, float],
    run: Run,
) -> dict[str, float]:
    """Train under both sums, and count those that are not the same integers."""
    clip, bits = encoding["clip"], int(encoding["fractional_bits"])
    secure, plain = (
        train(one, run)
        for one in (summing(clip, bits), PlainSum(clip=clip, fractional_bits=bits))
    )
    pairs = list(zip_longest(secure.digests, plain.digests))
    found: dict[str, float] = {
        "sums": len(secure.digests),
        "sums that differ": sum(one != other for one, other in pairs),
        LOST: secure.lost,
    }
    if secure.rmse is not None and plain.rmse is not None:
        found["ΔRMSE"] = abs(secure.rmse - plain.rmse)
    return found


def _secure_row(
    name: str,
    train: Callable[[Aggregation, Run], _Trained],
    settings: Mapping[str, object],
    *,
    data: str = DATA,
    sums: int,
    dropout: float = 0.0,
    encrypted: bool = False,
    errors: bool = True,
    clip: float = 16.0,
    bits: int = 16,
) -> Row:
    encoding = {"clip": clip, "fractional_bits": bits}
    none = Target(at_most=0)
    return Row(
        name=name,
        data=data,
        run=partial(_compared, train, _encrypted if encrypted else _shared, encoding),
        settings={**settings, **encoding, "dropout": dropout}
        | ({"bits": KEY_BITS} if encrypted else {"neighbours": NEIGHBOURS}),
        target={
            "sums": Target(at_least=sums),
            "sums that differ": none,
            LOST: Target(at_least=1) if dropout else none,
        }
        | ({"ΔRMSE": none} if errors else {}),
        seeds=2,
    )


def _fedmf_row(dropout: float, rounds: int = 3) -> Row:
    return _secure_row(
        f"FedMF, ml-100k, {rounds} rounds, {dropout:.0%} vanishing",
        partial(_factors, DATA, FAST.model, rounds, dropout),
        {"model": asdict(FAST.model), "rounds": rounds},
        sums=rounds + 1,  # the raters are counted first
        dropout=dropout,
    )


def _fcf_row(dropout: float) -> Row:
    return _secure_row(
        f"FCF, simulated views, {STEPS} sums, {dropout:.0%} vanishing",
        partial(_views, dropout),
        {"model": asdict(IMPLICIT), "users": VIEWERS, "steps": STEPS},
        data="simulated",
        sums=STEPS,
        dropout=dropout,
        errors=False,
        bits=24,
    )


def _other_rows(rounds: int = 2) -> tuple[Row, ...]:
    return (
        _secure_row(
            f"FedMMF, ml-100k, {rounds} rounds",
            partial(_masked, rounds),
            {"model": asdict(FAST.model), "rounds": rounds, "mask": asdict(MASK)},
            sums=rounds + 1,
        ),
        _secure_row(
            f"exact federated ALS, simulated ratings, {rounds} rounds",
            partial(_factors, "simulated", ALS, rounds, 0.0),
            {"model": asdict(ALS), "rounds": rounds},
            data="simulated",
            sums=rounds + 1,
            clip=CLIP,
        ),
        _fcf_row(0.0),
        _fcf_row(0.1),
        _secure_row(
            f"HE-FedMF (Paillier, {KEY_BITS} bits), simulated ratings, {rounds} rounds",
            partial(_factors, "simulated", FAST.model, rounds, 0.0),
            {"model": asdict(FAST.model), "rounds": rounds},
            data="simulated",
            sums=rounds + 1,
            encrypted=True,
        ),
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
    return {
        "RMSE without head": rmse(test.values, model.predict(test.users, test.items)),
        **errors(test, whole.predict(test.users, test.items)),
        LOST: _lost(model.history_),
        "seconds": seconds,
    }


TABLES = (
    Table(
        key="secure",
        title="Secure sums, by sharing and by encryption, against plain ones",
        metrics=("sums", "sums that differ", LOST, "ΔRMSE"),
        rows=(_fedmf_row(0.0), _fedmf_row(0.1), *_other_rows()),
        note="Every user is a client of the protocol, 943 of MovieLens 100K, 300 simulated "
        f"ones, with {NEIGHBOURS} neighbours each; HE-FedMF is the same FedMF under "
        f"`PaillierSum`, a key holder apart from users and server decrypting each sum, with a "
        f"key of {KEY_BITS} bits. *{LOST}*: how many users were left out of a round's sum for "
        "having vanished, over all rounds. Sums are compared by the SHA-256 of their "
        "integers, the count of the raters (but of FCF) and what is summed in each round. "
        "Where all are the same, what holds for the plain integers holds for the secure ones: "
        "the table `fixed-point` compares those with floating point over whole trainings.",
    ),
    Table(
        key="end-to-end",
        title="FedMMF by secret sharing from end to end: MovieLens 100K, a tenth vanishing",
        metrics=("RMSE without head", "RMSE", "MAE", LOST, "seconds"),
        rows=(
            Row(
                name=f"one-order FedMMF + local head, {FAST.rounds} rounds",
                data=DATA,
                run=_end_to_end,
                settings={
                    "model": asdict(FAST.model),
                    "rounds": FAST.rounds,
                    "neighbours": NEIGHBOURS,
                    "mask": asdict(MASK),
                    "head": asdict(HEAD),
                },
                target={LOST: Target(at_least=1)},
                seeds=2,
            ),
        ),
        note=f"All 943 users are clients of the protocol with {NEIGHBOURS} neighbours each, in "
        "one process; in each round a tenth of them vanish in a random phase; *"
        f"{LOST}* are those whose vectors are not in a round's sum, over all rounds. Loading "
        "the data is part of the seconds. " + SEEDS_0_AND_1_SEEN,
    ),
)
