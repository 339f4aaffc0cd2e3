"""`FedBPMF`, the estimator: settings of the sampler, and training through secure sums."""

from __future__ import annotations

import math
import os
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from fedmf.aggregate import RoundAborted
from fedmf.bayes.checkpoint import Begun, Checkpoint
from fedmf.bayes.gaussian import Link, Prior
from fedmf.bayes.posterior import Posterior
from fedmf.bayes.sample import Chain, Scaling
from fedmf.bayes.steps import Sweeps
from fedmf.data import Features, Ratings
from fedmf.data.checks import check_parts
from fedmf.data.features import check_rows, item_features
from fedmf.data.internal import internal
from fedmf.errors import SettingError
from fedmf.models import Factors
from fedmf.models.recommender import all_users
from fedmf.models.warm import check_start, shared_items
from fedmf.settings import BelowOne, Count, Seed, Whole
from fedmf.training.history import History
from fedmf.training.loop import Loop, keep
from fedmf.training.schedule import Callbacks, Draw, Scheduled, Summing

START = 0.1  # standard deviation of the starting factors
PER_FACTOR = 2.0  # ratings of a user; chosen with validation ratings of subsets of ml-100k
LARGE = 10_000  # most items of which a round draws all factors by default
BLOCK = 3  # factors that a round draws in a larger catalogue


class Rounds(NamedTuple):
    """Numbers of factors in a round, of rounds, and of rounds in the burn-in."""

    block: int
    rounds: int
    burn_in: int

    def kept(self, samples: int) -> list[int]:
        """Return the numbers of the rounds after which a draw is kept, `samples` at most."""
        count = min(samples, self.rounds - self.burn_in)
        rounds = np.linspace(self.rounds, self.burn_in, count, endpoint=False)
        return sorted(rounds.round().astype(int).tolist())


