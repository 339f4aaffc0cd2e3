"""Components of jobs and sites take a bool for a flag, an int for a count, and no other."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from secagg import Identity, ParameterError
from secagg.flare import OneShotFedAvg, SecAggFedAvg, SitePolicy
from secagg.oneshot.suites import SECRET_BYTES, BoxKey
from wrong_values import AMOUNTS, COUNTS, FLAGS, IN_JSON

KINDS: dict[str, list[Any]] = {"flags": FLAGS, "counts": COUNTS, "amounts": AMOUNTS}
SITE = [
    ("require_active", "flags"),
    ("min_clients", "counts"),
    ("min_threshold", "counts"),
    ("fractional_bits", "counts"),
    ("corrupt", "amounts"),
]
JOB = [
    ("fractional_bits", "counts"),
    ("max_weight", "counts"),
    ("threshold", "counts"),
    ("clip", "amounts"),
    ("train_timeout", "amounts"),
]


@pytest.fixture(scope="module")
def helpers() -> list[dict[str, str]]:
    """Helpers as a job's configuration lists them."""
    boxes = [BoxKey("x25519", os.urandom(SECRET_BYTES["x25519"])) for _ in range(3)]
    return [
        {
            "url": "https://host:8444",
            "suite": "x25519",
            "hpke": box.public.hex(),
            "ed25519": Identity.generate().public.hex(),
        }
        for box in boxes
    ]


@pytest.mark.parametrize("more", [{}, {"clip": 8.0}, {"identity": "site.pem"}], ids=str)
@pytest.mark.parametrize(("name", "kind"), SITE)
def test_policy_of_a_site_is_strict(name: str, kind: str, more: dict[str, Any]) -> None:
    for value in KINDS[kind]:
        with pytest.raises(ParameterError):
            SitePolicy(**more, **{name: value})


@pytest.mark.parametrize(("name", "kind"), SITE)
def test_policy_of_a_file_is_strict(name: str, kind: str) -> None:
    """The operator's privacy.json."""
    for text in IN_JSON[kind]:
        with pytest.raises(ParameterError):
            SitePolicy(**json.loads(f'{{"{name}": {text}}}'))


@pytest.mark.parametrize("value", COUNTS, ids=repr)
def test_largest_weight_of_a_site_is_strict(value: Any) -> None:
    with pytest.raises(ParameterError):
        SitePolicy(clip=8.0, max_weight=value)


@pytest.mark.parametrize(("name", "kind"), [*JOB, ("exchange_timeout", "amounts")])
def test_controller_of_rounds_is_strict(name: str, kind: str) -> None:
    for value in KINDS[kind]:
        with pytest.raises(ParameterError):
            SecAggFedAvg(**{"clip": 8.0, "num_clients": 5, name: value})


@pytest.mark.parametrize(
    ("name", "kind"), [*JOB, ("helper_timeout", "amounts"), ("min_clients", "counts")]
)
def test_controller_of_one_shot_sums_is_strict(
    name: str, kind: str, helpers: list[Any]
) -> None:
    for value in KINDS[kind]:
        with pytest.raises(ParameterError):
            OneShotFedAvg(
                **{
                    "clip": 8.0,
                    "num_clients": 5,
                    "helpers": helpers,
                    "identity": "a",
                    name: value,
                }
            )
