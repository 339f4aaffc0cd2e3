"""Local head: each user corrects a trained recommender's errors in private."""

from __future__ import annotations

from dataclasses import dataclass

from fedmf.data import Features, Ratings
from fedmf.data.checks import check_parts
from fedmf.data.features import check_are_features, item_features
from fedmf.masks.combined import Base, Combined, around, check_same_data
from fedmf.masks.linear import MeanMask, RidgeMask
from fedmf.settings import NotNegative, Settings

__all__ = ["LocalHead"]


@dataclass(frozen=True, kw_only=True)
class LocalHead(Settings):
    """Ridge regression of each user's own training residuals on the items' features.

    It needs no communication, so it reveals nothing more. It works with any fitted recommender.
    FedMMF fits the private model first and the factors to its residuals; the head is fitted to
    the residuals of the factors. Not in the papers.

    Parameters
    ----------
    penalty : float, on the squared weights as in `RidgeMask`, ≥ 0; the intercept is free
    """

    penalty: NotNegative = 20.0

    def fit(self, base: Base, train: Ratings, features: Features | None = None) -> Combined:
        """Let each user fit the residuals r − r̂ of their own ratings.

        A user without a rating keeps the recommender's predictions as they are.

        Parameters
        ----------
        base : fitted recommender, ``trainer.factors_`` or ``fedmmf.model_``
        train : ratings that it was fitted on
        features
            A row for each item; by default genres and year. Without a feature, as for Last.fm
            without its tags, the head is an intercept only.

        Raises
        ------
        ModelError
            If `base` is of other users or items.
        DataError
            If the features are of other items, or there is no rating.
        SettingError
            If `train` is not ratings, or `features` something else, such as an array.
        """
        check_parts(train)
        check_same_data(base, train)
        known = item_features(train) if features is None else features
        check_are_features(features=known)
        residuals = train.values - base.predict(train.users, train.items)
        kind = RidgeMask(penalty=self.penalty) if known.names else MeanMask()
        head = kind.fit(known, train.with_values(residuals, around(0.0)))
        return Combined(base, head, 0.0, train)
