"""FedMMF: federated matrix factorisation of what each party cannot predict by itself.

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
from fedmf.masks.protocol import FittedMask, Mask, neutral
from fedmf.models.recommender import Estimator
from fedmf.training import History, Trainer

__all__ = ["FedMMF", "masked"]

Floats = NDArray[np.float64]


class FedMMF(Estimator):
    """Trains a federated model on masked ratings, under whatever sum its trainer makes.

    Each party fits its mask f_u on its own ratings, without any communication, and the trainer
    gets r_ui − f_u(i) (eq. 11) in place of the ratings; the prediction is q_i · p_u + f_u(i)
    (eq. 12). **The mask hides nothing**: from plain gradients the masked ratings follow, and
    from those, for the masks here, nearly all ratings. Train with `SecAggSum`.

    Parameters
    ----------
    mask
        The personalised mask of every party.
    trainer
        What is trained federatedly on the masked ratings, and how it is summed.
    offset
        Whether to train on r − f + 3.5 (the neutral point of the ratings' scale, a public
        constant) and to subtract 3.5 afterwards. With ``FedMF(start="neutral")`` the factors
        then start where their product is 3.5, and not at zero, where the gradients vanish.
        Not in the paper.

    Attributes
    ----------
    mask_ : FittedMask
        The parties' masks; their own predictions are LocalLR, LocalFM and LocalNN.
    model_ : Combined
        What was learnt.
    history_ : History
        Of the federated training. Its errors are those of eq. 12: adding f and subtracting the
        constant changes predictions and ratings alike.

    Raises
    ------
    SettingError
        If a mask or a trainer is something else.
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
                "FedMMF wants a mask and a trainer, such as RidgeMask() and "
                "Trainer(FedMF(), SecAggSum())"
            )
        self.__post_init__()

    def fit(
        self, train: Ratings, test: Ratings | None = None, features: Features | None = None
    ) -> Self:
        """Fit the masks, and train on what they leave.

        Interrupts and errors leave behind what `Trainer.fit` says.

        Parameters
        ----------
        train, test
            Over the same users and items, as of `Split`.
        features
            A row for each item, what the masks know of it; by default genres and year. A
            profile of the user would be the same in all of a user's ratings: a mask could
            learn nothing from it.

        Raises
        ------
        SettingError
            As of `Trainer.fit`, if `features` is something else, such as an array, or if a
            mask has not found what it is to predict.
        DataError
            As of `Trainer.fit` and `Mask.fit`.
        """
        self._forget()
        check_parts(train, test)
        known = item_features(train) if features is None else features
        centre = neutral(train) if self.offset else 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # told by _rest
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
                f"{self.mask!r} predicts what is far from any rating: lower its rate, or "
                "penalise its weights more"
            ) from error


def masked(ratings: Ratings, mask: FittedMask, centre: float = 0.0) -> Ratings:
    """Return r − f_u(i) + centre (eq. 11) in place of each rating.

    Parameters
    ----------
    ratings
        Of the users and items that the masks were fitted on.
    mask
        The parties' masks.
    centre
        A constant, which becomes the neutral point of the new scale; that has no other
        meaning, for masked ratings are not bounded.

    Raises
    ------
    DataError
        If one is beyond half a million, or not a number.
    """
    f = mask.predict(ratings.users, ratings.items)
    return ratings.with_values(ratings.values - f + centre, around(centre))