class FedBPMF(Scheduled):
    """Bayesian matrix factorisation of ratings, by Gibbs sampling through secure sums.

    See `fedmf.bayes` for the model. Per round a user sends (b + 1) (b + 4) / 2 numbers for each
    item, b factors and the bias being drawn, and 2 k² + 5 k + 7 more. **Catalogues of more than
    10,000 items are trained in 240 rounds of b = 3 factors**, or 14 numbers an item; smaller
    catalogues in 120 rounds of all factors, or 170 numbers. Before the first round sums
    give the mean rating, and the raters of items and of buckets of items with few raters.

    The defaults were chosen on a tenth of the training ratings of ml-100k, 80/20, seed 0.

    Parameters
    ----------
    k
        Greatest number of latent factors, ≥ 1. A training has fewer if users have fewer than
        2 k ratings on average: a factor for every two ratings.
    block
        b, the number of factors of each item that a round draws, given the others, ≥ 1. In
        k / b rounds each factor is drawn once. None: k up to 10,000 items, else 3.
    rounds
        Number of sweeps of the sampler, ≥ 1. None: 120, or 240 if a round draws a part of the
        factors.
    burn_in
        Rounds at the start without a kept draw, 0 ≤ burn_in < rounds. None: a sixth of them.
        The second half of the burn-in computes implicit feedback, which then stays. With 0 or
        1, or with fewer than 10 k users in a sum or 10 k items, there is no implicit feedback.
    samples
        Greatest number S of draws that the model keeps, evenly spaced. S draws need
        4 S d (n + m) bytes for n users and m items: 21 MB for ml-100k.
    min_raters : int, see `FedMF`; items with fewer raters share the rows of messages
    aggregation
        Sum of the users' moments, `PlainSum()` by default. A clip of at least 16 suits all
        ratings; a clipped sum raises SettingError. Ten fractional bits are enough.
    seed
        Seed of every random choice, ≥ 0, also of the users' secret choices: a deployment needs
        a separate generator for each user.
    cohort, dropout
        See `Trainer`; sums are scaled from the survivors to all users. At least half of the
        users should be in each sum: with fewer the draws drift, until SettingError is raised.
    callbacks : functions that are called with the record of each finished round

    Attributes
    ----------
    model_ : Posterior, the trained model
    history_ : History, a record of each round, with the errors of the average so far
    """

    model_: Posterior
    rounds: int | None  # type: ignore[assignment]  # None: by the size of the catalogue
    model = "FedBPMF"
    _former = MappingProxyType({"posterior_": "model_", "sweeps": "rounds"})

    def __init__(
        self,
        aggregation: Summing | None = None,
        *,
        k: Count = 16,
        block: Count | None = None,
        rounds: Count | None = None,
        burn_in: Whole | None = None,
        samples: Count = 100,
        min_raters: Count = 3,
        seed: Seed = 0,
        cohort: int | float | None = None,
        dropout: BelowOne = 0.0,
        callbacks: Callbacks = (),
    ) -> None:
        super().__init__(aggregation, seed=seed, cohort=cohort, dropout=dropout)
        self.block = block
        self.k, self.rounds, self.burn_in, self.samples = k, rounds, burn_in, samples
        self.min_raters, self.callbacks = min_raters, callbacks
        self.__post_init__()

    def _check(self) -> None:
        if self.rounds is not None:
            self.plan(LARGE)

    def plan(self, n_items: int) -> Rounds:
        """Return the settings of a training on so many items, with numbers for None.

        Raises SettingError if the burn-in has all rounds.
        """
        usual = self.k if n_items <= LARGE else BLOCK
        block = min(usual if self.block is None else self.block, self.k)
        rounds = (120 if block == self.k else 240) if self.rounds is None else self.rounds
        burn_in = rounds // 6 if self.burn_in is None else self.burn_in
        if burn_in >= rounds:
            raise SettingError(f"burn_in = {burn_in} must be less than rounds = {rounds}")
        return Rounds(block, rounds, burn_in)

    def fit(
        self,
        train: Ratings,
        test: Ratings | None = None,
        features: Features | None = None,
        *,
        start: Factors | Posterior | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Sample from the posterior, and measure the errors after each round.

        A KeyboardInterrupt ends the training early and keeps the finished rounds;
        ``history_.interrupted`` is then True.

        Parameters
        ----------
        train, test : training and test part over the same users and items; see `Split`
        features
            Public features of the items for the link, a row per item; by default genres and
            year, and no link if the catalogue has none.
        start
            Model that the items start from, such as the result of `FedALS` or of an earlier
            training. Items are matched by id, and new items start at random. The chain begins
            again with a burn-in, so `fit` must keep as many draws as a given `Posterior` has.
        checkpoint
            File that the training is written to every 10 rounds. If the file exists, the
            training continues from there, to the same numbers as without the interruption.

        Raises
        ------
        SettingError
            If the cohort does not fit the data, the parts differ in users or items, or the
            aggregation clipped a moment. Also if fewer draws would be kept than `start` has.
            `Diverged` if the draws leave the scale.
        DataError
            If `train` or `test` has no rating, or `features` lacks or exceeds a row per item.
            Also if no item or bucket of items has `min_raters` raters.
        ModelError
            If the checkpoint is damaged, or of another training. Also if `start` knows no item,
            is no model of ratings, or no `Factors` or `Posterior` at all.
        RoundAborted
            If the mean rating cannot be summed, or every sum after the burn-in was aborted.
        """
        self._forget()
        check_parts(train, test)
        self.schedule.size(train.n_users)  # raises before any work
        plan = self.plan(train.n_items)
        kept = plan.kept(self.samples)
        self._check_start(start, plan, len(kept))
        known = item_features(train) if features is None else features
        check_rows(known, train)
        loop = Loop(self.aggregation, self.schedule, plan.rounds)
        scaling, inside = Scaling.of(known.matrix), internal(train)
        saved = None if checkpoint is None else Checkpoint(checkpoint, self, train, test, known)
        begun = None if saved is None else saved.read()
        if begun is None:
            mean, count = loop.means(inside)
            k = max(1, min(self.k, round(count / PER_FACTOR)))
            begun = Begun(mean, self._start(train, start, len(known.names), k))
        k = begun.chain.items.shape[1] - 1
        sweeps = Sweeps(
            inside,
            None if test is None else internal(test),
            scaling.applied(known.matrix),
            mean=begun.mean,
            seed=self.seed,
            min_raters=self.min_raters,
            block=min(plan.block, k),
            burn_in=plan.burn_in,
            kept=kept,
            scale=train.scale,
        )
        rounds = loop.iterate(sweeps, begun.chain, begun.chain.round, begun.raters)
        if saved is not None:
            rounds = saved.kept(rounds, begun)
        chain, history = keep(rounds, begun.chain, self.report)
        whole = History(begun.records + history.rounds, history.interrupted)
        late = whole.rounds[plan.burn_in :]
        # if only the rounds with a draw to keep were aborted, the last draw stands in for them
        if late and all(one.aborted is not None for one in late) and not whole.interrupted:
            raise RoundAborted(
                f"every sum after burn_in = {plan.burn_in} was aborted, the last for: "
                f"{whole.last.aborted}"
            )
        self.history_ = whole
        nothing = np.zeros((train.n_items, k))
        self.model_ = Posterior(
            chain.samples or (chain.sample,),
            begun.mean,
            public_scale=train.scale,
            scaling=scaling,
            embedding=nothing if chain.traits is None else chain.traits.embedding,
            **all_users(train),
        )
        return self

    def _check_start(self, start: object, plan: Rounds, kept: int) -> None:
        """Raise SettingError if fewer draws will be kept than `start` has.

        The chain begins again, so the average of fewer draws would be worse than `start`.
        """
        least = len(start.samples) if isinstance(start, Posterior) else 0
        if kept < min(least, self.samples):
            # at the same share of burn-in
            enough = math.ceil(round(least * plan.rounds / (plan.rounds - plan.burn_in), 6))
            raise SettingError(
                f"rounds = {plan.rounds} with a burn-in of {plan.burn_in} keep {kept} draws, "
                f"and start has {least}: the chain begins again, so take at least "
                f"{enough} rounds, or keep start as it is"
            )

    def _start(
        self, train: Ratings, model: Factors | Posterior | None, f: int, k: int
    ) -> Chain:
        """Return the state before the first round; see ``start`` of `fit`."""
        d = k + 1
        rng = self.schedule.rng(Draw.START)
        items = rng.normal(scale=START, size=(train.n_items, d))
        items[:, -1] = 0.0
        if model is not None:
            earlier = model.factors(k) if isinstance(model, Posterior) else model
            check_start(earlier, ranks=False, such="Factors or a Posterior")
            mine, theirs = shared_items(train, earlier)
            width = min(earlier.k, k)
            items[mine, :width] = earlier.item_factors[theirs, :width]
        nobody, prior = np.zeros((train.n_users, d)), Prior.start(d)
        links = Link.none(f, d), Link.none(d - 1, d)
        return Chain(nobody, items, np.ones(train.n_users), 1.0, prior, prior, *links)
