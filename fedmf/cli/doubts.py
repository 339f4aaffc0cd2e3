"""Warnings of ``fedmf train`` about a trained model of no use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedmf.data import Ratings


def doubts(result: Mapping[str, Any], train: Ratings, *, ranks: bool) -> Iterator[str]:
    """Yield reasons why a model may be of no use, such as an error not below the baseline's.

    Figures are compared in the digits that are shown.

    Parameters
    ----------
    result : measures, as in the "result" of `fedmf.cli.report.document`
    train : training part
    ranks : True if the model ranks items, and predicts no rating
    """
    if np.bincount(train.items, minlength=1).max() < 2:
        yield (
            f"no item of {train.name} has two raters in the training part, so no user's rating "
            "tells of another's: train on ratings that share items"
        )
    if ranks and "ranking" in result:
        own, other = (result[name]["precision"] for name in ("ranking", "popularity"))
        if round(own, 4) <= round(other, 4):
            yield (
                f"the precision {own:.4f} is not above {other:.4f} by popularity: recommend "
                "popular items, or train on more ratings or with other settings"
            )
    elif not ranks and "mean_rmse" in result:
        own, other = result.get("head_rmse", result["rmse"]), result["mean_rmse"]
        if own is not None and not round(own, 4) < round(other, 4):
            yield (
                f"the test RMSE {own:.4f} is not below {other:.4f} of the mean rating: train "
                "on more ratings, for more rounds or with other settings"
            )
