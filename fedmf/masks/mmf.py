"""FedMMF: federated matrix factorisation of masked ratings, the residuals of private masks.

Yang et al. 2021, "Practical and Secure Federated Recommendation with Personalized Masks",
section 3.2 and algorithm 2 (read the output q_1…n there as q_1…m).
"""

from __future__ import annotations

from typing import Self

import numpy as np

from fedmf.data import Features, Ratings
from fedmf.data.checks import check_parts
from fedmf.data.features import item_features
from fedmf.data.internal import internal
from fedmf.errors import DataError, SettingError
from fedmf.masks.combined import Combined, around
from fedmf.masks.linear import RidgeMask
from fedmf.masks.protocol import FittedMask, Mask
from fedmf.models import Factors, FederatedModel
from fedmf.models.estimator import Estimator
from fedmf.models.mf import NEUTRAL
from fedmf.training import History, Trainer


class FedMMF(Estimator):
    """Recommender that fits a mask for each user and a federated model on the masked ratings.

    Each party fits a mask f_u on the party's ratings, without any communication. The trainer
    gets r_ui − f_u(i) (eq. 11) in place of the ratings; the prediction is q_i · p_u + f_u(i)
    (eq. 12). **The mask hides nothing** (see `fedmf.masks`): train with `SecAggSum`. Masks and
    factors are on the internal scale 1 to 5; predictions and errors are on the ratings' own
    scale.

    Parameters
    ----------
    mask : hyper-parameters of every party's mask, `RidgeMask()` by default
    trainer : `Trainer` of the federated model, `Trainer()` by default
    offset
        True to train on r − f + 3.5 and to subtract 3.5, a public constant, from the
        predictions. With ``FedMF(start="neutral")`` the starting predictions are then 3.5, and
        not 0, where all gradients are zero. The offset is not in the paper. The mean of masked
        ratings is about the offset, so no mean is summed.

    Attributes
    ----------
    mask_ : FittedMask, the parties' masks, which predict on the internal scale
    model_ : Combined, the trained model with the masks
    history_ : History of the federated training, with the errors of eq. 12
    """

    mask_: FittedMask
    model_: Combined
    history_: History

    def __init__(
        self, mask: Mask | None = None, trainer: Trainer | None = None, *, offset: bool = True
    ) -> None:
        self.mask: Mask = RidgeMask() if mask is None else mask
        self.trainer = Trainer() if trainer is None else trainer
        self.offset = offset
        no_mask = isinstance(mask, type | Trainer) or not hasattr(self.mask, "fit")
        if no_mask or not isinstance(self.trainer, Trainer):
            raise SettingError(
                "FedMMF needs a mask and a trainer, such as RidgeMask() and "
                "Trainer(FedMF(), SecAggSum())"
            )
        self.__post_init__()

    def fit(
        self,
        train: Ratings,
        test: Ratings | None = None,
        features: Features | None = None,
        *,
        start: Factors | None = None,
    ) -> Self:
        """Fit the masks, and train on the residuals; see `Trainer.fit`.

        Parameters
        ----------
        train, test : training and test part over the same users and items; see `Split`
        features
            Features of the items for the masks, with a row per item; by default genres and
            year. A user's profile is useless here: all ratings of a user share that profile.
        start
            Earlier factors of masked ratings, ``model_.base``; see `Trainer.fit`.

        Raises
        ------
        ModelError, SettingError
            See `Trainer.fit`. Also if `features` is not `Features`, or a mask diverged.
        DataError
            See `Trainer.fit` and `Mask.fit`.
        """
        self._forget()
        check_parts(train, test)
        mask = self.fit_mask(train, features)
        rest_of_test = None if test is None else self.rest(test, mask)
        model, scale = self.model, train.scale
        self.trainer.schedule.size(train.n_users)  # raises before any work
        self.trainer.fit_internal(model, self.rest(train, mask), rest_of_test, scale, start)
        self.mask_, self.history_ = mask, self.trainer.history_
        self.model_ = self.combined(self.trainer.model_, mask, train)
        return self

    @property
    def model(self) -> FederatedModel:
        """The trainer's model; a model that needs a mean gets the mean of masked ratings."""
        model = self.trainer.model
        return model.at_mean(self.centre) if getattr(model, "needs_mean", False) else model

    def fit_mask(self, train: Ratings, features: Features | None = None) -> FittedMask:
        """Return the masks of all parties, each fitted on that party's ratings; see `fit`."""
        known = item_features(train) if features is None else features
        with np.errstate(over="ignore", invalid="ignore"):  # `rest` raises
            return self.mask.fit(known, internal(train), self.trainer.schedule.seed)

    def rest(self, ratings: Ratings, mask: FittedMask) -> Ratings:
        """Return the masked ratings, on the internal scale; SettingError if a mask diverged."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return masked(internal(ratings), mask, self.centre)
        except DataError as error:
            raise SettingError(
                f"mask = {self.mask!r} diverges: lower its rate or raise its penalty"
            ) from error

    def combined(self, factors: Factors, mask: FittedMask, train: Ratings) -> Combined:
        """Return the recommender of eq. 12, from factors that were trained on `rest`."""
        return Combined(factors, mask, -self.centre, train)

    @property
    def centre(self) -> float:
        """Constant that is added to masked ratings; see `offset`."""
        return NEUTRAL if self.offset else 0.0


def masked(ratings: Ratings, mask: FittedMask, centre: float = 0.0) -> Ratings:
    """Return r − f_u(i) + centre (eq. 11) in place of each rating.

    The new scale is about a million wide, as masked ratings are not bounded; the neutral point
    is `centre`. Raises DataError if a masked rating is NaN or outside that scale.
    """
    f = mask.predict(ratings.users, ratings.items)
    return ratings.with_values(ratings.values - f + centre, around(centre))
