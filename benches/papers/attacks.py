"""Attacks of a curious server on plain sums and on secure ones, by the library's functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benches.papers.table import Panel, Row, Run, Table, Target, at_most
from benches.papers.training import parted
from fedmf import attacks
from fedmf.attacks import Outcome
from fedmf.data import load
from fedmf.masks import FMMask, NNMask, RidgeMask

DATA = "ml-100k"
SOME = 236  # a quarter of the users, where the server has to fit masks to guesses
QUICK = 20
ABOVE = "secure − chance"
FOUND = ("plain", "secure", "the sum", "chance")
TOLERANCE, TOP = 0.5, 0.1  # half a step; a tenth of a user's items
# On masked inputs the paper's two attacks guess, as their chance does, and may guess better.
# Four standard deviations of a run on shuffled numbers, .0021 and .0035 (seed 1), are allowed.
RECOVERY_NOISE, RANKING_NOISE = 0.01, 0.015
MIN_RATERS = 3
DROPOUT = 0.1


def _run(
    attack: str, n_users: int | None, settings: Mapping[str, object], run: Run
) -> dict[str, float]:
    """Attack some users' training ratings, or the items with one rater among all ratings."""
    attacked: tuple[object, ...] = (load(DATA),)
    if attack != "singletons":
        train = parted(DATA, run).train
        attacked = train, attacks.chosen(train, QUICK if run.quick else n_users, run.seed)
    found: Outcome = getattr(attacks, attack)(*attacked, seed=run.seed, **settings)
    figures = {"plain": found.plain, "secure": found.secure, "chance": found.chance}
    return figures | {ABOVE: found.secure - found.chance, "the sum": found.summed}


def _row(
    name: str,
    attack: str,
    target: Mapping[str, Target],
    n_users: int | None = None,
    **settings: object,
) -> Row:
    return Row(name, DATA, partial(_run, attack, n_users, settings), target=target, seeds=3)


def _goals(at_least: float | None = None, margin: float = 0.0) -> dict[str, Target]:
    """Return "no better than chance", which is each run's own, beside a target in the clear."""
    plain = {} if at_least is None else {"plain": Target(at_least=at_least)}
    return plain | at_most(ABOVE, margin)


TABLE = Table(
    key="attacks",
    title="What a curious server finds, with secure aggregation and without: MovieLens 100K",
    metrics=(*FOUND, ABOVE),
    panels=(Panel("share of ratings found", FOUND, (-0.03, 1.03)),),
    rows=(
        _row("gradient leakage, two rounds", "leakage", _goals(0.999), one_round=False),
        _row("gradient leakage, one round", "leakage", _goals(0.999), one_round=True),
        _row("one-order mask, penalty 4", "inversion", _goals(0.99), mask=RidgeMask(penalty=4)),
        _row(
            "one-order mask, penalty 20", "inversion", _goals(0.99), mask=RidgeMask(penalty=20)
        ),
        _row("two-order mask, l2 .1", "inversion", _goals(), SOME, mask=FMMask(l2=0.1)),
        _row("two-order mask, l2 .4", "inversion", _goals(), SOME, mask=FMMask(l2=0.4)),
        _row("high-order mask, l2 .1", "inversion", _goals(), SOME, mask=NNMask(l2=0.1)),
        _row("high-order mask, l2 .15", "inversion", _goals(), SOME, mask=NNMask(l2=0.15)),
        _row(
            f"recovery attack, two-order mask, off by less than {TOLERANCE:g}",
            "on_masked_ratings",
            _goals(margin=RECOVERY_NOISE),
            ranked=False,
            amount=TOLERANCE,
        ),
        _row(
            f"ranking attack, two-order mask, h = {TOP:g}",
            "on_masked_ratings",
            _goals(margin=RANKING_NOISE),
            ranked=True,
            amount=TOP,
        ),
        # Secure sums are no remedy for these, unless such items are left out.
        _row("items with one rater, from the sum", "singletons", {}, min_raters=1),
        _row(
            f"the same, items need {MIN_RATERS} raters",
            "singletons",
            at_most("secure", 0.0),
            min_raters=MIN_RATERS,
        ),
        _row(
            f"items with one rater left of {MIN_RATERS}, dropout {DROPOUT:g}",
            "singletons",
            {},
            min_raters=MIN_RATERS,
            dropout=DROPOUT,
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
