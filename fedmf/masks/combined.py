"""Recommender that adds a private model of each user, a mask or a head, to a shared model.

A local head corrects a trained recommender's errors in private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fedmf.data import Features, Ratings
from fedmf.data.checks import Identified, check_parts, same_ids
from fedmf.data.features import check_are_features, item_features
from fedmf.data.internal import to_internal, to_public
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.masks.linear import MeanMask, RidgeMask
from fedmf.masks.protocol import FittedMask, Floats
from fedmf.models import Factors
from fedmf.models.mf import NEUTRAL_PART
from fedmf.models.recommender import Trained
from fedmf.settings import NotNegative, Settings

WIDTH = 2.0**20  # width of the scale of masked ratings and residuals, wide enough for all


class Base(Identified, Protocol):
    """Recommender with the ids of users and items: `Factors`, or `Combined`."""

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return r̂ of each pair of a user and an item."""


@dataclass(frozen=True, eq=False)
class Combined(Trained):
    """Recommender that predicts a sum: a base, a user's private model, and a constant.

    The base's predictions, on the ratings' own scale, are mapped to the internal scale 1 to 5.
    The terms are added there, and the sum is mapped back. Raises ModelError if the parts have
    different users or items.

    Parameters
    ----------
    base : recommender that all users share
    private : private models of the users, such as masks or heads, on the internal scale
    constant : float, public number that is added to every prediction on the internal scale
    train : ratings that both models were fitted on; rated items are not recommended
    """

    base: Base
    private: FittedMask
    constant: float
    train: Ratings

    def __post_init__(self) -> None:
        check_same_data(self.base, self.train)
        shape = self.train.n_users, self.train.n_items
        if (self.private.n_users, len(self.private.features)) != shape:
            raise ModelError(
                "the private models have other users or items than the ratings: fit them again"
            )

    @property
    def user_ids(self) -> Ids:
        """The data set's own ids of the users."""
        return self.train.user_ids

    @property
    def item_ids(self) -> Ids:
        """The data set's own ids of the items."""
        return self.train.item_ids

    @property
    def scale(self) -> tuple[float, float]:
        """Public scale (low, high) of the predictions."""
        return self.train.scale

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return r̂_ui of each pair; see `Recommender.predict`."""
        base = to_internal(self.base.predict(users, items), self.scale)
        return to_public(base + self.private.predict(users, items) + self.constant, self.scale)

    def __repr__(self) -> str:
        return f"<Combined: {self.base!r} and a private model of each user>"

    def factors(self) -> Factors:
        """Return the same model as `Factors`, which can be saved.

        The private models become more columns. For b_u + w_u · x_i these are the user's
        (b_u, w_u) and the public (1, x_i). Raises ModelError if the private models are not
        linear in their parameters (`NNMask`).
        """
        base = self.base.factors() if isinstance(self.base, Combined) else self.base
        if not isinstance(base, Factors):
            raise ModelError(
                f"{type(base).__name__} has no factor form: combine trained factors"
            )
        users, items = self.private.linear()
        ones = np.ones((self.train.n_items, 1))
        constant, factors = self.constant, base.user_factors
        if base.scale is None:  # the products are on the public scale
            zero, one = to_internal(np.array([0.0, 1.0]), self.scale)
            constant, factors = constant + zero, (one - zero) * factors
        return Factors.of(
            np.column_stack((factors, users, np.full(self.train.n_users, constant))),
            np.column_stack((base.item_factors, items, ones)),
            self.train,
            scale=self.scale,
        )


def around(centre: float) -> tuple[float, float]:
    """Return a scale (low, high) of width `WIDTH`, with the neutral point at `centre`."""
    return centre - NEUTRAL_PART * WIDTH, centre + (1 - NEUTRAL_PART) * WIDTH


def check_same_data(model: Base, ratings: Ratings) -> None:
    """Validate that model and ratings have the same users and items; raises ModelError."""
    if not hasattr(model, "user_ids"):
        raise ModelError(
            f"{type(model).__name__} is no fitted recommender: pass trainer.model_ or "
            "fedmmf.model_"
        )
    if not same_ids(model, ratings):
        raise ModelError(
            f"the model is of {model.user_ids.size} users and {model.item_ids.size} items and "
            f"the ratings ({ratings.name}) of {ratings.n_users} and {ratings.n_items}, or of "
            "others: fit it on the same data"
        )


@dataclass(frozen=True, kw_only=True)
class LocalHead(Settings):
    """Ridge regression of each user's own training residuals on the items' features.

    A head needs no communication, so a head reveals nothing more. Any fitted recommender can
    have a head. FedMMF fits the masks first, and the factors to the residuals. A head is fitted
    last, to the residuals of the finished recommender, in units of the internal scale 1 to 5.
    The head is not in the papers.

    Parameters
    ----------
    penalty : float, weight of the squared weights as in `RidgeMask`, ≥ 0
    """

    penalty: NotNegative = 20.0

    def fit(self, base: Base, train: Ratings, features: Features | None = None) -> Combined:
        """Let each user fit the residuals r − r̂ of their own ratings.

        A user without a rating keeps the recommender's predictions as they are.

        Parameters
        ----------
        base : fitted recommender, such as ``trainer.model_`` or ``fedmmf.model_``
        train : ratings that `base` was fitted on
        features
            Features with a row for each item; by default genres and year. Without any feature,
            as for Last.fm without the tags, the head is the mean residual of a user.

        Raises
        ------
        ModelError
            If `base` and `train` have different users or items.
        DataError
            If `features` lacks or exceeds a row per item, or `train` has no rating.
        SettingError
            If `train` is not `Ratings`, or `features` is not `Features`, such as an array.
        """
        check_parts(train)
        check_same_data(base, train)
        known = item_features(train) if features is None else features
        check_are_features(features=known)
        guesses = to_internal(base.predict(train.users, train.items), train.scale)
        residuals = to_internal(train.values, train.scale) - guesses
        kind = RidgeMask(penalty=self.penalty) if known.names else MeanMask()
        head = kind.fit(known, train.with_values(residuals, around(0.0)))
        return Combined(base, head, 0.0, train)
