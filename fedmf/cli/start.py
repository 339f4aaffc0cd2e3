"""Start of ``fedmf train --start``: the earlier model, the settings, a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from fedmf.bayes import Posterior
from fedmf.cli.choices import SplitName
from fedmf.cli.manners import option_name
from fedmf.cli.models import KINDS, Saved, load_model, ranked
from fedmf.cli.ranker import FILE
from fedmf.data import Ratings, Split
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.models.recommender import Recommender
from fedmf.models.warm import matched, warm
from fedmf.training import rmse

HISTORY = "history.json"
OF_MODEL = ("k", "reg", "rate", "min_raters")
OF_TRAINING = ("split", "seed", "cohort", "dropout")
NOT_COMPARED = (
    "not compared with the start, which has seen all test ratings that it can predict"
)
USUAL = (None, "random", 0)  # values of `OF_TRAINING` that the message leaves out


def continued(path: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the given options, with the settings of the start for all others, and a message.

    The message has the settings taken from the start, and the settings that differ. A start of
    another model gives no reg and rate.

    Parameters
    ----------
    path : file or folder of the start
    given
        Options by name, without options that were not given: model, k, reg, rate, min_raters,
        split, seed, cohort and dropout.
    """
    file = path / "model.fedmf" if path.is_dir() else path
    earlier = _settings(file)
    if not earlier:
        return dict(given), (
            f"the settings of {path} are not in {file.with_name(HISTORY)}: those not given are "
            "the usual"
        )
    model = given.get("model", earlier["model"])
    takes = {"model", "split", "seed", "dropout", *KINDS[model].takes}
    if model != earlier["model"]:
        takes -= {"reg", "rate"}
    same = {name: one for name, one in earlier.items() if name in takes}
    differ = [
        f"{option_name(name)} {given[name]} for {earlier[name]}"
        for name in earlier
        if name in given and given[name] != earlier[name]
    ]
    kept = [
        f"{option_name(name)} {one}"
        for name, one in same.items()
        if name not in given and not (name in OF_TRAINING and one in USUAL)
    ]
    said = f"as in {path}: {', '.join(kept) or 'nothing more'}"
    other = f"; given instead: {', '.join(differ)}" if differ else ""
    return same | dict(given), said + other


def _settings(file: Path) -> dict[str, Any]:
    """Return the options of the training that made a file; empty for unknown options."""
    found = recorded(file)
    hyper = found.get("hyper_parameters")
    options = found.get("options", {})
    # history.json has the settings of model.fedmf, not of the model that ranks
    if (
        file.name == FILE
        or found.get("model") not in [*KINDS]
        or found.get("split") not in get_args(SplitName)
        or not isinstance(hyper, dict)
        or not isinstance(options, dict)
    ):
        return {}
    found = found | hyper | options
    names = ("model", *OF_MODEL, *OF_TRAINING)
    return {name: found[name] for name in names if found.get(name) is not None}


def load_start(path: Path, model: str) -> Saved:
    """Return the model in a file or a folder that a training of `model` continues.

    Raises ModelError as `load_model` does, and for a `Posterior` unless `model` is fedbpmf.
    """
    start = load_model(path)
    if isinstance(start, Posterior) and model != "fedbpmf":
        raise ModelError(
            f"--start {path} is a model of fedbpmf, and --model {model} cannot continue it: "
            f"choose --model fedbpmf, or a file of the same model such as {FILE} for implicit"
        )
    return start


def is_of(start: Path, out: Path) -> bool:
    """Return True if a start is the folder `out`, or a model in this folder."""
    return (start if start.is_dir() else start.parent).resolve() == out.resolve()


def forgotten(start: Saved, ratings: Ratings) -> str | None:
    """Return a warning if `start` knows users, or ratings of users, that `ratings` lacks."""
    if not isinstance(start, Factors | Posterior):
        return None
    known = seen(start, ratings)
    lost = int((~np.isin(known, numbered(ratings))).sum())
    if not lost:
        return None
    gone = int((places(start.user_ids, ratings.user_ids) < 0).sum())
    return (
        f"{ratings.name} lacks {lost:,} of {known.size:,} ratings of the start, and {gone:,} "
        f"of its {start.n_users:,} users, which the new model does not know: train on all "
        "ratings, the old and the new"
    )


