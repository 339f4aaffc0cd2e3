"""Start of ``fedmf train --start``: the earlier model, and the warning of what it loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.bayes import Posterior
from fedmf.cli.models import Saved, load_model
from fedmf.cli.ranker import FILE
from fedmf.data import Ratings
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.models.warm import matched


def load_start(path: Path, model: str) -> Saved:
    """Return the model in a file or a folder, from which a training of `model` continues.

    Raises ModelError as `load_model` does, and for a `Posterior` unless `model` is fedbpmf.
    """
    start = load_model(path)
    if isinstance(start, Posterior) and model != "fedbpmf":
        raise ModelError(
            f"--start {path} is a model of fedbpmf, and --model {model} cannot continue it: "
            f"choose --model fedbpmf, or a file of the same model such as {FILE} for implicit"
        )
    return start


def forgotten(start: Saved, ratings: Ratings) -> str | None:
    """Return a warning if `start` knows users, or ratings of users, that `ratings` lacks."""
    if not isinstance(start, Factors | Posterior):
        return None
    users = _places(start.user_ids, ratings.user_ids)
    items = _places(start.item_ids, ratings.item_ids)
    who, what = np.repeat(users, np.diff(start.seen_indptr)), items[start.seen_items]
    now = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    kept = np.isin(who * ratings.n_items + what, now * ratings.n_items + ratings.items)
    kept &= (who >= 0) & (what >= 0)
    lost = int((~kept).sum())
    if not lost:
        return None
    gone = int((users < 0).sum())
    return (
        f"{ratings.name} lacks {lost:,} of {kept.size:,} ratings of the start, and {gone:,} of "
        f"its {start.n_users:,} users, which the new model does not know: train on all "
        "ratings, the old and the new"
    )


def _places(ids: Ids, known: Ids) -> NDArray[np.int64]:
    """Return the place of each id among the known ones, −1 for those that are not there."""
    places = np.full(ids.size, -1)
    mine, theirs = matched(ids, known)
    places[mine] = theirs
    return places
