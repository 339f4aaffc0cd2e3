"""Scores of a model on validation parts of the training ratings, and results of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from statistics import fmean, stdev
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings, Split
from fedmf.data.splits import random_folds
from fedmf.errors import Diverged, SettingError
from fedmf.models.estimator import Estimator
from fedmf.models.recommender import Recommender
from fedmf.settings import Count, Settings, check
from fedmf.training import Ranking, mae, ranking, rmse

Found = TypeVar("Found")

ERRORS = ("rmse", "mae")  # measures of error: less is better


@dataclass(frozen=True)
class Scores:
    """Scores of a model, one per validation part.

    Parameters
    ----------
    measure : name of the measure
    values : at least one score
    """

    measure: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean of the scores."""
        return fmean(self.values)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean, s / √n; None for a single part.

        This value is too low, since the trainings of two folds share most ratings.
        """
        if len(self.values) < 2:
            return None
        return stdev(self.values) / math.sqrt(len(self.values))

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        return f"{self.measure} {self.mean:.4f}{error}"

    def __repr__(self) -> str:
        return f"<Scores: {self}>"


@dataclass(frozen=True)
class Candidate:
    """Candidate of a search.

    Parameters
    ----------
    settings : settings by name, as for ``set_params``
    scores : scores; None if the candidate failed
    error : message of the error that the candidate failed with, or None
    seconds : float, time of all trainings of the candidate
    """

    settings: Mapping[str, object]
    scores: Scores | None
    error: str | None
    seconds: float

    def __repr__(self) -> str:
        shown = self.error if self.scores is None else self.scores
        return f"<Candidate: {dict(self.settings)}, {shown}>"


@dataclass(frozen=True, eq=False)
class SearchResult(Generic[Found]):
    """Result of `search`.

    Parameters
    ----------
    measure : name of the measure
    candidates : finished candidates, in the order of the grid
    estimator : best candidate, trained on all ratings; None without ``refit``
    interrupted : True if Ctrl-C ended the search early
    """

    measure: str
    candidates: tuple[Candidate, ...]
    estimator: Found | None = field(default=None, repr=False)
    interrupted: bool = False

    @property
    def best(self) -> Candidate:
        """Candidate with the best mean, the first if several; SettingError if all failed."""
        scored = [(one, one.scores.mean) for one in self.candidates if one.scores is not None]
        if not scored:
            reason = f", the first with: {self.candidates[0].error}" if self.candidates else ""
            raise SettingError(f"all {len(self.candidates)} candidates failed{reason}")
        sign = 1 if self.measure in ERRORS else -1
        return min(scored, key=lambda pair: sign * pair[1])[0]

    @property
    def settings(self) -> Mapping[str, object]:
        """Settings of the best candidate, for ``set_params``."""
        return self.best.settings

    def as_dict(self) -> dict[str, object]:
        """Return the result without the estimator, for ``json.dumps``; objects by `repr`."""
        return {
            "measure": self.measure,
            "interrupted": self.interrupted,
            "best": _plain(self.settings),
            "candidates": [
                {
                    "settings": _plain(one.settings),
                    "mean": None if one.scores is None else one.scores.mean,
                    "standard_error": None if one.scores is None else one.scores.standard_error,
                    "scores": [] if one.scores is None else list(one.scores.values),
                    "error": one.error,
                    "seconds": one.seconds,
                }
                for one in self.candidates
            ],
        }


def _plain(settings: Mapping[str, object]) -> dict[str, object]:
    simple = bool | int | float | str | None
    return {
        name: one if isinstance(one, simple) else repr(one) for name, one in settings.items()
    }


METHODS = ("fit", "predict", "get_params", "set_params")
BUDGETS = ("epsilon", "model__epsilon")  # settings of models that make their own noise


class Learner(Protocol):
    """Estimator of a search: any class with these methods, such as `fedmf.Trainer`."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Method that trains on ratings."""

    def predict(self, users: ArrayLike, items: ArrayLike) -> NDArray[np.float64]:
        """Return r̂ of each pair of a user and an item."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the settings by name."""

    def set_params(self, **params: object) -> Self:
        """Change settings in place, and return the estimator."""


Model = TypeVar("Model", bound=Learner)


