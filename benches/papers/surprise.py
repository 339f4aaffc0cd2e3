"""The SVD of the library Surprise, where it is installed: what our own is held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Split
from fedmf.errors import MissingExtra

__all__ = ["surprise_svd"]


def surprise_svd(split: Split, epochs: int, seed: int) -> NDArray[np.float64]:
    """Train Surprise's SVD on the training part; predict the test part, clipped to the scale.

    All settings but the epochs are the library's own: 100 factors, γ .005, λ .02, biased.

    Raises
    ------
    MissingExtra
        If scikit-surprise is not installed.
    """
    try:
        from surprise import SVD, Trainset
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "this row needs the package scikit-surprise, which is not installed"
        ) from error
    train, test = split.train, split.test
    rows: dict[int, list[tuple[int, float]]] = {}
    columns: dict[int, list[tuple[int, float]]] = {}
    for user, item, value in zip(
        train.users.tolist(), train.items.tolist(), train.values.tolist(), strict=True
    ):
        rows.setdefault(user, []).append((item, value))
        columns.setdefault(item, []).append((user, value))
    known = Trainset(
        rows,
        columns,
        train.n_users,
        train.n_items,
        train.n_ratings,
        train.scale,
        {user: user for user in rows},  # our numbers are its inner ones; others are unknown
        {item: item for item in columns},
    )
    model = SVD(n_epochs=epochs, random_state=seed).fit(known)
    pairs = zip(test.users.tolist(), test.items.tolist(), strict=True)
    return np.array([model.predict(user, item).est for user, item in pairs])
