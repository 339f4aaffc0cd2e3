"""FedMF's presets for few rounds on MovieLens 100K; those of the paper are in `fedmmf4`."""

from __future__ import annotations

from functools import partial

from benches.papers.table import Row, Run, Table, Target
from benches.papers.training import SEED_0_SEEN, errors_after, history, parted
from fedmf.aggregate import PlainSum
from fedmf.models import PRESETS

__all__ = ["TABLE"]

DATA = "ml-100k"


def _run(name: str, dropout: float, run: Run) -> dict[str, float]:
    chosen, split = PRESETS[name], parted(DATA, run)
    return errors_after(history(split, chosen.model, chosen.rounds, PlainSum(), run, dropout))


def _row(name: str, *, dropout: float = 0.0, most: float | None = None) -> Row:
    losing = f", {dropout:.0%} vanishing" if dropout else ""
    return Row(
        name=f"FedMF, preset {name}, {PRESETS[name].rounds} rounds{losing}",
        data=DATA,
        run=partial(_run, name, dropout),
        target={} if most is None else {"RMSE": Target(at_most=most)},
    )


TABLE = Table(
    key="presets",
    title="FedMF's presets for few rounds: MovieLens 100K",
    metrics=("RMSE", "MAE"),
    rows=(_row("fast", most=0.922), _row("fast", dropout=0.1), _row("biases")),
    note="80/20 split per rating, errors unclipped, summed as the fixed-point integers that "
    "the secure sum gives. The presets `paper` and `tuned` are in `fedmmf-4`, `large` is in "
    f"`large`; `selection` shows what presets were chosen from. {SEED_0_SEEN}",
)
