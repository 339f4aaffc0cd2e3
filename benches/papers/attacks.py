"""Table `attacks`: attacks of a curious server on plain and on secure sums."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benches.papers import retraining
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
# On masked inputs the paper's two attacks are guesses and may by luck be above chance.
# Four standard deviations of a run on shuffled numbers, .0021 and .0035 (seed 1), are allowed.
RECOVERY_NOISE, RANKING_NOISE = 0.01, 0.015
MIN_RATERS = 3
DROPOUT = 0.1


def _run(
    attack: str, n_users: int | None, settings: Mapping[str, object], run: Run
) -> dict[str, float]:
    """Run an attack on some users' training ratings, or "singletons" on all ratings."""
    attacked: tuple[object, ...] = (load(DATA),)
    if attack != "singletons":
        train = parted(DATA, run).train
        attacked = train, attacks.chosen(train, QUICK if run.quick else n_users, run.seed)
    home = retraining if isinstance(settings.get("mask"), FMMask | NNMask) else attacks
    found: Outcome = getattr(home, attack)(*attacked, seed=run.seed, **settings)
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
    """Return the targets: `at_least` in the clear, and securely chance and `margin` at most."""
    plain = {} if at_least is None else {"plain": Target(at_least=at_least)}
    return plain | at_most(ABOVE, margin)


TABLE = Table(
    key="attacks",
    title="Attacks of a curious server, with and without secure aggregation: MovieLens 100K",
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
        # no target at min_raters 1: a secure sum does not protect an item's only rater
        _row("one-rater items, min_raters 1", "singletons", {}, min_raters=1),
        _row(
            f"one-rater items, min_raters {MIN_RATERS}",
            "singletons",
            at_most("secure", 0.0),
            min_raters=MIN_RATERS,
        ),
        _row(
            f"one-rater items, min_raters {MIN_RATERS}, dropout {DROPOUT:g}",
            "singletons",
            {},
            min_raters=MIN_RATERS,
            dropout=DROPOUT,
        ),
    ),
    note="Share of ratings found exactly: of the 80,000 training ratings, of those of "
    f"{SOME} users (two- and high-order masks), or of the 141 items with one rater. "
    "*plain*: gradients in the clear, in the fixed point of all sums, with no item left "
    "out. *secure*: the same attack on the user's masked input in a real round among "
    "943 clients. *the sum*: the same attack on the sum over all users, which shows the "
    "liked items and so a little of every rating. *chance*: always guessing the most "
    "frequent rating; even guesses find 20 %. One-order masks are undone from the "
    "gradients of two rounds, with an unknown penalty. The other masks are undone from "
    "the masked ratings, with known hyper-parameters and unknown starting parameters. "
    "The mean rating of each user is known. Recovery and ranking are the FedMMF paper's "
    "own attacks on masked ratings: the share of ratings found to half a rating, and "
    "the share found of the tenth that a user rated highest. Both are means over the "
    "users. Their chance is the same attack on the secure run's numbers, shuffled "
    "within each user; the target leaves four standard deviations of that. One-rater "
    "items: secure aggregation gives the same sum, and so the same ratings; leaving "
    "such items out (min_raters) helps. With dropouts between the count and the sum, an "
    f"item of {MIN_RATERS} raters or more can have one left, and one round exposes that "
    "rating: there is no margin.",
)
