"""Tables that compare secure sums with plain sums, and train end to end under secure sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import zip_longest
from time import perf_counter
from typing import TypeAlias

from benches.papers.simulated_views import simulate_views
from benches.papers.table import Row, Run, Table, Target, at_most
from benches.papers.training import CLIP, SEEDS_0_AND_1_SEEN, history, judged, parted, trainer
from fedmf.aggregate import Aggregation, PaillierSum, PlainSum, SecAggSum
from fedmf.fcf import FCF, Implicit
from fedmf.masks import FedMMF, LocalHead, RidgeMask
from fedmf.models import PRESETS, FedALS, FederatedModel
from fedmf.training import History

DATA = "ml-100k"
NEIGHBOURS = 60
FAST = PRESETS["fast"]
MASK, HEAD = RidgeMask(penalty=40.0), LocalHead()
VIEWERS, STEPS = 300, 3  # users of FCF, and sums of its one epoch
KEY_BITS = 3072
LOST = "dropouts"


Train: TypeAlias = Callable[[Aggregation, Run], History]


def _factors(
    data: str, model: FederatedModel, rounds: int, dropout: float, by: Aggregation, run: Run
) -> History:
    return history(parted(data, run), model, rounds, by, run, dropout)


def _masked(rounds: int, by: Aggregation, run: Run) -> History:
    split = parted(DATA, run)
    model = FedMMF(MASK, trainer(FAST.model, rounds, by, run))
    return model.fit(split.train, split.test).history_


def _views(dropout: float, by: Aggregation, run: Run) -> History:
    model = FCF(Implicit(k=4), by, rounds=1, steps=STEPS, dropout=dropout, seed=run.seed)
    return model.fit(simulate_views(VIEWERS, seed=run.seed)).history_


def _lost(history: History) -> int:
    """Return the number of users left out, added up over all sums but the count of raters."""
    return sum(one.cohort - one.survivors for one in history)


def _digests(history: History) -> list[str]:
    """Return the digests of all sums, of counts and of gradients."""
    found = (digest for one in history for digest in (one.count_digest, one.digest))
    return [digest for digest in found if digest is not None]


def _compared(
    train: Train, encrypted: bool, clip: float, bits: int, run: Run
) -> dict[str, float]:
    """Train with secure and with plain sums, and count the sums that differ."""
    by: Aggregation
    if encrypted:
        by = PaillierSum(trust="key holder", bits=KEY_BITS, clip=clip, fractional_bits=bits)
    else:
        by = SecAggSum(neighbours=NEIGHBOURS, clip=clip, fractional_bits=bits)
    secure, plain = train(by, run), train(PlainSum(clip=clip, fractional_bits=bits), run)
    digests = _digests(secure)
    pairs = zip_longest(digests, _digests(plain))
    found: dict[str, float] = {
        "sums": len(digests),
        "sums that differ": sum(one != other for one, other in pairs),
        LOST: _lost(secure),
    }
    errors = secure.last.test_rmse, plain.last.test_rmse
    if errors[0] is not None and errors[1] is not None:
        found["ΔRMSE"] = abs(errors[0] - errors[1])
    return found


def _row(
    name: str,
    train: Train,
    *,
    data: str = "simulated",
    sums: int = 3,
    dropout: float = 0.0,
    encrypted: bool = False,
    errors: bool = True,
    clip: float = 16.0,
    bits: int = 16,
) -> Row:
    none = Target(at_most=0)
    target = {"sums": Target(at_least=sums), "sums that differ": none}
    target |= {LOST: Target(at_least=1) if dropout else none}
    return Row(
        name,
        data,
        partial(_compared, train, encrypted, clip, bits),
        target=target | at_most("ΔRMSE", 0 if errors else None),
        seeds=2,
    )


LOSING = (0.0, 0.1)
ROWS = (
    *(
        _row(
            f"FedMF, ml-100k, 3 rounds, {dropout:.0%} dropout",
            partial(_factors, DATA, FAST.model, 3, dropout),
            data=DATA,
            sums=4,  # the raters are counted first
            dropout=dropout,
        )
        for dropout in LOSING
    ),
    _row("FedMMF, ml-100k, 2 rounds", partial(_masked, 2), data=DATA),
    _row(
        "exact federated ALS, simulated ratings, 2 rounds",
        partial(_factors, "simulated", FedALS(), 2, 0.0),
        clip=CLIP,
    ),
    *(
        _row(
            f"FCF, simulated views, {STEPS} sums, {dropout:.0%} dropout",
            partial(_views, dropout),
            dropout=dropout,
            errors=False,
            bits=24,
        )
        for dropout in LOSING
    ),
    _row(
        f"HE-FedMF (Paillier, {KEY_BITS} bits), simulated ratings, 2 rounds",
        partial(_factors, "simulated", FAST.model, 2, 0.0),
        encrypted=True,
    ),
)


def _end_to_end(run: Run) -> Mapping[str, float]:
    """Train FedMMF by secret sharing with dropouts, and let each user fit a head."""
    start = perf_counter()
    split, secagg = parted(DATA, run), SecAggSum(neighbours=NEIGHBOURS)
    below = trainer(FAST.model, FAST.rounds, secagg, run, dropout=0.1)
    model = FedMMF(MASK, below).fit(split.train)
    whole = HEAD.fit(model.model_, split.train)
    seconds = perf_counter() - start
    return {
        "RMSE without head": judged(model, split.test)["RMSE"],
        **judged(whole, split.test),
        LOST: _lost(model.history_),
        "seconds": seconds,
    }


TABLES = (
    Table(
        key="secure",
        title="Secure sums, by sharing and by encryption, against plain ones",
        metrics=("sums", "sums that differ", LOST, "ΔRMSE"),
        panels=(),  # all is as it should be, or is told by the table
        rows=ROWS,
        note="Every user is a client of the protocol (943 of MovieLens 100K, 300 simulated) "
        f"with {NEIGHBOURS} neighbours. HE-FedMF is the same FedMF under `PaillierSum`: a "
        "key holder, neither a user nor the server, decrypts each sum with a key of "
        f"{KEY_BITS} bits. *{LOST}*: the users left out of a sum, added up over all rounds. "
        "Sums are compared by the SHA-256 of their integers: the count of the raters (not "
        "in FCF) and the sum of each round. Where all are equal, results for the plain "
        "integers are results for the secure sums; the table `fixed-point` compares the "
        "plain integers with floating point over whole trainings.",
    ),
    Table(
        key="end-to-end",
        title="FedMMF by secret sharing from end to end: MovieLens 100K, 10% dropout",
        metrics=("RMSE without head", "RMSE", "MAE", LOST, "seconds"),
        rows=(
            Row(
                f"one-order FedMMF + local head, {FAST.rounds} rounds",
                DATA,
                _end_to_end,
                target={LOST: Target(at_least=1)},
                seeds=2,
            ),
        ),
        note=f"All 943 users are clients of the protocol with {NEIGHBOURS} neighbours each, "
        "in one process. In each round a tenth of them drop out in a random phase. "
        f"*{LOST}*: the users left out of a sum, added up over all rounds. The seconds "
        "include loading the data. " + SEEDS_0_AND_1_SEEN,
    ),
)