def cross_validate(
    model: Learner,
    ratings: Ratings,
    *,
    folds: int = 5,
    seed: int = 0,
    measure: str = "rmse",
    first: int = 10,
    fit_params: Mapping[str, object] | None = None,
    public: bool = False,
) -> Scores:
    """Score a model on each fold of the ratings, after a training on the other folds.

    Every fold is a federated training of a clone; `model` stays unchanged. See `fedmf.search`
    for the cost in privacy.

    Parameters
    ----------
    model : estimator with fit, predict, get_params and set_params
    ratings : training ratings, without the test ratings
    folds : int, number of folds, ≥ 2
    seed : int, seed of the folds, ≥ 0
    measure
        ``"rmse"`` or ``"mae"``, unclipped, or another measure of `fedmf.fcf.Ranking`, such as
        ``"map"``.
    first : int, number of recommended items of a ranking measure, ≥ 1
    fit_params : further arguments of ``fit`` by name, such as features
    public : True if the ratings are public, so that noise may be added in the search

    Raises
    ------
    SettingError
        If `model` is no estimator, an argument is out of range or the measure unknown,
        or noise would be spent. All errors of ``fit`` are raised, too.
    KeyboardInterrupt
        On Ctrl-C, as no score is then complete.
    """
    check_learner(model)
    judge = Judge(measure, first, fit_params or {})
    refuse_noise([model], public)
    return judge.scores(model, random_folds(ratings, folds, seed))


@dataclass(frozen=True)
class Judge:
    """Measure of candidates, and arguments of `fit`; see `cross_validate`."""

    measure: str = "rmse"
    first: int = 10
    fit_params: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(Count, first=self.first)
        if self.measure in ERRORS:
            return
        known = [one.name for one in fields(Ranking) if one.name not in ERRORS]
        if self.measure not in known:
            raise SettingError(
                f"measure = {self.measure!r} must be one of {', '.join([*ERRORS, *known])}"
            )

    def scores(self, model: Learner, parts: Iterable[Split]) -> Scores:
        """Return the score of each part; raises KeyboardInterrupt if a fit was interrupted."""
        return Scores(self.measure, tuple(self._score(model, part) for part in parts))

    def fit(self, model: Model, ratings: Ratings) -> Model:
        """Return a trained clone; raises KeyboardInterrupt if the training was interrupted."""
        learner = clone(model)
        learner.fit(ratings, **self.fit_params)
        # trainings end early on Ctrl-C and keep the finished rounds
        if getattr(getattr(learner, "history_", None), "interrupted", False):
            raise KeyboardInterrupt
        return learner

    def _score(self, model: Learner, part: Split) -> float:
        learner, held = self.fit(model, part.train), part.test
        if self.measure not in ERRORS:
            if not isinstance(learner, Recommender):
                raise SettingError(
                    f"measure = {self.measure!r} needs a recommender of fedmf, not "
                    f"{type(learner).__name__}: take one, or measure 'rmse' or 'mae'"
                )
            found = ranking(learner, held, part.train, self.first)
            return float(getattr(found, self.measure))
        guesses = learner.predict(held.users, held.items)
        if not np.isfinite(guesses).all():
            raise Diverged("predictions are not finite: lower the rate or raise reg")
        return (rmse if self.measure == "rmse" else mae)(held.values, guesses)


def check_learner(model: object) -> None:
    """Raise SettingError unless `model` is an object with the methods of `Learner`."""
    kind = model if isinstance(model, type) else type(model)
    lacking = [name for name in METHODS if not callable(getattr(model, name, None))]
    if not lacking and kind is not model:
        return
    such = "Trainer(FedMF())"
    if kind is model and not lacking:
        such = f"{kind.__name__}()"
    elif issubclass(kind, Settings) and hasattr(kind, "local_steps"):
        such = f"Trainer({kind.__name__}())"
    raise SettingError(f"model = {model!r} must be an estimator: pass an object such as {such}")


def clone(model: Model) -> Model:
    """Return an untrained estimator with the same settings; clone the parts that train, too."""
    parts = model.get_params(deep=False).items()
    return type(model)(
        **{name: clone(one) if isinstance(one, Estimator) else one for name, one in parts}
    )


def refuse_noise(models: Iterable[Learner], public: bool) -> None:
    """Raise SettingError if a model adds noise to sums, unless the ratings are public."""
    if public:
        return
    for model in models:
        for name, value in model.get_params().items():
            if name in BUDGETS and value is not None:
                raise SettingError(
                    f"{name} = {value!r} adds noise, and each training of a search would spend "
                    "its privacy budget again: choose the settings on public ratings, with "
                    "public=True"
                )
