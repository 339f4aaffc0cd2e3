"""Tables `ranking`, of the items recommended first, and `ranking-settings`, of the choice.

The splits are random, or into the future. All rows of a data set and split have the same parts,
seed by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from benches.papers import fcf2
from benches.papers.fcf2 import Parts
from benches.papers.table import Panel, Row, Run, Table, Target
from fedmf.aggregate import PlainSum
from fedmf.bayes import FedBPMF
from fedmf.data import Ratings, load
from fedmf.data.splits import time_split, user_split
from fedmf.fcf import CF, FCF, FederatedCF, Implicit, tuned, views
from fedmf.models import preset
from fedmf.models.recommender import Recommender
from fedmf.training import Trainer, ranking
from fedmf.training.measures import Popularity

SHORT, LONG = 10, 100
METRICS = ("P@10", "R@10", "NDCG@100", "MAP@10", "hit rate@10", "coverage@10")
RANDOM, TIME = "random", "time"
EPOCHS = 10  # of the default of --model implicit
SEEDS = 3
CHOSEN_ON = 1000  # seed of the split on whose validation part the default was chosen


def _popular(train: Ratings, run: Run) -> Recommender:
    return Popularity(train)


def _fcf(train: Ratings, run: Run) -> Recommender:
    return FCF(Implicit(k=4), rounds=run.fewer(20), seed=run.seed).fit(views(train))


def _implicit(train: Ratings, run: Run) -> Recommender:
    sums = PlainSum(clip=4096.0, fractional_bits=32)
    model = FederatedCF(tuned(), sums, rounds=run.fewer(EPOCHS), seed=run.seed)
    return model.fit(views(train))


def _bayesian(train: Ratings, run: Run) -> Recommender:
    sweeps = run.fewer(60, least=4)
    return FedBPMF(seed=run.seed, rounds=sweeps, burn_in=sweeps // 6).fit(train)


def _fast(train: Ratings, run: Run) -> Recommender:
    fast = preset("fast")
    return Trainer(fast.model, rounds=run.fewer(fast.rounds, least=2), seed=run.seed).fit(train)


MODELS: Mapping[str, Callable[[Ratings, Run], Recommender]] = {
    "popularity": _popular,
    "FCF, K 4": _fcf,
    "implicit, the default": _implicit,
    "FedBPMF, 60 sweeps": _bayesian,
    "FedMF fast": _fast,
}
TARGETS = {"P@10": Target(at_least=0.335), "NDCG@100": Target(at_least=0.425)}


def parts(data: str, split: str, run: Run) -> Parts:
    """Return 60/20/20 of each user's ratings, or the past and the future of known users."""
    ratings = load(data)
    if split == RANDOM:
        return fcf2.parts_of(ratings, run.seed)
    whole = time_split(ratings)
    known = np.diff(whole.train.indptr) > 0
    return Parts(whole.train, whole.train, whole.test.take(known[whole.test.users]))


def _measured(data: str, split: str, name: str, run: Run) -> dict[str, float]:
    given = parts(data, split, run)
    model = MODELS[name](given.train, run)
    short, long = (ranking(model, given.test, given.hidden, k) for k in (SHORT, LONG))
    values = (
        *(short.precision, short.recall, long.ndcg),
        *(short.map, short.hit_rate, short.coverage),
    )
    return dict(zip(METRICS, values, strict=True))


def _validated(data: str, epochs: int, model: Implicit, run: Run) -> dict[str, float]:
    """Measure on validation ratings; the test part of the split takes no part."""
    whole = user_split(views(load(data)), fcf2.TEST, CHOSEN_ON)
    inner = user_split(whole.train, fcf2.VALIDATION, 1000 + CHOSEN_ON)
    fitted = CF(model, rounds=run.fewer(epochs), seed=run.seed).fit(inner.train)
    short, long = (ranking(fitted, inner.test, inner.train, k) for k in (SHORT, LONG))
    return {"P@10": short.precision, "NDCG@100": long.ndcg}


SETTINGS: Mapping[str, tuple[int, Implicit]] = {
    "the default": (EPOCHS, tuned()),
    "the default, 8 factors, 3 epochs": (3, tuned(8)),
    "32 factors, α 1, λ 1, ν 0": (EPOCHS, Implicit(k=32)),
    "32 factors, α 1, λ 20, ν 0": (EPOCHS, Implicit(k=32, reg=20.0)),
    "32 factors, α 5, λ .03, ν 1": (EPOCHS, Implicit(k=32, alpha=5.0, reg=0.03, power=1.0)),
}


def _row(data: str, split: str, name: str) -> Row:
    judged = (data, split, name) == ("ml-1m", RANDOM, "implicit, the default")
    return Row(
        f"{data}, {split}: {name}",
        data,
        partial(_measured, data, split, name),
        target=TARGETS if judged else {},
        seeds=SEEDS if split == RANDOM else 1,
    )


RANKING = Table(
    key="ranking",
    title="The items recommended first: MovieLens 100K and 1M",
    metrics=METRICS,
    panels=(Panel("P@10", ("P@10",)), Panel("NDCG@100", ("NDCG@100",))),
    rows=tuple(
        _row(data, split, name)
        for data, split in (("ml-100k", RANDOM), ("ml-100k", TIME), ("ml-1m", RANDOM))
        for name in MODELS
    ),
    note="All test items are to be found, whatever their ratings, so models of ratings, which "
    "learn the values, stand behind popularity. *random*: 60/20/20 of each user, as in "
    "table fcf-2, with the validation part neither learnt nor recommended. *time*: the last "
    "fifth of all ratings is the test part, without users who have no rating before. ml-1m has "
    "no such rows, as the times of the copy at hand are each user's ranks. α, λ, ν "
    "and the epochs of the default were chosen on the validation part of ml-1m (split of seed "
    "1000), whose training part overlaps with every test part.",
)

CHOICE = Table(
    key="ranking-settings",
    title="Choice of the settings that rank: validation ratings",
    metrics=("P@10", "NDCG@100"),
    rows=tuple(
        Row(f"{data}: {name}", data, partial(_validated, data, epochs, model), seeds=1)
        for data in ("ml-1m", "ml-100k", "simulated")
        for name, (epochs, model) in SETTINGS.items()
    ),
    note="60/20/20 of each user's ratings (seed 1000). The test part is neither learnt nor to "
    "be found, but may be recommended, so these figures are lower than those on it.",
)

TABLES = (RANKING, CHOICE)
