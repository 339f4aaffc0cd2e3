"""`Sample`, a kept draw, `Chain`, the sampler between two sweeps, and `Traits` of items.

Implicit feedback gives features from the pairs of user and rated item, without the rating. The
server computes the features in each round of the second half of the burn-in, from the sums
of that round. Then the features stay. The features of an item are the popularity and the mean
factors of the raters, beside the public features f_i. Users compute g_u = Σ e_i / (n_u + 20)
over their n_u rated items. The e_i are the standardised factors of the round before, less their
mean over all ratings, so that a user with few ratings has the profile of the mean user. Rated
items as features of a user are due to Koren, "Factorization meets the neighborhood", KDD 2008,
section 4. As these features come from the ratings, the draws are from no joint posterior
distribution: docs/bayes.md has the effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedmf import _fast
from fedmf.bayes.gaussian import Floats, Link, Prior
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.models.factors_file import Form

SHRINKAGE = 20.0  # ratings; 5, 20 and 60 were tried on validation ratings of ml-100k


@dataclass(frozen=True, eq=False)
class Scaling:
    """Standardisation of item features: centre and width of each column, shape (f,).

    A column that was constant in training has the width infinity, and so no effect.
    """

    centre: Floats
    width: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Scaling:
        """Return the scaling to mean 0 and standard deviation 1 over the items."""
        spread = matrix.std(axis=0)
        return cls(matrix.mean(axis=0), np.where(spread > 0, spread, np.inf))

    def applied(self, matrix: Floats) -> Floats:
        """Return features in units of the training, shape (m, f)."""
        return np.asarray((matrix - self.centre) / self.width)


@dataclass(frozen=True, eq=False)
class Traits:
    """Features of all items from their raters.

    Parameters
    ----------
    items : float64, shape (m, k + 1), log popularity and mean factors of the raters
    embedding : float64, shape (m, k), the rows e_i, 0 for items without raters
    """

    items: Floats
    embedding: Floats

    @classmethod
    def of(
        cls,
        items: Floats,
        raters: Floats,
        factors: NDArray[np.intp],
        weighted: Floats,
        mean: Floats,
        before: Traits | None = None,
    ) -> Traits:
        """Return the features after a sum; features of other factors stay, or are 0.

        Parameters
        ----------
        items : float64, shape (m, k), q_i
        raters : float64, shape (m,), number of raters
        factors : shape (b,), the factors of the sum, 0 ≤ factor < k
        weighted : float64, shape (m, b + 1), Σ w p_u of these factors, and Σ w, over the raters
        mean : float64, shape (k,), the mean p_u of all users
        before : features before the sum
        """
        total = weighted[:, -1:]
        apart = (weighted[:, :-1] - total * mean[factors]) / (total + SHRINKAGE)
        table = np.zeros((len(items), items.shape[1] + 1)) if before is None else before.items
        table = table.copy()
        table[:, [0, *(1 + factors)]] = standardised(np.column_stack((np.log1p(raters), apart)))
        around, share = standardised(items), np.where(total[:, 0] > 0, raters, 0.0)
        around -= share @ around / max(share.sum(), 1.0)
        return cls(table, np.where(total > 0, around, 0.0))


def standardised(table: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1; zeros for a constant column."""
    return Scaling.of(table).applied(table)


def profiles(ratings: Block | Ratings, embedding: Floats) -> Floats:
    """Return g_u of each user, float64, shape (n, k); 0 for users without a rating."""
    counts = np.diff(ratings.indptr)
    users = np.repeat(np.arange(counts.size), counts)
    columns = [np.bincount(users, one[ratings.items], counts.size) for one in embedding.T]
    return np.asarray(np.stack(columns, axis=1) / (counts + SHRINKAGE)[:, None])


TABLES = {
    "users": ("users", "nd"),
    "items": ("items", "md"),
    "weights": ("weights", "n"),
    "noise": ("noise", ""),
    "user_means": ("user_prior.mean", "d"),
    "user_precisions": ("user_prior.precision", "dd"),
    "item_means": ("item_prior.mean", "d"),
    "item_precisions": ("item_prior.precision", "dd"),
    "links": ("link.weights", "fd"),
    "link_precisions": ("link.precision", ""),
    "user_links": ("user_link.weights", "kd"),
    "user_link_precisions": ("user_link.precision", ""),
}
"""Attribute of a sample, and the axes, by the tables of samples in a file.

The first axis of each table counts the samples. The other axes count the n users, the m items,
the f features, the k factors and the d = k + 1 columns of a row.
"""

