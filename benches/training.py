"""A round of training in the clear, its steps compiled, against the numpy twins of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from unittest.mock import patch

import numpy as np

from benches.ratio import Row, compare
from fedmf import FedALS, FederatedModel, FedMF, PlainSum, Trainer, _fast
from fedmf._fast import reference
from fedmf.data import Ratings
from fedmf.data.sets.simulated import simulate

__all__ = ["MODELS", "ROWS", "TWINS", "plain_round"]

TWINS = {name: getattr(reference, name) for name in reference.__all__}
MODELS: dict[str, FederatedModel] = {
    "FedMF, gradient steps": FedMF(update="paper", rate=0.001),
    "FedMF, exact local solves": FedMF(),
    "FedALS": FedALS(),
}


def training() -> Iterable[Row]:
    """Measure one round with MovieLens 100K's numbers of users, items and ratings."""
    ratings = simulate(943, 1682, 100_000)
    for name, model in MODELS.items():
        yield compare(
            f"a plain round, {name}, 100,000 ratings",
            partial(plain_round, model, ratings),
            partial(plain_round, model, ratings, TWINS),
            "numpy",
            repeats=5,
        )


def plain_round(
    model: FederatedModel,
    ratings: Ratings,
    kernels: dict[str, Callable[..., object]] | None = None,
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Train one round, the count of raters and the training error included; return Q."""
    with patch.dict(vars(_fast), kernels or {}):
        return Trainer(model, PlainSum(), rounds=1).fit(ratings).factors_.item_factors


ROWS: list[Callable[[], Iterable[Row]]] = [training]
