"""Attacks of a curious server on plain sums and on secure ones, by the library's functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benches.papers.table import Row, Run, Table, Target, at_most
from benches.papers.training import parted
from fedmf import attacks
from fedmf.attacks import Outcome
from fedmf.data import Ratings, load
from fedmf.masks import FMMask, NNMask, RidgeMask

DATA = "ml-100k"
SOME = 236  # a quarter of the users, where the server has to fit masks to guesses
QUICK = 20
ABOVE = "secure − chance"
TOLERANCE, TOP = 0.5, 0.1  # half a step; a tenth of a user's items
# On masked inputs the paper's two attacks guess, as their chance does, and may guess better.
# Four standard deviations of a run on shuffled numbers, .0021 and .0035 (seed 1), are allowed.
NOISE = {"recovery": 0.01, "ranking": 0.015}
MIN_RATERS = 3
DROPOUT = 0.1

Attack: TypeAlias = Callable[[Ratings, NDArray[np.int64], int], Outcome]
"""An attack on some users' ratings, by a seed."""


def _leakage(*, one_round: bool) -> Attack:
    return lambda ratings, users, seed: attacks.leakage(
        ratings, users, one_round=one_round, seed=seed
    )


def _inversion(mask: RidgeMask | FMMask | NNMask) -> Attack:
    return lambda ratings, users, seed: attacks.inversion(ratings, users, mask, seed=seed)


def _on_masked(amount: float, *, ranked: bool) -> Attack:
    return lambda ratings, users, seed: attacks.on_masked_ratings(
        ratings, users, ranked=ranked, amount=amount, seed=seed
    )


def _attacked(attack: Attack, n_users: int | None, run: Run) -> dict[str, float]:
    ratings = parted(DATA, run).train
    users = attacks.chosen(ratings, QUICK if run.quick else n_users, run.seed)
    return _figures(attack(ratings, users, run.seed))


def _singletons(min_raters: int, dropout: float, run: Run) -> dict[str, float]:
    return _figures(attacks.singletons(load(DATA), min_raters, dropout=dropout, seed=run.seed))


def _figures(found: Outcome) -> dict[str, float]:
    figures = {
        "plain": found.plain,
        "secure": found.secure,
        "chance": found.chance,
        ABOVE: found.secure - found.chance,
    }
    return figures if found.summed is None else figures | {"the sum": found.summed}


def _row(
    name: str,
    attack: Attack,
    at_least: float | None = None,
    *,
    n_users: int | None = None,
    margin: float = 0.0,
) -> Row:
    target = {} if at_least is None else {"plain": Target(at_least=at_least)}
    return Row(
        name,
        DATA,
        partial(_attacked, attack, n_users),
        # "no better than chance", which is each run's own: it depends on the users attacked
        target=target | at_most(ABOVE, margin),
        seeds=3,
    )


def _singletons_row(name: str, min_raters: int, dropout: float = 0.0) -> Row:
    """Return a row without a target for secure sums, unless such items are left out."""
    left_out = min_raters > 1 and not dropout
    return Row(
        name,
        DATA,
        partial(_singletons, min_raters, dropout),
        target=at_most("secure", 0.0 if left_out else None),
        seeds=3,
    )


TABLE = Table(
    key="attacks",
    title="What a curious server finds, with secure aggregation and without: MovieLens 100K",
    metrics=("plain", "secure", "the sum", "chance", ABOVE),
    rows=(
        _row("gradient leakage, two rounds", _leakage(one_round=False), 0.999),
        _row("gradient leakage, one round", _leakage(one_round=True), 0.999),
        _row("one-order mask, penalty 4", _inversion(RidgeMask(penalty=4.0)), 0.99),
        _row("one-order mask, penalty 20", _inversion(RidgeMask(penalty=20.0)), 0.99),
        _row("two-order mask, l2 .1", _inversion(FMMask(l2=0.1)), n_users=SOME),
        _row("two-order mask, l2 .4", _inversion(FMMask(l2=0.4)), n_users=SOME),
        _row("high-order mask, l2 .1", _inversion(NNMask(l2=0.1)), n_users=SOME),
        _row("high-order mask, l2 .15", _inversion(NNMask(l2=0.15)), n_users=SOME),
        _row(
            f"recovery attack, two-order mask, off by less than {TOLERANCE:g}",
            _on_masked(TOLERANCE, ranked=False),
            margin=NOISE["recovery"],
        ),
        _row(
            f"ranking attack, two-order mask, h = {TOP:g}",
            _on_masked(TOP, ranked=True),
            margin=NOISE["ranking"],
        ),
        _singletons_row("items with one rater, from the sum", 1),
        _singletons_row(f"the same, items need {MIN_RATERS} raters", MIN_RATERS),
        _singletons_row(
            f"items with one rater left of {MIN_RATERS}, dropout {DROPOUT:g}",
            MIN_RATERS,
            DROPOUT,
        ),
    ),
    note="Shares of ratings that are found exactly; of the 80,000 for training, or of those of "
    f"{SOME} users (two- and high-order masks), or of all 141 items that have one "
    "rater. Plain: gradients in the clear, in the fixed point of all sums, with no item "
    "left out. Secure: the same attack on the user's masked input, as a client of a real round "
    "among 943 sent it. The sum: the same on the sum over all users, which does tell "
    "which items are liked, and so a little of every rating. Chance: always guessing "
    "the most frequent rating; guessing evenly finds 20 %. One-order masks are undone from the "
    "gradients of two rounds, the penalty unknown; the others from the masked ratings, their "
    "hyper-parameters known and the starting parameters unknown; of each user the mean rating "
    "is known. Recovery and ranking, the FedMMF paper's own two attacks on masked ratings: "
    "means over the users of the share of ratings found to half a rating, and of the share of "
    "the tenth that they rated highest; chance is the same on the secure run's numbers, "
    "shuffled within each user, and the target leaves four standard deviations of that. Items "
    "with one rater: secure aggregation gives the same sum, and so the same "
    "ratings; what helps is to leave such items out. With dropouts between the count and the "
    f"sum, items of {MIN_RATERS} raters and more can have one left, and one round exposes "
    "them: no margin, no protection.",
)
