"""Trainings on too few users, or without an item of enough raters, raise errors."""

from __future__ import annotations

import numpy as np
import pytest

import fedmf
from estimators import ESTIMATORS, fit

TRAININGS = [name for name in ESTIMATORS if name not in ("cf", "fedlr")]


def apart(n_users: int, each: int) -> fedmf.Ratings:
    """Return ratings in which each item has one rater."""
    users = np.repeat(np.arange(n_users), each)
    values = np.arange(users.size) % 5 + 1
    return fedmf.from_triples(users, np.arange(users.size), values, scale=(1, 5))


@pytest.mark.parametrize("n_users", [1, 2])
@pytest.mark.parametrize("name", TRAININGS)
def test_too_few_users_are_named(name: str, n_users: int) -> None:
    with pytest.raises(fedmf.SettingError) as caught:
        fit(ESTIMATORS[name](), apart(n_users, 4))
    assert f"{n_users} user" in str(caught.value)
    assert "cohort" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in TRAININGS if not name.startswith("dp")])
def test_no_item_with_enough_raters_raises(name: str) -> None:
    estimator = ESTIMATORS[name]()
    if name == "fedbpmf":  # items share rows, of twelve raters at most
        estimator.set_params(min_raters=13)
    with pytest.raises(fedmf.DataError, match="min_raters"):
        fit(estimator, apart(12, 2))
