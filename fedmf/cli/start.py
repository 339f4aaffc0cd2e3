"""Start of ``fedmf train --start``: the earlier model, the settings, and known ratings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.bayes import Posterior
from fedmf.cli.choices import SplitName
from fedmf.cli.manners import option_name
from fedmf.cli.models import KINDS, Saved, load_model
from fedmf.cli.ranker import FILE
from fedmf.cli.recorded import HISTORY, recorded
from fedmf.data import Ratings
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.models.warm import matched

OF_MODEL = ("k", "reg", "rate", "min_raters")
OF_TRAINING = ("split", "seed", "cohort", "dropout")
USUAL = (None, SplitName.RANDOM, 0)  # values of `OF_TRAINING` that the message leaves out


def continued(path: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the given options, with the settings of the start for all others, and a message.

    The message has the settings taken from the start, and the settings that differ. A start of
    another model gives no preset, reg and rate.

    Parameters
    ----------
    path : file or folder of the start
    given
        Options by name, without options that were not given: model, preset, k, reg, rate,
        min_raters, split, seed, cohort and dropout.
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
        takes -= {"preset", "reg", "rate"}
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
        or found.get("split") not in [*SplitName]
        or not isinstance(hyper, dict)
        or not isinstance(options, dict)
    ):
        return {}
    found = found | hyper | options
    names = ("model", "preset", *OF_MODEL, *OF_TRAINING)
    known = {name: found[name] for name in names if found.get(name) is not None}
    return known | {"split": SplitName(found["split"])}


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
