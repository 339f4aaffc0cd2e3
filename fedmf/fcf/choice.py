"""Choice of λ for `FederatedCF`, on a part of the users' own training ratings.

Each user holds out a fifth of the own training ratings at random. The users train with one λ of
`REGS` after the other on the rest. λ grows, and each training begins with the factors of the
training before: factors shrink within a round, but grow again slowly. After each training, a
user ranks all items and finds the NDCG of the held-out items among the first 100. The server
sees a secure sum of these numbers and of the squares, and no user's number.

Popularity is the floor. With λ = `POPULAR` all x_u are close to x̄, whose scores rank by
popularity. This λ is kept unless another λ is better by two standard errors.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from fedmf.aggregate import Aggregate, RoundAborted
from fedmf.aggregate.vectors import Rows
from fedmf.data import Split
from fedmf.data.blocks import Block
from fedmf.data.ratings import Ratings
from fedmf.data.splits import user_split
from fedmf.errors import DataError
from fedmf.fcf.confidence import POPULAR
from fedmf.fcf.federated import FederatedRecommender
from fedmf.models import Factors
from fedmf.models.federated import Raters
from fedmf.training.history import RoundRecord
from fedmf.training.loop import Training
from fedmf.training.measures import gains
from fedmf.training.schedule import Draw
from fedmf.training.steps import LocalSteps

REGS = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6)
EPOCHS = (1, 3, *[1] * 5)  # with POPULAR and each of REGS
MOST = 32  # factors at most: the best λ hardly depends on k
HELD = 0.2  # share of the ratings held out
JUDGES = 10_000  # users at most who rank: enough for the mean, and a fixed time
FIRST = 100  # items of the NDCG
ERRORS = 2.0  # standard errors that a λ must be better than POPULAR


def choose(
    system: FederatedRecommender, train: Ratings
) -> tuple[FederatedRecommender, list[RoundRecord]]:
    """Return a copy of `system` with the best λ, and the records of the choice's sums.

    λ is `POPULAR` if no item has enough raters in the rest. A training is repeated if all sums
    are aborted, up to as many trainings as a fit has rounds. Other errors are the same as in
    the fit. Ctrl-C ends the choice, and nothing is chosen.
    """
    parts = user_split(train, HELD, system.seed)
    one, records = copy(system), list[RoundRecord]()
    one._session, chosen = f"{system._session} choice", copy(system)
    chosen.model = copy(system.model).set_params(reg=POPULAR)
    try:
        confidence = one.confidence(parts.train)
    except DataError:  # ratings that do not suit the fit raise there again
        return chosen, records
    popular, state, best = None, None, (0.0, POPULAR)
    for reg, one.rounds in zip((POPULAR, *REGS), EPOCHS, strict=True):
        # fewer ratings need the same λ n^ν
        part = reg / (1 - HELD) ** system.model.power
        one.model = copy(system.model).set_params(reg=part, k=min(MOST, system.model.k))
        training = one.training(confidence)
        if state is not None:
            training.start = training.with_users(*state[1:])
        found = training.start
        for left in reversed(range(system.rounds)):
            try:
                for done in one.iterated(training, len(records) + 1):
                    records.append(done.record)
                    system.report(done.record)
                    found = done.state
                break
            except RoundAborted:
                if not left:
                    raise
        model = one.model.factors(*found, parts.train)
        if popular is None:
            popular = model
            continue
        state, judged = found, _Judged(_Gains(model, popular, parts, system.seed))
        for last in one.loop(len(records) + 1).iterate(judged, 0.0, len(records) + 1):
            records.append(last.record)
            system.report(last.record)
            best = max(best, (last.state, reg))
    chosen.model.set_params(reg=best[1])
    return chosen, records


class _Gains(LocalSteps):
    """Vectors of three numbers: a user's NDCG beyond popularity's, the square, and 1.

    A user without held-out items sends zeros.
    """

    def __init__(self, model: Factors, popular: Factors, parts: Split, seed: int) -> None:
        super().__init__(parts.train, (1, 3))
        drawn = np.random.default_rng((seed, Draw.USERS)).permutation(model.n_users)
        self._models, self._parts = (model, popular), parts
        self._judges = np.diff(parts.test.indptr) > 0
        self._judges[drawn[JUDGES:]] = False

    def rows(self, block: Block) -> Rows:
        mine = np.flatnonzero(self._judges[block.users])
        hidden, test, users = self._parts.train, self._parts.test, block.users[mine]
        k = min(FIRST, test.n_items)
        own, other = (gains(model, test, hidden, k, users) for model in self._models)
        found = np.zeros((block.users.size, 3))
        found[mine] = np.column_stack((own - other, (own - other) ** 2, np.ones(mine.size)))
        return Rows(np.zeros(block.users.size, dtype=np.int32), found, 1)


class _Judged(Training[float, _Gains]):
    """A sum of gains; the state is the mean gain if above `ERRORS` standard errors, else 0."""

    def __init__(self, steps: _Gains) -> None:
        self.ratings, self._steps = steps.ratings, steps

    def local_steps(self, state: float, raters: Raters | None) -> _Gains:
        return self._steps

    def server_step(self, state: float, steps: _Gains, total: Aggregate) -> float:
        gain, square, n = total.sum.tolist()
        mean = gain / max(n, 1)
        error = np.sqrt(max(square / max(n, 1) - mean**2, 0) / max(n, 1))
        return mean if mean > ERRORS * error else 0.0
