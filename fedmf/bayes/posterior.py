"""`Posterior`, the trained model, which predicts by the average of many draws."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.bayes.gaussian import Floats, draw_weight
from fedmf.bayes.sample import (
    SAMPLES,
    Sample,
    Scaling,
    predictions,
    profiles,
    samples_of,
    tables_of,
)
from fedmf.bayes.users import user_draws
from fedmf.data import Features
from fedmf.data.blocks import Block
from fedmf.data.internal import to_internal, to_public
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.models.additions import check_columns, new_ids
from fedmf.models.factors_file import SEEN, Form, read_tables, write_tables
from fedmf.models.recommender import Stored, numbers, one_user, pairs, rated
from fedmf.settings import Count, Seed, check

KIND = "posterior"
FORM: Form = {
    **SAMPLES,
    "mean": (np.float64,),
    **SEEN,
    "scale": (np.float64,),
    "feature_centre": (np.float64,),
    "feature_width": (np.float64,),
    "embedding": (np.float64,),
}


@dataclass(frozen=True, eq=False)
class Posterior(Stored):
    """Draws from the posterior distribution of a Bayesian matrix factorisation.

    In a deployment the server has the items of every draw, and each user the draws of their
    own row. A simulation has all draws, and so has a saved file: protect that file like the
    ratings. Raises ModelError if the shapes do not match.

    Parameters
    ----------
    samples : at least one draw
    mean : float, μ, on the internal scale
    seen_indptr, seen_items : see `Factors`
    user_ids, item_ids : int64 or text, the data set's own ids
    public_scale : scale (low, high) of the ratings and predictions
    scaling : standardisation of the items' features
    embedding : float64, shape (m, k), items as features of their raters; see `Traits`
    """

    samples: tuple[Sample, ...]
    mean: float
    seen_indptr: NDArray[np.int64]
    seen_items: NDArray[np.int32]
    user_ids: Ids
    item_ids: Ids
    public_scale: tuple[float, float]
    scaling: Scaling
    embedding: Floats

    def __post_init__(self) -> None:
        n_users, n_items = self.user_ids.size, self.item_ids.size
        shapes = {(len(one.users), len(one.items)) for one in self.samples}
        low, high = self.public_scale
        if (
            shapes != {(n_users, n_items)}
            or self.embedding.shape != (n_items, self.k)
            or not self._seen_fits()
            or not -math.inf < low < high < math.inf
        ):
            raise ModelError(
                f"the model's tables do not fit together: draws of {sorted(shapes)} users and "
                f"items, {n_users} user ids, {n_items} item ids, {self.seen_items.size} rated "
                f"items, scale {self.public_scale}"
            )

    @property
    def scale(self) -> tuple[float, float]:
        """Public scale (low, high) of the predictions."""
        return self.public_scale

    @property
    def k(self) -> int:
        """Number of latent factors."""
        return int(self.samples[0].items.shape[1]) - 1

    @overload
    def predict(
        self, users: ArrayLike, items: ArrayLike, return_std: Literal[False] = False
    ) -> Floats: ...
    @overload
    def predict(
        self, users: ArrayLike, items: ArrayLike, return_std: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    def predict(
        self, users: ArrayLike, items: ArrayLike, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Return the mean of the draws' predictions for each pair; see `Recommender.predict`.

        With `return_std`, also return the standard deviation of the rating. The deviation is
        √(Var r̂ + mean 1/(α w_u)), from the draws and the user's noise. The mean ± 1.645
        deviations is an interval of 90 %.
        """
        rows, columns = pairs(users, items, self.n_users, self.n_items)
        flat = rows.reshape(-1), columns.reshape(-1)
        total, squares = np.zeros(rows.size), np.zeros(rows.size)
        for sample in self.samples:
            found = predictions(sample, self.mean, *flat)
            total += found
            squares += (found - self.mean) ** 2
        count = len(self.samples)
        average = total / count
        public = to_public(average, self.public_scale).reshape(rows.shape)
        if not return_std:
            return public
        noises = np.mean([1 / (one.noise * one.weights) for one in self.samples], axis=0)
        noise = noises[flat[0]]
        variance = np.maximum(squares / count - (average - self.mean) ** 2, 0.0) + noise
        ends = to_public(np.array([0.0, 1.0]), self.public_scale)
        return public, (np.sqrt(variance) * (ends[1] - ends[0])).reshape(rows.shape)

    def predict_all(self, users: ArrayLike) -> Floats:
        """Return r̂ of all items for some users: `predict` up to rounding, but faster."""
        rows = numbers("user", users, self.n_users).reshape(-1)
        total = np.zeros((rows.size, self.n_items))
        for one in self.samples:
            p, q = one.users[rows].astype(np.float64), one.items.astype(np.float64)
            total += p[:, :-1] @ q[:, :-1].T + p[:, -1:] + q[:, -1]
        return to_public(total / len(self.samples) + self.mean, self.public_scale)

    def fold_in(self, items: ArrayLike, ratings: ArrayLike, *, seed: int = 0) -> Posterior:
        """Return the model of a new user, number 0, drawn from their own ratings.

        Nothing is sent and no other user's row changes. Without ratings the user's rows are
        drawn from the prior.

        Parameters
        ----------
        items : ids of the rated items, distinct, shape (n,)
        ratings : numbers within the scale, shape (n,)
        seed : int, seed of the draws, ≥ 0

        Raises
        ------
        ModelError
            If an item is unknown or occurs twice, or a rating is outside the scale.
        """
        check(Seed, seed=seed)
        numbers, values = rated(items, ratings, self.item_ids, self.public_scale)
        block = Block.of_one(numbers, to_internal(values, self.public_scale))
        rng = np.random.default_rng(seed)
        profile = profiles(block, self.embedding)
        samples, weight = [], np.ones(1)
        normal = np.zeros((1, self.k + 1))
        for s, one in enumerate(self.samples):  # the Gibbs sampler of (p, b) and w
            # the noise of every second draw is opposite, so that it cancels in their mean
            normal = -normal if s % 2 else rng.standard_normal(normal.shape)
            table, noise = one.items.astype(np.float64), one.noise * weight
            prior = one.user_prior
            centre = prior.mean + profile @ one.user_link.weights
            drawn = user_draws(block, table, self.mean, noise, centre, prior.precision, normal)
            draw = replace(one, users=drawn.astype(np.float32))
            errors = block.values - predictions(
                draw, self.mean, np.zeros_like(numbers), numbers
            )
            weight = draw_weight(rng, block.counts, one.noise * np.array([errors @ errors]))
            samples.append(replace(draw, weights=weight.astype(np.float32)))
        return replace(self, samples=tuple(samples), **one_user(numbers))

    def with_items(
        self,
        ids: ArrayLike,
        features: Features,
        known: Features | None = None,
        *,
        seed: int = 0,
    ) -> Posterior:
        """Return the model with new items, drawn from the link of the items' features.

        Parameters
        ----------
        ids : ids of the new items, shape (n,), of the type of `item_ids`
        features : features with a row per new item, and the columns of the training
        known
            Features of the model's items; `Factors.with_items` needs these features. The
            training has learnt the link, so only the columns are compared.
        seed : int, seed of the draws, ≥ 0

        Raises
        ------
        ModelError
            If an id is known or occurs twice, or the features do not fit.
        """
        check(Seed, seed=seed)
        check_columns(features, known, self.n_items)
        together = new_ids(self.item_ids, ids, len(features))
        shape = len(features), self.scaling.centre.size
        if features.matrix.shape != shape:
            raise ModelError(
                f"features of shape {features.matrix.shape} do not fit: {shape} is needed, in "
                "the columns of the training"
            )
        table, rng = self.scaling.applied(features.matrix), np.random.default_rng(seed)
        samples = []
        for one in self.samples:
            weights = one.link.weights[: table.shape[1]]  # new items have the mean traits
            centre = one.item_prior.mean + table @ weights
            root = np.linalg.cholesky(one.item_prior.precision)
            spread = np.linalg.solve(root.T, rng.standard_normal(centre.T.shape)).T
            rows = np.concatenate((one.items, (centre + spread).astype(np.float32)))
            samples.append(replace(one, items=rows))
        embedding = np.concatenate((self.embedding, np.zeros((len(features), self.k))))
        return replace(self, samples=tuple(samples), item_ids=together, embedding=embedding)

    def factors(self, k: int | None = None) -> Factors:
        """Return the best factors of rank k for the average of the draws, by a truncated SVD.

        The average of S draws has a rank of up to S k. So some accuracy is lost in general, and
        all standard deviations are lost. On ml-100k the RMSE is the same to four digits.

        Parameters
        ----------
        k : int, rank, ≥ 1, by default the rank of the training; two more columns are the biases
        """
        check(Count | None, k=k)
        n, m = self.n_users, self.n_items
        rank = min(self.k if k is None else k, n, m)
        tables = tables_of(self.samples)
        users, items = tables["users"].astype(np.float64), tables["items"].astype(np.float64)
        left, right = (rows[..., :-1].transpose(1, 0, 2) for rows in (users, items))
        # Σ_s P_s Q_sᵀ = L Rᵀ with the draws side by side. The QR decompositions of L and R have
        # orthonormal columns, so the SVD of the small cores is enough.
        (of_users, small), (of_items, other) = (
            np.linalg.qr(side.reshape(len(side), -1)) for side in (left, right)
        )
        u, sizes, vt = np.linalg.svd(small @ other.T / len(self.samples), full_matrices=False)
        half = np.sqrt(sizes[:rank])
        biases = users[..., -1].mean(axis=0) + self.mean, items[..., -1].mean(axis=0)
        return Factors(
            np.column_stack((of_users @ (u[:, :rank] * half), biases[0], np.ones(n))),
            np.column_stack((of_items @ (vt[:rank].T * half), np.ones(m), biases[1])),
            scale=self.public_scale,
            **self._seen_tables,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to `path`, atomically; raises ModelError if that fails."""
        tables: dict[str, Any] = tables_of(self.samples) | {
            "mean": np.array(self.mean),
            **self._seen_tables,
            "scale": np.array(self.public_scale),
            "feature_centre": self.scaling.centre,
            "feature_width": self.scaling.width,
            "embedding": self.embedding,
        }
        write_tables(path, KIND, tables)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """Read a file that `save` wrote; raises ModelError as `Factors.load` does."""
        tables = read_tables(path, KIND, FORM)
        try:
            low, high = tables["scale"].tolist()
            model = cls(
                samples=samples_of(tables),
                mean=float(tables["mean"]),
                public_scale=(low, high),
                scaling=Scaling(tables["feature_centre"], tables["feature_width"]),
                **{name: tables[name] for name in ("embedding", *SEEN)},
            )
            model._check_seen(path)
            for name in ("mean", "embedding", "feature_centre"):
                if not np.isfinite(tables[name]).all():
                    raise ValueError(f"{name} has NaN or infinity")
            centre, width = model.scaling.centre, model.scaling.width
            if centre.shape != width.shape or not (width > 0).all():
                raise ValueError(f"widths {width} do not fit {centre.shape} features")
            return model
        except (IndexError, TypeError, ValueError) as error:
            raise ModelError(
                f"the model {path} has inconsistent tables: {error}; train it again"
            ) from error

    def __repr__(self) -> str:
        return (
            f"<Posterior: {self.n_users} users, {self.n_items} items, k = {self.k}, "
            f"{len(self.samples)} draws>"
        )
