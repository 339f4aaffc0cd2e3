"""Results of a search: scores of a model, candidates, and the table of all candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Generic, TypeVar

from fedmf.errors import SettingError

Model = TypeVar("Model")

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
class SearchResult(Generic[Model]):
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
    estimator: Model | None = field(default=None, repr=False)
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
