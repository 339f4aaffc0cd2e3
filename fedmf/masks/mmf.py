"""FedMMF: federated matrix factorisation of the residuals of each party's own mask.

Yang et al. 2021, "Practical and Secure Federated Recommendation with Personalized Masks",
section 3.2 and algorithm 2 (whose output q_1…n is to be read q_1…m).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Features, Ratings
from fedmf.data.checks import check_parts
from fedmf.data.features import item_features
from fedmf.errors import DataError, SettingError
from fedmf.masks.combined import Combined, around
from fedmf.masks.linear import RidgeMask
from fedmf.masks.protocol import FittedMask, Mask
from fedmf.models.mf import neutral
from fedmf.models.recommender import Estimator
from fedmf.training import History, Trainer

__all__ = ["FedMMF", "masked"]

Floats = NDArray[np.float64]


class FedMMF(Estimator):
    """Trains a federated model on masked ratings, under the trainer's aggregation.

    Each party fits its mask f_u on its own ratings, without any communication. The trainer gets
    r_ui − f_u(i) (eq. 11) in place of the ratings; the prediction is q_i · p_u + f_u(i) (eq.
    12). **The mask hides nothing** (see `fedmf.masks`): train with `SecAggSum`.

    Parameters
    ----------
    mask : personalised mask of every party, `RidgeMask()` by default
    trainer : `Trainer` of the masked ratings
    offset
        True to train on r − f + 3.5 (the neutral point of the ratings' scale, a public
        constant) and to subtract 3.5 afterwards. With ``FedMF(start="neutral")`` the factors
        then start where their product is 3.5, and not at zero, where the gradients are zero.
        Not in the paper.

    Attributes
    ----------
    mask_ : FittedMask, the parties' masks; they predict as LocalLR, LocalFM and LocalNN
    model_ : Combined, the trained model
    history_ : History of the federated training, whose errors are those of eq. 12
    """

    mask_: FittedMask
    model_: Combined
    history_: History
    _learnt = "model_"

    def __init__(
        self,
        mask: Mask | None = None,
        trainer: Trainer | None = None,
        *,
        offset: bool = True,
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
        self, train: Ratings, test: Ratings | None = None, features: Features | None = None
    ) -> Self:
        """Fit the masks, and train on their residuals; see `Trainer.fit`.

        Parameters
        ----------
        train, test : parts over the same users and items; see `Split`
        features
            A row for each item, for the masks; by default genres and year. A user's profile is
            the same in all of the user's ratings: a mask could learn nothing from it.

        Raises
        ------
        SettingError
            As in `Trainer.fit`; also if `features` is something else, or a mask diverged.
        DataError
            As in `Trainer.fit` and `Mask.fit`.
        """
        self._forget()
        check_parts(train, test)
        known = item_features(train) if features is None else features
        centre = neutral(train) if self.offset else 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # _rest raises
            mask = self.mask.fit(known, train, self.trainer.schedule.seed)
            rest = self._rest(train, mask, centre)
            rest_of_test = None if test is None else self._rest(test, mask, centre)
        self.trainer.fit(rest, rest_of_test)
        self.mask_, self.history_ = mask, self.trainer.history_
        self.model_ = Combined(self.trainer.factors_, mask, -centre, train)
        return self

    def _rest(self, ratings: Ratings, mask: FittedMask, centre: float) -> Ratings:
        try:
            return masked(ratings, mask, centre)
        except DataError as error:
            raise SettingError(
                f"mask = {self.mask!r} diverges: lower its rate or raise its penalty"
            ) from error


def masked(ratings: Ratings, mask: FittedMask, centre: float = 0.0) -> Ratings:
    """Return r − f_u(i) + centre (eq. 11) in place of each rating.

    The constant `centre` becomes the neutral point of the new scale, which has no other
    meaning, as masked ratings are not bounded. Raises DataError if one is beyond half a million
    or no number.
    """
    f = mask.predict(ratings.users, ratings.items)
    return ratings.with_values(ratings.values - f + centre, around(centre))
