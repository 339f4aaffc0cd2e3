"""Sweep of the sampler, with the server's draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate
from fedmf.bayes import gaussian
from fedmf.bayes.gaussian import Floats, Link, Prior
from fedmf.bayes.pools import Pools
from fedmf.bayes.sample import Chain, Traits, predictions, profiles
from fedmf.bayes.users import HIGH, PROFILE, UNIT, Sweep
from fedmf.data import Ratings
from fedmf.data.internal import to_public
from fedmf.errors import DataError, Diverged
from fedmf.models.federated import Raters
from fedmf.models.moments import lower, symmetric
from fedmf.training.history import RoundRecord, mae, rmse
from fedmf.training.loop import Counted, Training
from fedmf.training.schedule import Draw

ROWS_PER_FACTOR = 10  # users and items without which there is no implicit feedback


class Sweeps(Training[Chain, Sweep]):
    """Training of the sampler; a round is a sweep.

    Parameters
    ----------
    ratings, test : training and test ratings on the internal scale; `test` may be None
    features : float64, F, shape (m, f), standardised; f = 0 for no link
    mean : float, μ
    seed, min_raters : see `FedBPMF`
    block : int, number of factors of each item that a round draws, 1 ≤ block ≤ k
    burn_in : int, last round that computes implicit feedback; see `FedBPMF`
    kept : numbers of the rounds after which a draw is kept, ascending
    scale : public scale, for the errors
    """

    clip_remedy = "a clipped moment has another posterior; raise that to 64"

    def __init__(
        self,
        ratings: Ratings,
        test: Ratings | None,
        features: Floats,
        *,
        mean: float,
        seed: int,
        min_raters: int,
        block: int,
        burn_in: int,
        kept: range | Sequence[int],
        scale: tuple[float, float],
    ) -> None:
        self.ratings, self.test, self.features = ratings, test, features
        self.mean, self.seed, self.min_raters, self.scale = mean, seed, min_raters, scale
        self.block, self.needs_counts = block, min_raters > 1
        self._kept, self._burn_in = frozenset(kept), burn_in
        self._trained: tuple[Pools | None, Ratings] = (None, ratings)
        self._profiles: tuple[Ratings, Traits | None, Floats] | None = None

    def count(self, of: Callable[..., Counted]) -> tuple[Raters, Sequence[Aggregate]]:
        """Count the raters of items, and then of rows if items share rows; see `Pools`."""
        raters, first = of(self.ratings)
        pools = Pools.of(raters, self.min_raters)
        if not pools.pooled.any():
            return pools, (first,)
        again, second = of(pools.ratings(self.ratings), "count of pools")
        return pools.with_counts(again, self.min_raters), (first, second)

    def local_steps(self, state: Chain, raters: Raters | None) -> Sweep:
        """Return the users' part of the next sweep, over the ratings of rows; see `Pools`."""
        if isinstance(raters, Pools) and raters is not self._trained[0]:
            if not raters.counts.any():  # a hyper-prior without a row is too wide
                raise DataError(
                    f"no item of {self.ratings.name} has {self.min_raters} raters in a round, "
                    "nor do several items together: lower min_raters"
                )
            self._trained = raters, raters.ratings(self.ratings)
        ratings = self._trained[1]
        if self._profiles is None or self._profiles[:2] != (ratings, state.traits):
            self._profiles = ratings, state.traits, _profiles(ratings, state)
        columns = self._columns(state.round, state.items.shape[1] - 1)
        return Sweep(state, ratings, self.mean, self.seed, self._profiles[2], columns)

    def _columns(self, number: int, k: int) -> NDArray[np.intp]:
        """Return the columns of the items that round `number` draws; the last is the bias.

        In ⌈k / block⌉ rounds every factor is drawn at least once, in a random order.
        """
        cycle, place = divmod(number - 1, -(-k // self.block))
        order = np.random.default_rng((self.seed, Draw.BLOCK, cycle)).permutation(k)
        first = place * self.block
        drawn = order.take(range(first, first + self.block), mode="wrap")
        return np.append(np.sort(drawn), k)

    def server_step(self, state: Chain, steps: Sweep, total: Aggregate) -> Chain:
        """Draw α, the hyper-priors, the links and the items, in this order (section 3.3)."""
        rng = np.random.default_rng((self.seed, Draw.SERVER, state.round))
        m, d = state.items.shape
        # scaled from the survivors to all users, or the posterior would be too wide
        n, columns = float(self.ratings.n_users), steps.columns
        table = total.sum.reshape(steps.shape) * (UNIT * n / len(total.survivors))
        moments, shifts = np.split(table[:m], [-columns.size], axis=1)
        z = steps.units[None, columns]
        moments, shifts = moments * lower(z), shifts * z
        own, end = table[m:].reshape(-1), d * (2 * d + 1)
        unit = np.concatenate((steps.units, np.full(d - 1, 1 / PROFILE), [1.0]))
        whole = symmetric(own[:end], 2 * d) * np.outer(unit, unit)  # of y
        products, sums, active = whole[:-1, :-1], whole[-1, :-1], max(whole[-1, -1], 1.0)
        count, squares = own[end : end + 4].reshape(2, 2) @ (HIGH, 1.0)
        weighted = moments[:, -columns.size :]  # Σ w z, of which the last is Σ w
        seen = weighted[:, -1] > 0
        if self._due(state, min(len(total.survivors), int(seen.sum()))):
            state = self._with_traits(state, columns[:-1], weighted, sums[: d - 1] / active)
        noise = gaussian.draw_noise(rng, count, squares)
        user_prior, user_link = gaussian.draw_linked_prior(
            rng, active, sums, products, state.user_link
        )
        pools, features = self._trained[0], self._features(state)
        if pools is not None:
            features = pools.means(features)
        rest = (state.items - features @ state.link.weights)[seen]
        item_prior = gaussian.draw_prior(
            rng, float(seen.sum()), rest.sum(axis=0), rest.T @ rest, state.link
        )
        trained = features[seen]
        cross = trained.T @ (state.items[seen] - item_prior.mean)
        link = gaussian.draw_link(rng, trained.T @ trained, cross, item_prior, state.link)
        around = Prior(item_prior.mean + features @ link.weights, item_prior.precision)
        items = gaussian.draw_columns(
            rng, state.items, columns, around, noise * moments, noise * shifts
        )
        if pools is not None:
            items = pools.of_rows(items)
        if state.traits is not None:
            user_prior = user_prior.rated(items, weighted[:, -1])
        users, weights = steps.drawn
        chain = replace(
            state,
            users=users,
            items=items,
            weights=weights,
            noise=noise,
            user_prior=user_prior,
            item_prior=item_prior,
            link=link,
            user_link=user_link,
        )
        return self._with_predictions(chain)

    def _due(self, state: Chain, rows: int) -> bool:
        """Return True in the second half of the burn-in, and later before any traits and draws.

        `rows` is the lesser number of users and items; too few rows cannot determine a link.
        All kept draws have the same features of items.
        """
        first, last, k = self._burn_in // 2, self._burn_in, state.items.shape[1] - 1
        early = state.round <= last or (state.traits is None and not state.samples)
        return 0 < first <= state.round and early and rows >= ROWS_PER_FACTOR * k

    def _with_traits(
        self, state: Chain, factors: NDArray[np.intp], weighted: Floats, mean: Floats
    ) -> Chain:
        """Return the state with implicit feedback from the round's sums; see `Traits.of`."""
        pools, raters = self._trained[0], weighted[:, -1]
        if pools is not None:
            raters, weighted = pools.items / pools.share, pools.of_rows(weighted)
        traits = Traits.of(state.items[:, :-1], raters, factors, weighted, mean, state.traits)
        link = state.link
        if state.traits is None:
            more = np.zeros((traits.items.shape[1], state.items.shape[1]))
            link = Link(np.concatenate((link.weights, more)), link.precision)
        return replace(state, traits=traits, link=link)

    def _features(self, state: Chain) -> Floats:
        """Return the features of the items for the link."""
        if state.traits is None:
            return self.features
        return np.concatenate((self.features, state.traits.items), axis=1)

    def _with_predictions(self, chain: Chain) -> Chain:
        """Return the state; if a draw is due, with the draw kept and the predictions added."""
        due = chain.round in self._kept
        if chain.samples and not due:
            return chain
        parts = [self.ratings] if self.test is None else [self.ratings, self.test]
        sample = chain.sample
        found = [predictions(sample, self.mean, part.users, part.items) for part in parts]
        if not due:
            return replace(chain, guesses=tuple(found))
        if chain.samples:
            found = [old + new for old, new in zip(chain.guesses, found, strict=True)]
        return replace(chain, samples=(*chain.samples, sample), guesses=tuple(found))

    def round_over(self, state: Chain, number: int) -> Chain:
        """Return the state with the number of the next round."""
        return replace(state, round=number + 1)

    def measured(self, record: RoundRecord, state: Chain, raters: Raters | None) -> RoundRecord:
        """Return the record with the errors of the average of all draws kept so far."""
        if isinstance(raters, Pools):
            record = replace(record, trained_items=int((raters.rows >= 0).sum()))
        if not state.guesses:
            return record
        share = 1 / max(len(state.samples), 1)
        train, *tests = (to_public(share * one, self.scale) for one in state.guesses)
        error = rmse(to_public(self.ratings.values, self.scale), train)
        if not error <= self.scale[1] - self.scale[0]:
            raise Diverged(
                f"the draws diverge: a training error of {error:.3g} on a scale from "
                f"{self.scale[0]:g} to {self.scale[1]:g}; check the ratings, or lower k or "
                "min_raters"
            )
        record = replace(record, train_rmse=error)
        if self.test is None:
            return record
        values = to_public(self.test.values, self.scale)
        return replace(record, test_rmse=rmse(values, tests[0]), test_mae=mae(values, tests[0]))


def _profiles(ratings: Ratings, state: Chain) -> Floats:
    """Return g_u of all users, zeros without implicit feedback."""
    if state.traits is None:
        return np.zeros((ratings.n_users, state.items.shape[1] - 1))
    return profiles(ratings, state.traits.embedding)
