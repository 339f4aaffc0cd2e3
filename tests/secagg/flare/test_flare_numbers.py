"""Components of jobs and sites take a bool for a flag, an int for a count, and no other."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest

from secagg import Identity, ParameterError
from secagg.flare import OneShotFedAvg, SecAggFedAvg, SitePolicy
from secagg.oneshot.suites import SECRET_BYTES, BoxKey
from wrong_values import AMOUNTS, COUNTS, FLAGS

SITE = {"require_active": FLAGS, "min_clients": COUNTS, "min_threshold": COUNTS}
SITE |= {"fractional_bits": COUNTS, "corrupt": AMOUNTS}
JOB = {"fractional_bits": COUNTS, "max_weight": COUNTS, "threshold": COUNTS}
JOB |= {"clip": AMOUNTS, "train_timeout": AMOUNTS}


def entry() -> dict[str, str]:
    """Return a helper as a job's configuration lists it."""
    box = BoxKey("x25519", os.urandom(SECRET_BYTES["x25519"])).public.hex()
    key = Identity.generate().public.hex()
    return {"url": "https://host:8444", "suite": "x25519", "hpke": box, "ed25519": key}


GOOD = {"clip": 8.0, "num_clients": 5}
HELPERS = {"helpers": [entry() for _ in range(3)], "identity": "a"}
DOORS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "site": (SitePolicy, SITE),
    "site with bounds": (partial(SitePolicy, clip=8.0), {"max_weight": COUNTS}),
    "rounds": (partial(SecAggFedAvg, **GOOD), JOB | {"exchange_timeout": AMOUNTS}),
    "one-shot sums": (
        partial(OneShotFedAvg, **GOOD, **HELPERS),
        JOB | {"helper_timeout": AMOUNTS, "min_clients": COUNTS},
    ),
}


@pytest.mark.parametrize(
    ("door", "name"), [(door, name) for door, (_, names) in DOORS.items() for name in names]
)
def test_arguments_are_strict(door, name):
    make, wrong = DOORS[door]
    for value in wrong[name]:
        with pytest.raises(ParameterError):
            make(**{name: value})
