"""Policies, parameters and limits take a bool for a flag, an int for a count, and no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest

from paillier_keys import keypair
from secagg import (
    Bounds,
    ClientPolicy,
    CohortLedger,
    FixedPoint,
    Identity,
    Integers,
    ParameterError,
    RoundParams,
)
from secagg.http import Limits
from secagg.http.address import check_host, check_url
from secagg.oneshot import Noise, OneShotParams, OneShotPolicy
from secagg.oneshot.suites import SECRET_BYTES, BoxKey
from secagg.paillier import Packing, PrivateKey, PublicKey
from secagg.session import Deadlines
from wrong_values import AMOUNTS, COUNTS, FLAGS

KEY = keypair()


@dataclass(frozen=True)
class Door:
    """Constructor or function, good arguments, and the names of flags, counts and amounts."""

    make: Callable[..., object]
    good: dict[str, object]
    flags: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()


@cache
def helpers() -> tuple[tuple[bytes, bytes], ...]:
    secrets = [os.urandom(SECRET_BYTES["x25519"]) for _ in range(3)]
    return tuple((BoxKey("x25519", one).public, Identity.generate().public) for one in secrets)


ROUND: dict[str, object] = {
    "n_clients": 5,
    "threshold": 4,
    "length": 3,
    "encoding": Integers(9),
}
ONE_SHOT: dict[str, object] = {
    "n_clients": 5,
    "threshold": 2,
    "min_clients": 3,
    "length": 3,
    "encoding": Integers(9),
    "helpers": helpers(),
    "suite": "x25519",
    "security": "semi-honest",
}


def metric(bound: object) -> Bounds:
    return Bounds(Integers(9), metrics={"loss": bound})  # type: ignore[dict-item]


DOORS = {
    "ClientPolicy": Door(
        ClientPolicy,
        {},
        flags=("allow_two_clients", "require_active", "require_hybrid"),
        counts=("min_clients", "min_threshold", "max_length", "sigma"),
        optional=("min_cohort", "colluders"),
        amounts=("corrupt", "dropout"),
    ),
    "OneShotPolicy": Door(
        OneShotPolicy,
        {},
        flags=("require_active", "require_hybrid"),
        counts=("min_clients", "min_threshold", "max_length", "max_clients"),
        optional=("colluders",),
        amounts=("corrupt",),
    ),
    "RoundParams": Door(
        RoundParams,
        ROUND,
        flags=("allow_two_clients", "count_clipped"),
        counts=("n_clients", "threshold", "length"),
        optional=("max_weight", "neighbours", "modulus_bits", "modulus"),
    ),
    "RoundParams.suggest": Door(
        RoundParams.suggest,
        {"n": 5, "length": 3, "encoding": Integers(9)},
        flags=("count_clipped",),
        counts=("n", "length"),
        optional=("max_weight", "neighbours", "modulus_bits", "threshold"),
        amounts=("corrupt", "dropout"),
    ),
    "OneShotParams": Door(
        OneShotParams,
        ONE_SHOT,
        counts=("n_clients", "threshold", "min_clients", "length"),
        optional=("max_weight", "modulus_bits", "modulus"),
    ),
    "OneShotParams.suggest": Door(
        OneShotParams.suggest,
        {
            "n": 5,
            "length": 3,
            "encoding": Integers(9),
            "helpers": helpers(),
            "security": "semi-honest",
        },
        counts=("n", "length"),
        optional=("max_weight", "modulus_bits", "threshold", "min_clients"),
        amounts=("corrupt", "dropout"),
    ),
    "Noise": Door(Noise, {"sigma": 3}, amounts=("sigma",)),
    "Bounds": Door(Bounds, {"encoding": Integers(9)}, optional=("max_weight",)),
    "Bounds of a metric": Door(metric, {"bound": 1.0}, amounts=("bound",)),
    "Packing": Door(
        Packing,
        {"encoding": Integers(9), "length": 3, "summands": 5},
        counts=("length", "summands"),
        optional=("max_weight",),
    ),
    "FixedPoint": Door(
        FixedPoint, {"clip": 8.0}, counts=("fractional_bits",), amounts=("clip",)
    ),
    "Integers": Door(Integers, {"max": 9}, counts=("max",)),
    "CohortLedger": Door(CohortLedger, {"min_difference": 9}, counts=("min_difference",)),
    "Deadlines": Door(
        Deadlines,
        {},
        amounts=("gather", "keys", "shares", "input", "unmask", "reports"),
    ),
    "Limits": Door(
        Limits,
        {},
        counts=("bytes_in_flight", "polls"),
        amounts=("poll_seconds", "body_seconds"),
    ),
    "URL": Door(
        check_url,
        {"url": "https://host", "allow_plain_http": False},
        flags=("allow_plain_http",),
    ),
    "host": Door(
        check_host,
        {"host": "0.0.0.0", "encrypted": True, "allow_plain_http": False},  # noqa: S104
        flags=("allow_plain_http",),
    ),
    "PublicKey": Door(
        PublicKey,
        {"n": KEY.public_key.n, "allow_insecure": True},
        flags=("allow_insecure", "allow_short_exponent"),
        counts=("n",),
        optional=("h", "exponent_bits"),
    ),
    "PrivateKey": Door(
        PrivateKey,
        {"p": KEY.primes[0], "q": KEY.primes[1], "allow_insecure": True},
        flags=("allow_insecure",),
        counts=("p", "q"),
        optional=("h", "exponent_bits"),
    ),
}


@pytest.mark.parametrize("name", DOORS)
def test_good_arguments_are_taken(name: str) -> None:
    DOORS[name].make(**DOORS[name].good)


def refused(door: Door, argument: str, value: object) -> None:
    with pytest.raises(ParameterError):
        door.make(**{**door.good, argument: value})


def arguments(*kinds: str) -> list[tuple[str, str]]:
    return [
        (name, one)
        for name, door in DOORS.items()
        for kind in kinds
        for one in getattr(door, kind)
    ]


@pytest.mark.parametrize("value", FLAGS, ids=repr)
@pytest.mark.parametrize(("name", "argument"), arguments("flags"))
def test_flag_is_a_bool(name: str, argument: str, value: object) -> None:
    refused(DOORS[name], argument, value)


@pytest.mark.parametrize("value", COUNTS, ids=repr)
@pytest.mark.parametrize(("name", "argument"), arguments("counts", "optional"))
def test_count_is_an_int(name: str, argument: str, value: object) -> None:
    refused(DOORS[name], argument, value)


@pytest.mark.parametrize(("name", "argument"), arguments("counts"))
def test_count_is_there(name: str, argument: str) -> None:
    refused(DOORS[name], argument, None)


@pytest.mark.parametrize("value", AMOUNTS, ids=repr)
@pytest.mark.parametrize(("name", "argument"), arguments("amounts"))
def test_amount_is_a_number(name: str, argument: str, value: object) -> None:
    refused(DOORS[name], argument, value)


NUMPY = (np.int8, np.int16, np.uint8, np.uint16, np.int32, np.uint32, np.int64, np.uint64)


@pytest.mark.parametrize("kind", NUMPY)
@pytest.mark.parametrize("name", ["ClientPolicy", "OneShotPolicy"])
def test_numbers_of_numpy_become_ints(name: str, kind: type[np.integer]) -> None:
    """A sum of numpy's would wrap: 127 + 2 is below every number of clients."""
    door = DOORS[name]
    for argument in (*door.counts, *door.optional):
        value = kind(16 if argument == "min_threshold" else 100)
        made = door.make(**{argument: value})
        assert type(getattr(made, argument)) is int


def test_small_integers_of_numpy_do_not_wrap() -> None:
    params = OneShotParams(**(ONE_SHOT | {"n_clients": 200, "min_clients": 128}))  # type: ignore[arg-type]
    check = partial(OneShotPolicy, min_clients=3)
    for number in (127, np.int8(127)):
        with pytest.raises(ParameterError, match="min_clients of 129"):
            check(colluders=number)._check_fields(params, 200, 128)  # type: ignore[arg-type]
