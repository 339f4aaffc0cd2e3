"""Search over a grid of settings: `search`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from time import perf_counter

from fedmf.aggregate import RoundAborted
from fedmf.data import Ratings
from fedmf.data.splits import random_folds, random_split
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.search import scoring
from fedmf.search.scoring import Candidate, Judge, Learner, Model, SearchResult

FAILURES = (SettingError, DataError, ModelError, RoundAborted)
"""Errors that a candidate's settings may cause, such as min_raters above all raters."""

Made = tuple[Mapping[str, object], Learner | None, str | None]


def search(
    model: Model,
    grid: Mapping[str, Sequence[object]],
    ratings: Ratings,
    *,
    validation: float = 0.1,
    folds: int | None = None,
    seed: int = 0,
    measure: str = "rmse",
    first: int = 10,
    refit: bool = False,
    fit_params: Mapping[str, object] | None = None,
    public: bool = False,
    progress: Callable[[Candidate, int, int], None] = lambda candidate, done, of: None,
) -> SearchResult[Model]:
    """Score every combination of settings on the same parts of the training ratings.

    `model` stays unchanged. A candidate has failed if a training raises SettingError, such as
    `Diverged`, DataError or ModelError, or if every sum is aborted. The search then goes on.
    Ctrl-C ends the search early and keeps the finished candidates. See `fedmf.search` for the
    cost in privacy.

    Parameters
    ----------
    model : estimator with fit, predict, get_params and set_params
    grid
        Values of each setting, by the names of ``get_params``: "rounds", or "model__reg" for
        the setting "reg" of a trainer's model.
    ratings : training ratings, without the test ratings
    validation : float, share of the ratings in the validation part, 0 < validation < 1
    folds : int, number of folds, ≥ 2, in place of a validation part; None for the part
    seed : int, seed of the part or the folds, ≥ 0
    measure, first, fit_params, public : see `cross_validate`
    refit : True to train the best candidate on all ratings at the end
    progress : function of a finished candidate, and the numbers of finished and all candidates

    Raises
    ------
    SettingError
        If `model` is no estimator, an argument is out of range, or a setting or the measure
        is unknown. Also if noise would be spent, or every candidate failed.
    KeyboardInterrupt
        On Ctrl-C before any candidate has a score.
    """
    scoring.check_learner(model)
    if not isinstance(grid, Mapping):
        raise SettingError(
            f'grid = {grid!r} must be settings and lists, such as {{"rounds": [20, 40]}}'
        )
    judge = Judge(measure, first, fit_params or {})
    candidates = _candidates(model, grid)
    scoring.refuse_noise([one for _, one, _ in candidates if one is not None], public)
    if folds is None:
        parts = [random_split(ratings, validation, seed)]
    else:
        parts = random_folds(ratings, folds, seed)
    done: tuple[Candidate, ...] = ()
    interrupted = False
    try:
        for settings, learner, failure in candidates:
            start, scores, message = perf_counter(), None, failure
            try:
                scores = None if learner is None else judge.scores(learner, parts)
            except FAILURES as error:  # that the settings cause, and so kept
                message = str(error)
            done = (*done, Candidate(settings, scores, message, perf_counter() - start))
            progress(done[-1], len(done), len(candidates))
    except KeyboardInterrupt:
        interrupted = True
        if all(one.scores is None for one in done):
            raise
    result: SearchResult[Model] = SearchResult(measure, done, None, interrupted)
    best = result.best  # raises if all failed
    if not refit or interrupted:
        return result
    try:
        trained = judge.fit(scoring.clone(model).set_params(**best.settings), ratings)
    except KeyboardInterrupt:
        return SearchResult(measure, done, None, interrupted=True)
    return SearchResult(measure, done, trained)


def _candidates(model: Learner, grid: Mapping[str, Sequence[object]]) -> list[Made]:
    """Return the settings of each candidate, with the estimator or with an error's message."""
    known = model.get_params()
    for name, values in grid.items():
        if name not in known and name.partition("__")[0] not in grid:
            raise SettingError(
                f"{name!r} is no setting of {type(model).__name__}: choose from "
                f"{', '.join(known)}"
            )
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise SettingError(f"grid: {name} = {values!r} must be a list, such as [.05, .1]")
    made: list[Made] = []
    for values in product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        try:
            made.append((settings, scoring.clone(model).set_params(**settings), None))
        except SettingError as error:
            made.append((settings, None, str(error)))
    return made
