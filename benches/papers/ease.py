"""Table `ease`: DPEase on MovieLens 1M, and peeling of its sums on MovieLens 100K."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from benches.papers.fcf2 import parts
from benches.papers.ranked import LONG, SHORT
from benches.papers.table import Panel, Row, Run, Table, Target, at_most
from fedmf.attacks import gram_of, peeled
from fedmf.data import Ratings, load
from fedmf.ease import DPEase, ItemWeights
from fedmf.ease.shallow import closed_form
from fedmf.models.recommender import Recommender, all_users
from fedmf.training import ranking
from fedmf.training.measures import Popularity

SMALL, LARGE = "ml-100k", "ml-1m"
OTHERS = (SMALL, "ml-latest-small", "filmtrust", "douban")  # nothing was chosen on these
PEELED = "% of profiles found"
TARGETS = {8.0: {"P@10": Target(at_least=0.29)}, 2.0: {"P@10": Target(at_least=0.24)}}
# Of 500 and 1,000 items, 500 are better at ε = 2 and 1 on the validation ratings of the note;
# at 8 and 4 only 1,000 were tried.
EXACT_REG = 1200.0  # λ of the exact row, of 100 to 3200
KEPT = {8.0: 1000, 4.0: 1000, 2.0: 500, 1.0: 500}  # items, by ε
SIZES = (20, 35, 50, 75, 100, 150, 200, 300, 400)  # of profiles that the attack looks for


def _model(ratings: Ratings, epsilon: float, items: int, run: Run) -> DPEase:
    model = DPEase(
        epsilon=epsilon,
        items=items,
        where="central",
        entropy=np.random.default_rng((run.seed, 1)).bytes,
    )
    return model.fit(ratings)


def _measured(model: Recommender, run: Run, data: str = LARGE) -> dict[str, float]:
    given = parts(data, run.seed)
    short, long = (
        ranking(model, given.test, given.hidden, min(k, model.n_items)) for k in (SHORT, LONG)
    )
    return {"P@10": short.precision, "NDCG@100": long.ndcg}


def _popular(data: str, run: Run) -> dict[str, float]:
    return _measured(Popularity(parts(data, run.seed).train), run, data)


def _ranked(epsilon: float, items: int, data: str, run: Run) -> dict[str, float]:
    return _measured(_model(parts(data, run.seed).train, epsilon, items, run), run, data)


def _exact(run: Run) -> dict[str, float]:
    train = parts(LARGE, run.seed).train
    everything = np.arange(train.n_items, dtype=np.int32)
    weights = closed_form(gram_of(train).astype(np.float64), EXACT_REG)
    return _measured(ItemWeights(weights, everything, **all_users(train)), run)


def _attacked(epsilon: float | None, run: Run) -> dict[str, float]:
    """Return the share of the users whose profile is found, by the best scale of the sum."""
    ratings = load(SMALL)
    if epsilon is None:
        return {PEELED: 100 * peeled(ratings, gram_of(ratings))}
    gram = _model(ratings, epsilon, ratings.n_items, run).gram_
    scales = [np.sqrt(n * (n + 1) / 2) for n in SIZES]
    return {PEELED: 100 * max(peeled(ratings, gram * scale) for scale in scales)}


def _row(
    name: str,
    data: str,
    run: Callable[[Run], Mapping[str, float]],
    target: Mapping[str, Target] | None = None,
) -> Row:
    return Row(name, data, run, target=target or {}, seeds=3)


TABLE = Table(
    key="ease",
    title="EASE from one noised secure sum: the ten best recommendations, and the attack",
    metrics=("P@10", "NDCG@100", PEELED),
    panels=(Panel("P@10", ("P@10",)),),
    rows=(
        _row("popularity, ml-1m", LARGE, partial(_popular, LARGE)),
        _row("EASE, exact, all items, ml-1m", LARGE, _exact),
        *(
            _row(
                f"DPEase, ε = {epsilon:g}, {items} items, ml-1m",
                LARGE,
                partial(_ranked, epsilon, items, LARGE),
                TARGETS.get(epsilon),
            )
            for epsilon, items in KEPT.items()
        ),
        *(_row(f"popularity, {data}", data, partial(_popular, data)) for data in OTHERS),
        *(
            _row(
                f"DPEase, ε = {epsilon:g}, {KEPT[epsilon]} items, {data}",
                data,
                partial(_ranked, epsilon, KEPT[epsilon], data),
            )
            for data in OTHERS
            for epsilon in (8.0, 2.0)
        ),
        _row(
            "peeling the exact sum, ml-100k",
            SMALL,
            partial(_attacked, None),
            {PEELED: Target(at_least=92.4, at_most=92.8)},
        ),
        *(
            _row(
                f"peeling the noised sum, ε = {epsilon:g}, ml-100k",
                SMALL,
                partial(_attacked, epsilon),
                at_most(PEELED, 0.0),
            )
            for epsilon in (8.0, 2.0)
        ),
    ),
    note="Each user's ratings are split 60/20/20, as in table fcf-2. Everything released is "
    "(ε, 1e-5)-differentially private for adding or removing a user, against whoever gets it: "
    "the choice of the items takes 5 % of the budget, λ depends on public numbers alone. The "
    "noise is central: one trusted party adds it to the exact sum. Distributed noise has the "
    "same size. The exact row needs 6.9 M numbers of a user, and 1,000 items 0.5 M. The part "
    "for the choice of items, λ and the numbers of kept items were chosen on validation "
    "ratings of a split of seed 1000. Its training part overlaps with every test part. These "
    "choices are not accounted for. Nothing was chosen on the other four sets. Peeling knows "
    "how users scale what they send. It looks for profiles of "
    f"{', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} items among all 1,682.",
)
