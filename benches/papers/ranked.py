"""Tables `ranking`, of the items recommended first, and `ranking-settings`, of the choice.

The splits are random, or into the future. All rows of a data set and split have the same parts,
seed by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial

import numpy as np

from benches.papers import fcf2
from benches.papers.fcf2 import Parts
from benches.papers.table import Panel, Row, Run, Table, Target
from fedmf.aggregate import PlainSum
from fedmf.bayes import FedBPMF
from fedmf.data import Ratings, load
from fedmf.data.splits import time_split, user_split
from fedmf.ease import DPEase
from fedmf.fcf import FCF, FederatedCF, Implicit, tuned, views
from fedmf.fcf.moments import VIEWS
from fedmf.models import preset
from fedmf.models.recommender import Recommender
from fedmf.training import Trainer, ranking
from fedmf.training.measures import Popularity

SHORT, LONG = 10, 100
MEASURES = ("P@10", "R@10", "NDCG@100", "MAP@10", "hit rate@10", "coverage@10")
ABOVE, REG, SENT = "NDCG above popularity's", "λ", "MB"
METRICS = (*MEASURES, ABOVE, REG, SENT)
RANDOM, TIME = "random", "time"
EPOCHS = 10  # of the default of --model implicit
SMALL = 8, 5  # factors and epochs of ranking.fedmf
SEEDS = 3
OTHERS = ("ml-latest-small", "filmtrust", "douban")
CHOSEN_ON = 1000  # seed of the split on whose validation part the default was chosen


def _popular(train: Ratings, run: Run) -> Recommender:
    return Popularity(train)


def _fcf(train: Ratings, run: Run) -> Recommender:
    return FCF(Implicit(k=4), rounds=run.fewer(20), seed=run.seed).fit(views(train))


def _implicit(train: Ratings, run: Run, k: int = 64, epochs: int = EPOCHS) -> Recommender:
    sums = PlainSum().set_params(**VIEWS)
    model = FederatedCF(tuned(k), sums, rounds=run.fewer(epochs), seed=run.seed)
    return model.fit(views(train))


def _private(epsilon: float, train: Ratings, run: Run) -> Recommender:
    items = min(train.n_items, 1000 if epsilon > 2 else 500)
    entropy = np.random.default_rng((run.seed, 1)).bytes
    model = DPEase(epsilon=epsilon, items=items, where="central", entropy=entropy)
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
    "ranking.fedmf": lambda train, run: _implicit(train, run, *SMALL),
    "DPEase, ε 8": partial(_private, 8.0),
    "DPEase, ε 2": partial(_private, 2.0),
    "FedBPMF, 60 sweeps": _bayesian,
    "FedMF fast": _fast,
}
CHOOSING = ("implicit, the default", "ranking.fedmf")
OF_OTHERS = ("popularity", *CHOOSING, "DPEase, ε 8", "DPEase, ε 2")
LEAST = {"ml-1m": 0.446, "ml-100k": 0.514, "douban": 0.200}  # NDCG@100 of the default


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
    popular = ranking(Popularity(given.train), given.test, given.hidden, LONG).ndcg
    return (
        dict(zip(MEASURES, values, strict=True)) | {ABOVE: long.ndcg - popular} | _cost(model)
    )


def _cost(model: Recommender) -> dict[str, float]:
    """Return λ and the megabytes that a user sends in all, of a model that chooses λ."""
    if not isinstance(model, FederatedCF):
        return {}
    sent = sum(one.bytes_up for one in model.history_) / 1e6
    return {REG: model.model_.implicit.reg, SENT: sent}


def _validated(data: str, model: FederatedCF, run: Run) -> dict[str, float]:
    """Measure on validation ratings; the test part of the split takes no part."""
    whole = user_split(views(load(data)), fcf2.TEST, CHOSEN_ON)
    inner = user_split(whole.train, fcf2.VALIDATION, 1000 + CHOSEN_ON)
    fitted = copy(model).set_params(rounds=run.fewer(model.rounds)).fit(inner.train)
    short, long = (ranking(fitted, inner.test, inner.train, k) for k in (SHORT, LONG))
    return {"P@10": short.precision, "NDCG@100": long.ndcg} | _cost(fitted)


def _with(
    model: Implicit,
    rounds: int = EPOCHS,
    bits: float = VIEWS["fractional_bits"],
    block: int | None = None,
) -> FederatedCF:
    sums = PlainSum(clip=VIEWS["clip"], fractional_bits=int(bits))
    return FederatedCF(model, sums, rounds=rounds, block=block)


CHOSEN = tuned().set_params(reg=2.0)
SETTINGS: Mapping[str, FederatedCF] = {
    "the default": _with(tuned()),
    "ranking.fedmf: 8 factors, 5 epochs": _with(tuned(SMALL[0]), SMALL[1]),
    "32 factors": _with(tuned(32)),
    "32 factors, α 1, λ 1, ν 0, not centred": _with(Implicit(k=32)),
    "32 factors, α 1, λ 20, ν 0, not centred": _with(Implicit(k=32, reg=20.0)),
}
PARTS: Mapping[str, FederatedCF] = {
    "λ 2, not centred": _with(copy(CHOSEN).set_params(centred=False)),
    **{f"λ 2, {b} factors in a sum": _with(CHOSEN, block=b) for b in (64, 32, 16, 8, 4)},
    **{f"λ 2, {bits} fractional bits": _with(CHOSEN, bits=bits) for bits in (32, 8, 6)},
}


def _row(data: str, split: str, name: str) -> Row:
    target = {ABOVE: Target(at_least=0.0)} if name in CHOOSING else {}
    if split == RANDOM and name == "implicit, the default" and data in LEAST:
        target["NDCG@100"] = Target(at_least=LEAST[data])
    return Row(
        f"{data}, {split}: {name}",
        data,
        partial(_measured, data, split, name),
        target=target,
        seeds=SEEDS if split == RANDOM else 1,
    )


RANKING = Table(
    key="ranking",
    title="The items recommended first",
    metrics=METRICS,
    panels=(Panel("P@10", ("P@10",)), Panel("NDCG@100", ("NDCG@100",))),
    rows=tuple(
        _row(data, split, name)
        for data, split, names in (
            ("ml-100k", RANDOM, MODELS),
            ("ml-100k", TIME, MODELS),
            ("ml-1m", RANDOM, MODELS),
            *((data, RANDOM, OF_OTHERS) for data in OTHERS),
        )
        for name in names
    ),
    note="All test items are to be found, whatever their ratings, so models of ratings, which "
    "learn the values, stand behind popularity. *random*: 60/20/20 of each user, as in "
    "table fcf-2, with the validation part neither learnt nor recommended. *time*: the last "
    "fifth of all ratings is the test part, without users who have no rating before. ml-1m has "
    "no such rows, as the times of the copy at hand are each user's ranks. α, ν, k "
    "and the epochs of the default were chosen on the validation parts of ml-1m and ml-100k "
    "(split of seed 1000), whose training parts overlap with every test part. Test figures of "
    "douban were seen before k 64 and the scale of λ were settled, and 32 factors at once were "
    "taken by test figures of ml-100k. The share held out for λ was watched on training "
    "ratings of filmtrust. λ is chosen in each training on a fifth of its own training "
    "ratings, and λ 1000 is popularity. *MB*: what a user sends in all, to choose λ as well.",
)

CHOICE = Table(
    key="ranking-settings",
    title="Choice of the settings that rank: validation ratings",
    metrics=("P@10", "NDCG@100", REG, SENT),
    panels=(Panel("P@10", ("P@10",)), Panel("NDCG@100", ("NDCG@100",))),
    rows=tuple(
        Row(f"{data}: {name}", data, partial(_validated, data, model), seeds=1)
        for data, models in (
            ("ml-1m", SETTINGS),
            ("ml-100k", {**SETTINGS, **PARTS}),
            ("simulated", SETTINGS),
        )
        for name, model in models.items()
    ),
    note="60/20/20 of each user's ratings (seed 1000). The test part is neither learnt nor to "
    "be found, but may be recommended, so these figures are lower than those on it. *MB*: what "
    "a user sends in all. The sums of the default have 8 fractional bits, and 32 or, beyond "
    "2,000 items, 8 factors at once.",
)

TABLES = (RANKING, CHOICE)
