"""Tables `few` and `sparse`: users with few ratings, and data sets with few ratings.

All rows of the same ratings have the same splits, so that differences are paired by the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benches.papers import baselines
from benches.papers.baselines import Baseline, Biases
from benches.papers.others import OWN, TITLES
from benches.papers.table import Below, Row, Run, Table, Target
from benches.papers.training import SEED_0_SEEN, errors
from fedmf.bayes import FedBPMF
from fedmf.data import Ratings, Split, load
from fedmf.data.splits import random_split, time_split
from fedmf.training import rmse

Floats = NDArray[np.float64]
Items = NDArray[np.int32]
FoldIn: TypeAlias = Callable[[Items, Floats, Items], Floats]
"""Function of a new user's items and ratings, and of other items, that predicts the latter."""

SMALL, SEEDS = "ml-100k", 3
OUT = 0.1  # of the users, who are not in the training
MOST = {0: 1.045, 1: 1.01, 5: 0.970}  # required RMSE by the number of ratings of a new user
SUBSETS = (None, 2, 5, 10)  # ratings of each user; None for all
LEAST = FedBPMF().min_raters
TIE = 0.001


def _after(ratings: int) -> str:
    return f"after {ratings}"


def _fitted(train: Ratings, run: Run) -> FedBPMF:
    sweeps = run.fewer(120, least=4)
    return FedBPMF(seed=run.seed, rounds=sweeps, burn_in=sweeps // 6).fit(train)


def _bayesian(split: Split, run: Run) -> Floats:
    return _fitted(split.train, run).predict(split.test.users, split.test.items)


CONTENDERS: Mapping[str, tuple[str, Baseline]] = {
    "FedBPMF": ("ML-100K", _bayesian),
    "biases": (OWN, baselines.biases),
}
"""Rows: the ratings on which settings were chosen, and the predictions."""

SAME_RULE = f"biases of items with {LEAST} raters"
SPARSE: Mapping[str, tuple[str, Baseline]] = {
    **CONTENDERS,
    SAME_RULE: (OWN, partial(baselines.biases, least=LEAST)),
}
"""The same, and biases that sum no item with fewer raters, as FedBPMF."""


def _without_some(seed: int) -> Split:
    """Return all ratings of a tenth of the users as the test part."""
    whole, rng = load(SMALL), np.random.default_rng(seed)
    out = rng.permutation(whole.n_users)[: int(OUT * whole.n_users)]
    test = np.isin(whole.users, out)
    return Split(whole.take(~test), whole.take(test))


def _subset(data: str, most: int | None, seed: int) -> Split:
    """Split at random after a draw of `most` ratings of each user."""
    whole = load(data)
    if most is not None:
        drawn = np.lexsort((np.random.default_rng(seed).random(whole.n_ratings), whole.users))
        place = np.arange(whole.n_ratings) - whole.indptr[whole.users]
        whole = whole.take(drawn[place < most])
    return random_split(whole, seed=seed)


def _bayesian_newcomers(train: Ratings, run: Run) -> FoldIn:
    model = _fitted(train, run).model_

    def predict(items: Items, values: Floats, others: Items) -> Floats:
        new = model.fold_in(train.item_ids[items], values, seed=run.seed)
        return new.predict(np.zeros_like(others), others)

    return predict


def _biased_newcomers(train: Ratings, run: Run) -> FoldIn:
    shrinkage = baselines.shrinkage_of(train, run)
    model = Biases.fit(train, *shrinkage)

    def predict(items: Items, values: Floats, others: Items) -> Floats:
        known = model.mean + model.items
        own = (values - known[items]).sum() / (items.size + shrinkage[0])
        return np.asarray(known[others] + own)

    return predict


def _newcomers(learn: Callable[[Ratings, Run], FoldIn], run: Run) -> dict[str, float]:
    """Fold in users who are not in the training; the test ratings are the same for each n."""
    split, rng = _without_some(run.seed), np.random.default_rng(run.seed)
    predict, kept = learn(split.train, run), max(MOST)
    guesses: dict[int, list[Floats]] = {n: [] for n in MOST}
    values = []
    for user in np.unique(split.test.users):
        items, ratings = split.test.of_user(int(user))
        order = rng.permutation(items.size)
        given, others = order[:kept], order[kept:]
        values.append(ratings[others])
        for n, found in guesses.items():
            some = given[:n]
            found.append(predict(items[some], ratings[some], items[others]))
    truth = np.concatenate(values)
    return {_after(n): rmse(truth, np.concatenate(found)) for n, found in guesses.items()}


def _judged(of: Callable[[int], Split], predict: Baseline, run: Run) -> dict[str, float]:
    split = of(run.seed)
    return errors(split.test, predict(split, run))


def _rivals(
    title: str,
    data: str,
    of: Callable[[int], Split],
    margin: float,
    contenders: Mapping[str, tuple[str, Baseline]] = CONTENDERS,
) -> Iterator[Row]:
    """Yield the rows of FedBPMF, at least `margin` below the biases, and of its rivals."""
    names = [f"{title}: {name} (set on {on})" for name, (on, _) in contenders.items()]
    for name, (_, predict) in zip(names, contenders.values(), strict=True):
        below = {"RMSE": Below(names[1], margin)} if name == names[0] else {}
        run = partial(_judged, of, predict)
        yield Row(name, data, run, below=below, seeds=SEEDS)


def _few_rows() -> Iterator[Row]:
    title = "new users, folded in"
    targets = {_after(n): Target(at_most=most) for n, most in MOST.items()}
    learnt: Sequence[tuple[str, Callable[[Ratings, Run], FoldIn]]] = (
        ("FedBPMF (set on ML-100K)", _bayesian_newcomers),
        (f"biases (set on {OWN})", _biased_newcomers),
    )
    for name, learn in learnt:
        mine = targets if learn is _bayesian_newcomers else {}
        run = partial(_newcomers, learn)
        yield Row(f"{title}: {name}", SMALL, run, target=mine, seeds=SEEDS)
    yield from _rivals("in the training without a rating", SMALL, _without_some, 0.0)
    yield from _rivals("split by time", SMALL, lambda seed: time_split(load(SMALL)), 0.0)


def _sparse_rows() -> Iterator[Row]:
    for data, most in product(TITLES, SUBSETS):
        title = TITLES[data] if most is None else f"{TITLES[data]}, {most} ratings a user"
        of = partial(_subset, data, most)
        yield from _rivals(title, data, of, -TIE, SPARSE)


TABLES = (
    Table(
        key="few",
        title="Users with few ratings: MovieLens 100K",
        metrics=(*map(_after, MOST), "RMSE", "MAE"),
        panels=(),
        rows=tuple(_few_rows()),
        note="A tenth of the users are not in the training, or are there without a rating. "
        "*after n*: RMSE after so many of a new user's ratings, at random, on all others but "
        f"{max(MOST)}. By time, the last fifth is the test part of all seeds. "
        "Errors unclipped. In brackets: the ratings on which settings were chosen; biases "
        "choose their shrinkage on a tenth of their training ratings. " + SEED_0_SEEN,
    ),
    Table(
        key="sparse",
        title="FedBPMF and validated biases: sparse ratings",
        metrics=("RMSE", "MAE"),
        panels=(),
        rows=tuple(_sparse_rows()),
        note="80/20 split per rating, of all ratings or of 2, 5 or 10 drawn from each user's. "
        f"Errors unclipped. A difference of {TIE:g} is a tie. In brackets: the ratings on "
        "which settings were chosen; biases choose their shrinkage on a tenth of their own. "
        "The size of buckets, the number of factors and the start were chosen on subsets of "
        "the training part of ML-100K's seed 0, with a look at subsets of ML-latest and ML-1M. "
        "The start of the biases was tried after a loss on Douban. "
        f"*{SAME_RULE}*: without sums over fewer raters, which would tell ratings; FedBPMF "
        f"makes none either. Biases without the rule have such sums. " + SEED_0_SEEN,
    ),
)
