"""`DPFedMF`, the estimator: settings, and training through noised secure sums."""

from __future__ import annotations

from typing import Self, Unpack, cast

from fedmf.aggregate import Aggregation
from fedmf.data import Features, Ratings
from fedmf.data.checks import check_parts
from fedmf.data.features import check_rows, item_features
from fedmf.dp.effects import Effects, first, standardised
from fedmf.models import Factors
from fedmf.models.estimator import not_continued
from fedmf.settings import Count
from fedmf.training.history import History
from fedmf.training.loop import Loop, check_learnt, keep
from fedmf.training.private import Private, PrivateSettings
from fedmf.training.schedule import Callbacks, Summing


class DPFedMF(Private):
    """Recommender of ratings, (ε, δ)-differentially private for whole users.

    See `fedmf.dp` for the model. In a round each user sends two numbers for each item, with an
    L2 norm of 1 together. All `rounds` sums cost (ε, δ), and so does all that the server
    computes from the sums: `model_.item_factors`. Everything else is exact and must not be
    published; docs/privacy.md lists the private outputs.

    A `LocalHead` on `model_` costs no ε, as each user fits the head to that user's own ratings
    and the public features, and sends nothing.

    Parameters
    ----------
    aggregation, epsilon, delta, where, honest, entropy, seed, dropout : see `Private`
    rounds : int, number of noised sums, ≥ 1
    callbacks : functions that are called with the record of each finished round

    Attributes
    ----------
    model_ : Factors, the trained model, without heads
    history_ : History, a record of each round, with exact errors that are not private
    """

    model_: Factors
    model = "DPFedMF"

    def __init__(
        self,
        aggregation: Summing | None = None,
        *,
        rounds: Count = 5,
        callbacks: Callbacks = (),
        **settings: Unpack[PrivateSettings],
    ) -> None:
        super().__init__(aggregation, **settings)
        self.rounds, self.callbacks = rounds, callbacks
        self.__post_init__()

    def fit(
        self,
        train: Ratings,
        test: Ratings | None = None,
        features: Features | None = None,
        *,
        start: None = None,
    ) -> Self:
        """Learn the items' effects, and measure the errors after each round.

        A KeyboardInterrupt ends the training early and keeps the finished rounds, which cost
        less than ε; ``history_.interrupted`` is then True.

        Parameters
        ----------
        train, test : training and test part over the same users and items; see `Split`
        features : public features of the items, a row per item; by default genres and year
        start : None, as `DPFedMF` does not continue a training

        Raises
        ------
        SettingError
            If the parts differ in users or items, or are of fewer than 3 users, or the
            aggregation does not suit the noise.
        DataError
            If `train` or `test` has no rating, or `features` lacks or exceeds a row per item.
        RoundAborted
            If every round was aborted.
        MissingExtra
            If dp-accounting is not installed.
        """
        self._forget()
        not_continued(self, start)
        check_parts(train, test)
        self.schedule.size(train.n_users)
        known = item_features(train) if features is None else features
        check_rows(known, train)
        noisy = self.noisy(self.rounds)
        training = Effects(train, test, standardised(known.matrix), noisy.deviation)
        start_at = first(training.ratings, train.scale)
        loop = Loop(cast(Aggregation, noisy), self.schedule, self.rounds)  # counts nothing
        rounds = loop.iterate(training, start_at)
        state, history = keep(rounds, start_at, self.report)
        check_learnt(history)
        self.model_, self.history_ = state.factors, History(history.rounds, history.interrupted)
        return self
