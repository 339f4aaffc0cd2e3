"""Trainings on too few users, or without an item of enough raters, raise errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fedmf
from fedmf.fcf import FCF, FederatedCF, Implicit, views

FINE = {"clip": 4096.0, "fractional_bits": 32}
TRAININGS: dict[str, Callable[[], Any]] = {
    "fedmf": lambda: fedmf.Trainer(fedmf.FedMF(k=2), rounds=2),
    "fedmf, helpers": lambda: fedmf.Trainer(fedmf.FedMF(k=2), fedmf.OneShotSum(), rounds=2),
    "fedmf, a cohort": lambda: fedmf.Trainer(fedmf.FedMF(k=2), rounds=2, cohort=3),
    "fedals": lambda: fedmf.Trainer(fedmf.FedALS(k=2), fedmf.PlainSum(clip=64.0), rounds=2),
    "fedbpmf": lambda: fedmf.FedBPMF(k=2, rounds=2, burn_in=1),
    "fedmmf": lambda: fedmf.FedMMF(fedmf.MeanMask(), fedmf.Trainer(fedmf.FedMF(k=2), rounds=2)),
    "fcf": lambda: FCF(Implicit(k=2), rounds=1),
    "federated cf": lambda: FederatedCF(Implicit(k=2), fedmf.PlainSum(**FINE), rounds=1),
    "dpease": lambda: fedmf.DPEase(fedmf.PlainSum(clip=64.0)),
}


def fit(name: str, ratings: fedmf.Ratings) -> Any:
    made = TRAININGS[name]()
    ranks = isinstance(made, FCF | FederatedCF | fedmf.DPEase)
    return made.fit(views(ratings) if ranks else ratings)


def apart(n_users: int, each: int) -> fedmf.Ratings:
    """Return ratings in which each item has one rater."""
    users = np.repeat(np.arange(n_users), each)
    values = np.arange(users.size) % 5 + 1
    return fedmf.from_triples(users, np.arange(users.size), values, scale=(1, 5))


@pytest.mark.parametrize("n_users", [1, 2])
@pytest.mark.parametrize("name", TRAININGS)
def test_too_few_users_are_named(name: str, n_users: int) -> None:
    with pytest.raises(fedmf.SettingError) as caught:
        fit(name, apart(n_users, 4))
    assert f"{n_users} user" in str(caught.value)
    assert "cohort" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in TRAININGS if name != "dpease"])
def test_no_item_with_enough_raters_raises(name: str) -> None:
    with pytest.raises(fedmf.DataError, match="min_raters"):
        fit(name, apart(12, 2))
