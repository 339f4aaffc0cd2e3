"""Tables of FedMF's error by the number of rounds, with dropouts, and in fixed point."""

from __future__ import annotations

from functools import partial

from benches.papers.selection import TUNED
from benches.papers.table import Panel, Row, Run, Table, at_most
from benches.papers.training import ALS_SEEN, CLIP, SEED_0_SEEN, history, parted
from fedmf.aggregate import Aggregation, FloatSum, PlainSum
from fedmf.models import PRESETS, FedALS, FederatedModel
from fedmf.training import History

DATA = "ml-100k"
NORMALISED = PRESETS["fast"].model
ALS = FedALS()
COUNTED = (5, 10, 20, 40)  # rounds after which the error is shown
TWICE = 2 * COUNTED[-1]
BITS = (4, 8, 16)


def _errors(history: History) -> list[float]:
    return [one.test_rmse for one in history if one.test_rmse is not None]


def _last(
    model: FederatedModel, rounds: int, run: Run, summing: Aggregation, dropout: float = 0.0
) -> float:
    return _errors(history(parted(DATA, run), model, rounds, summing, run, dropout))[-1]


def _after(rounds: int) -> str:
    return f"RMSE, {rounds} rounds"


def _rounds(model: FederatedModel, rounds: int, run: Run) -> dict[str, float]:
    """Return the test RMSE after each number of rounds in `COUNTED` that was reached."""
    found = history(parted(DATA, run), model, rounds, PlainSum(clip=CLIP), run)
    errors = _errors(found)
    shown = {_after(n): errors[n - 1] for n in COUNTED if n <= len(errors)}
    return shown | {"clipped": sum(one.clipped for one in found)}


def _rounds_row(name: str, model: FederatedModel, rounds: int, most: float | None) -> Row:
    target = at_most("clipped", 0) | at_most(_after(rounds), most)
    return Row(name, DATA, partial(_rounds, model, rounds), target=target)


def _cost(dropout: float, run: Run) -> dict[str, float]:
    """Return the error with dropouts after twice the rounds, beside the error without."""
    summing = PlainSum(clip=CLIP)
    still = _last(NORMALISED, TWICE // 2, run, summing)
    losing = _last(NORMALISED, TWICE, run, summing, dropout)
    return {"RMSE": losing, "no dropout": still, "cost": losing - still}


def _rounding(model: FederatedModel, rounds: int, bits: int, run: Run) -> dict[str, float]:
    """Return the error in fixed point, and its absolute difference to floating point."""
    sums = PlainSum(clip=CLIP, fractional_bits=bits), FloatSum()
    fixed, floats = (_last(model, rounds, run, summing) for summing in sums)
    return {"RMSE": fixed, "ΔRMSE": abs(fixed - floats)}


def _rounding_row(name: str, model: FederatedModel, rounds: int, bits: int = max(BITS)) -> Row:
    return Row(
        f"{name}, {bits} fractional bits",
        DATA,
        partial(_rounding, model, rounds, bits),
        target=at_most("ΔRMSE", 1e-5 if bits == max(BITS) else None),
    )


SPLIT = f"80/20 split per rating, errors unclipped. {SEED_0_SEEN}"

TABLES = (
    Table(
        key="rounds",
        title="Error by the number of rounds: MovieLens 100K",
        metrics=(*map(_after, COUNTED), "clipped"),
        panels=(Panel("test RMSE", tuple(map(_after, COUNTED))),),
        rows=(
            _rounds_row(
                "FedMF, exact local solves and normalised steps", NORMALISED, 40, 0.922
            ),
            _rounds_row("exact federated ALS", ALS, 10, 0.920),
        ),
        note=SPLIT
        + f" {ALS_SEEN} Sums are fixed-point integers with a clip of {CLIP:g}; *clipped* "
        f"counts the elements beyond it. FedMF sends {NORMALISED.width} numbers per item and "
        f"round, ALS {ALS.width}. λ and γ were chosen on a fifth of the training parts.",
    ),
    Table(
        key="dropouts",
        title="Cost of dropouts: FedMF on MovieLens 100K",
        metrics=("RMSE", "no dropout", "cost"),
        panels=(Panel("cost in RMSE", ("cost",)),),
        rows=tuple(
            Row(
                f"{dropout:.0%} dropout in each round, {TWICE} rounds",
                DATA,
                partial(_cost, dropout),
                target=at_most("cost", 0.0005),
                reason="raters counted in a round with as many dropouts fall below the "
                "minimum, so items stay untrained, and the last rounds fluctuate",
            )
            for dropout in (0.1, 0.3, 0.5)
        ),
        note=SPLIT + " Exact local solves and normalised steps. *no dropout*: the error after "
        f"{TWICE // 2} rounds without dropouts. In each round other users drop out, in an "
        "evenly drawn phase of the protocol: three quarters of them before their gradients "
        "are sent. Raters are counted once, in a round with as many dropouts. At 50 %, some "
        "items then count as rated by fewer than three users and stay untrained, and the "
        "last rounds differ by about .0005 among themselves.",
    ),
    Table(
        key="fixed-point",
        title="Cost of fixed point against floating point: MovieLens 100K",
        metrics=("RMSE", "ΔRMSE"),
        panels=(Panel("ΔRMSE", ("ΔRMSE",)),),
        rows=(
            *(_rounding_row("FedMF", NORMALISED, 40, bits) for bits in BITS),
            *(
                _rounding_row(f"FedMF, {name}", one.model, one.rounds)
                for name, one in (
                    ("tuned", TUNED),
                    ("preset paper", PRESETS["paper"]),
                )
            ),
            _rounding_row("exact federated ALS", ALS, 10),
        ),
        note=SPLIT + f" {ALS_SEEN} ΔRMSE is the absolute difference to the same training with "
        "`FloatSum`. The default is 16 fractional bits.",
    ),
)
