"""Local head: each user corrects a trained recommender's errors in private."""

from __future__ import annotations

from dataclasses import dataclass

from fedmf.data import Features, Ratings
from fedmf.data.checks import check_parts
from fedmf.data.features import check_are_features, item_features
from fedmf.data.internal import to_internal
from fedmf.masks.combined import Base, Combined, around, check_same_data
from fedmf.masks.linear import MeanMask, RidgeMask
from fedmf.settings import NotNegative, Settings


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
