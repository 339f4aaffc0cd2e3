"""Recommenders of large catalogues: ``python -m benches.scale recommenders``.

A round of each model by a one-shot sum of all users, in one process: the users one after the
other, the aggregator and the helpers. Ratings are simulated, with a long tail of items.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from fedmf.aggregate import OneShotSum
from fedmf.aggregate.aggregation import IntegerSum
from fedmf.bayes import FedBPMF
from fedmf.data import Ratings, from_triples
from fedmf.fcf import FederatedCF, tuned, views
from fedmf.fcf.choice import REGS
from fedmf.fcf.moments import VIEWS
from fedmf.training import RoundRecord
from secagg.kit.table import Cell, Column, Table, duration, micro, volume

NAME = "recommenders"
EACH = 50  # ratings of a user
RANK = 4  # of the simulated taste
BITS = 10  # fractional bits of the sums
EPOCHS = 10  # of fedmf train --model implicit
SCALE = 1.0, 5.0
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Case:
    """Model, its number of users and of items, and a function that trains it for a round.

    The function returns the number of rounds of a whole training, and the record of the round.
    """

    model: str
    users: int
    items: int
    train: Callable[[IntegerSum, Ratings], tuple[int, RoundRecord]]


@dataclass(frozen=True)
class Row:
    """A round of a model, as its record says; a training has `rounds` rounds.

    Memory is the peak of the process, with ratings, model and libraries.
    """

    model: str
    users: int
    items: int
    rounds: int
    record: RoundRecord
    memory: int


def _bpmf(sums: IntegerSum, ratings: Ratings) -> tuple[int, RoundRecord]:
    model = FedBPMF(sums)
    rounds = model.plan(ratings.n_items).rounds
    # with a rater the least, the raters need no sum of their own
    model.set_params(rounds=1, burn_in=0, min_raters=1)
    return rounds, model.fit(ratings).history_.last


def _implicit(sums: IntegerSum, ratings: Ratings) -> tuple[int, RoundRecord]:
    # without the sums of three numbers that judge a λ
    rounds = FederatedCF(tuned(), rounds=EPOCHS).sums(ratings.n_items) - len(REGS)
    short = copy(sums).set_params(**VIEWS)
    model = FederatedCF(tuned().set_params(reg=2.0), short, min_raters=1)
    training = model.training(model.confidence(views(ratings)))
    return rounds, next(model.iterated(training)).record


def cases(users: int, items: int) -> Iterator[Case]:
    """Yield the models of the table."""
    yield Case("FedBPMF", users, items, _bpmf)
    yield Case("implicit", users, items, _implicit)


def simulated(users: int, items: int, seed: int = 0) -> Ratings:
    """Return ratings of popular items by users with a taste of low rank.

    Popularity falls as the reciprocal of the rank, and a user's items are different.
    """
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(10, items + 10)
    who = np.repeat(np.arange(users), EACH)
    pairs = np.unique(who * items + rng.choice(items, who.size, p=chance / chance.sum()))
    who, what = np.divmod(pairs, items)
    p, q = rng.normal(size=(users, RANK)), rng.normal(size=(items, RANK))
    liked = 3.5 + 0.3 * np.einsum("ij,ij->i", p[who], q[what]) + rng.normal(size=who.size)
    values = np.clip(np.rint(liked), *SCALE)
    return from_triples(who, what, values, scale=SCALE, item_ids=np.arange(items))


def run(case: Case, show: Progress) -> Row:
    """Run a round; return its costs."""
    ratings = simulated(case.users, case.items)
    rounds, record = case.train(OneShotSum(fractional_bits=BITS, progress=show), ratings)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Row(case.model, case.users, case.items, rounds, record, memory)


COLUMNS = (
    *map(Column, ("model", "users", "items", "rounds")),
    *(Column(head, lambda size: f"{size / 1e6:.3g} MB") for head in ("a round", "in all")),
    Column("wall clock", duration),
    *(Column(head, micro) for head in ("a user", "aggregator", "helpers")),
    Column("memory", volume),
)


def table(rows: Iterable[Row]) -> Table:
    """Return the table of docs/scale.md: bytes of a user, and times per user."""
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        done, n = row.record, row.users
        named = row.model, n, row.items, row.rounds
        amounts = done.bytes_up, row.rounds * done.bytes_up, done.seconds
        times = done.client_seconds, done.server_seconds, done.key_holder_seconds
        lines.append((*named, *amounts, *(seconds / n for seconds in times), row.memory))
    return Table(columns=COLUMNS, rows=lines)