def seen(start: Factors | Posterior, ratings: Ratings) -> NDArray[np.int64]:
    """Return the numbers of a start's ratings; −1 if `ratings` lacks the user or the item.

    See `numbered`.
    """
    users = places(start.user_ids, ratings.user_ids)
    items = places(start.item_ids, ratings.item_ids)
    who, what = np.repeat(users, np.diff(start.seen_indptr)), items[start.seen_items]
    return np.where((who < 0) | (what < 0), -1, who * ratings.n_items + what)


def numbered(ratings: Ratings) -> NDArray[np.int64]:
    """Return user · n_items + item for each rating."""
    return np.asarray(ratings.users * np.int64(ratings.n_items) + ratings.items)


def places(ids: Ids, known: Ids) -> NDArray[np.int64]:
    """Return the place of each id among the known ids, −1 for an unknown id."""
    found = np.full(ids.size, -1)
    mine, theirs = matched(ids, known)
    found[mine] = theirs
    return found


class Compared(NamedTuple):
    """Measure of a start and of the trained model, on the same `ratings` test ratings.

    `measure` is "RMSE", or "precision" for models that rank.
    """

    measure: str
    start: float
    now: float
    ratings: int

    @property
    def worse(self) -> bool:
        """True if the model is worse than the start in the digits that are shown."""
        start, now = round(self.start, 4), round(self.now, 4)
        return now < start if self.measure == "precision" else now > start

    def __str__(self) -> str:
        return (
            f"started from {self.measure} {self.start:.4f}, now {self.now:.4f}, on the "
            f"{self.ratings:,} test ratings that the start has not seen"
        )


def compared(
    start: Saved, fitted: Recommender, ratings: Ratings, parts: Split
) -> Compared | None:
    """Compare a model with the start; None if the start has seen all predictable ratings.

    A test rating counts if the start knows the user and the item, and was not trained on the
    rating. The start predicts the other ratings too well, or not at all.

    Parameters
    ----------
    start, fitted : model before and model after the training
    ratings, parts : all ratings, and the training and test part
    """
    if not isinstance(start, Factors | Posterior):
        return None
    users = places(ratings.user_ids, start.user_ids)
    items = places(ratings.item_ids, start.item_ids)
    test = numbered(parts.test)
    fair = (users[parts.test.users] >= 0) & (items[parts.test.items] >= 0)
    fair &= ~np.isin(test, seen(start, ratings))
    rest = parts.test.take(fair)
    if not rest.n_ratings:
        return None
    if isinstance(start, Factors) and start.ranks:
        hidden = ratings.take(~np.isin(numbered(ratings), test[fair]))
        p, q = (np.zeros((number, start.k)) for number in (ratings.n_users, ratings.n_items))
        known = warm(p, q, start, ratings, ranks=True)  # new rows score 0
        models = (Factors.of(*known, ratings, ranks=True), fitted)
        before, now = (ranked(one, Split(hidden, rest))["precision"] for one in models)
        return Compared("precision", before, now, rest.n_ratings)
    guesses = start.predict(users[rest.users], items[rest.items])
    now = rmse(rest.values, fitted.predict(rest.users, rest.items))
    return Compared("RMSE", rmse(rest.values, guesses), now, rest.n_ratings)


def recorded(model: Path) -> dict[str, Any]:
    """Return the settings in history.json beside a model file; empty without settings."""
    try:
        found = json.loads(model.with_name(HISTORY).read_bytes())["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def recorded_text(model: Path, name: str) -> str | None:
    """Return a setting that is a text; None for a missing setting or another type."""
    found = recorded(model).get(name)
    return found if isinstance(found, str) else None