SMALL = ("users", "items", "weights")  # tables of float32
SAMPLES: Form = {name: (np.float32 if name in SMALL else np.float64,) for name in TABLES}

Real = TypeVar("Real", np.float32, np.float64)


@dataclass(frozen=True, eq=False)
class Unknowns(Generic[Real]):
    """All unknowns of the model.

    Parameters
    ----------
    users, items : shapes (n, d) and (m, d): the rows (p_u, b_u) and (q_i, b_i)
    weights : shape (n,), w_u
    noise : float, α, precision of the ratings of a user of weight 1
    user_prior, item_prior : hyper-priors
    link : regression of the items on their features; the features of `Traits` are last
    user_link : regression of the users on their profiles; see `fedmf.bayes.sample`
    """

    users: NDArray[Real]
    items: NDArray[Real]
    weights: NDArray[Real]
    noise: float
    user_prior: Prior
    item_prior: Prior
    link: Link
    user_link: Link


@dataclass(frozen=True, eq=False)
class Sample(Unknowns[np.float32]):
    """Kept draw of all unknowns, as float32; see `Unknowns`."""


def predictions(
    sample: Sample, mean: float, users: NDArray[np.integer], items: NDArray[np.integer]
) -> Floats:
    """Return μ + b_u + b_i + p_u · q_i of pairs, from a single draw, on the internal scale."""
    p, q = sample.users.astype(np.float64), sample.items.astype(np.float64)
    left = np.column_stack((p[:, :-1], p[:, -1] + mean, np.ones(len(p))))
    right = np.column_stack((q[:, :-1], np.ones(len(q)), q[:, -1]))
    found = np.empty(users.size)
    _fast.predict(left, right, users.astype(np.int64), items.astype(np.int64), found)
    return found


def tables_of(samples: Sequence[Sample]) -> dict[str, NDArray[Any]]:
    """Return the tables of at least one sample, for a file."""
    return {
        name: np.array([attrgetter(attribute)(one) for one in samples])
        for name, (attribute, _) in TABLES.items()
    }


def samples_of(tables: Mapping[str, NDArray[Any]]) -> tuple[Sample, ...]:
    """Return the samples of the tables in a file; ValueError if they are inconsistent."""
    users, items, links = tables["users"], tables["items"], tables["links"]
    count, n_users, d = users.shape
    sizes = {"n": n_users, "m": items.shape[1], "f": links.shape[1], "d": d, "k": d - 1}
    for name, (_, axes) in TABLES.items():
        shape = (count, *(sizes[axis] for axis in axes))
        if tables[name].shape != shape:
            raise ValueError(f"{name} has the shape {tables[name].shape}, not {shape}")
    for name in SAMPLES:
        if not np.isfinite(tables[name]).all():
            raise ValueError(f"{name} has NaN or infinity")
    for name in ("weights", "noise"):
        if not (tables[name] > 0).all():
            raise ValueError(f"{name} is not positive")
    return tuple(
        Sample(
            users[s],
            items[s],
            tables["weights"][s],
            float(tables["noise"][s]),
            Prior(tables["user_means"][s], tables["user_precisions"][s]),
            Prior(tables["item_means"][s], tables["item_precisions"][s]),
            Link(links[s], float(tables["link_precisions"][s])),
            Link(tables["user_links"][s], float(tables["user_link_precisions"][s])),
        )
        for s in range(count)
    )


@dataclass(frozen=True, eq=False)
class Chain(Unknowns[np.float64]):
    """State of the sampler after a sweep; the unknowns are float64, see `Unknowns`.

    Parameters
    ----------
    traits : implicit feedback, None before the middle of the burn-in
    round : int, number of the next round, ≥ 1
    samples : draws kept so far
    guesses
        Sums of the predictions of the kept draws, for the training ratings and any test
        ratings. Before the first kept draw, the predictions of the latest draw.
    """

    traits: Traits | None = None
    round: int = 1
    samples: tuple[Sample, ...] = ()
    guesses: tuple[Floats, ...] = ()

    @property
    def sample(self) -> Sample:
        """The draw in kept form, as float32."""
        unknowns = {one.name: getattr(self, one.name) for one in fields(Sample)}
        return Sample(**unknowns | {name: unknowns[name].astype(np.float32) for name in SMALL})
