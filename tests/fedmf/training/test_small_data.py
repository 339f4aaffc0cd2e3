"""Trainings on too few users, or without an item of enough raters, raise errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedmf import (
    DataError,
    DPEase,
    FedALS,
    FedBPMF,
    FedMF,
    FedMMF,
    MeanMask,
    OneShotSum,
    PlainSum,
    Ratings,
    SecAggSum,
    SettingError,
    Trainer,
    from_triples,
)
from fedmf.fcf import FCF, FederatedCF, Implicit, views

FINE = {"clip": 4096.0, "fractional_bits": 32}
TRAININGS: dict[str, Callable[[], Any]] = {
    "fedmf": lambda: Trainer(FedMF(k=2), rounds=2),
    "fedmf, secret sharing": lambda: Trainer(FedMF(k=2), SecAggSum(), rounds=2),
    "fedmf, helpers": lambda: Trainer(FedMF(k=2), OneShotSum(), rounds=2),
    "fedmf, a cohort of all": lambda: Trainer(FedMF(k=2), rounds=2, cohort=1.0),
    "fedmf, a cohort": lambda: Trainer(FedMF(k=2), rounds=2, cohort=3),
    "fedmf, dropouts": lambda: Trainer(FedMF(k=2), rounds=2, dropout=0.2),
    "fedals": lambda: Trainer(FedALS(k=2), PlainSum(clip=64.0), rounds=2),
    "fedbpmf": lambda: FedBPMF(k=2, rounds=2, burn_in=1),
    "fedmmf": lambda: FedMMF(MeanMask(), Trainer(FedMF(k=2), rounds=2)),
    "fcf": lambda: FCF(Implicit(k=2), rounds=1),
    "federated cf": lambda: FederatedCF(Implicit(k=2), PlainSum(**FINE), rounds=1),
    "federated cf, helpers": lambda: FederatedCF(Implicit(k=2), OneShotSum(**FINE), rounds=1),
    "dpease": lambda: DPEase(PlainSum(clip=64.0)),
}


def fit(name: str, ratings: Ratings) -> Any:
    made = TRAININGS[name]()
    ranks = isinstance(made, FCF | FederatedCF | DPEase)
    return made.fit(views(ratings) if ranks else ratings)


def apart(n_users: int, each: int) -> Ratings:
    """Return ratings in which each item has one rater."""
    users = np.repeat(np.arange(n_users), each)
    values = np.arange(users.size) % 5 + 1
    return from_triples(users, np.arange(users.size), values, scale=(1, 5))


@pytest.mark.parametrize("n_users", [1, 2])
@pytest.mark.parametrize("name", TRAININGS)
def test_too_few_users_are_named(name: str, n_users: int) -> None:
    with pytest.raises(SettingError) as caught:
        fit(name, apart(n_users, 4))
    assert f"{n_users} user" in str(caught.value)
    assert "cohort" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in TRAININGS if name != "dpease"])
def test_no_item_with_enough_raters_raises(name: str) -> None:
    with pytest.raises(DataError, match="min_raters"):
        fit(name, apart(12, 2))


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 9), st.integers(1, 3), st.integers(1, 9), st.booleans())
def test_a_model_has_a_trained_item_or_none_is_returned(
    n_users: int, each: int, min_raters: int, shared: bool
) -> None:
    ratings = apart(n_users, each)
    if shared:
        items = np.tile(np.arange(each), n_users)
        ratings = from_triples(
            np.repeat(np.arange(n_users), each), items, ratings.values, scale=(1, 5)
        )
    trainer = Trainer(FedMF(k=1, min_raters=min_raters), rounds=1)
    if max(np.bincount(ratings.items)) >= min_raters:
        assert trainer.fit(ratings).history_.last.trained_items != 0
    else:
        with pytest.raises(DataError):
            trainer.fit(ratings)
        assert not hasattr(trainer, "model_")
