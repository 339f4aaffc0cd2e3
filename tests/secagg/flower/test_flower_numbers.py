"""Strategies and nodes take a bool for a flag, an int for a count, and no other."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from flower_helpers import Party
from flower_nodes import wrapped
from secagg import ClientPolicy, ParameterError
from secagg.flower.state import strictest, strictest_one_shot
from secagg.oneshot import OneShotPolicy
from wrong_values import AMOUNTS, COUNTS, FLAGS, IN_TOML

ARGUMENTS: list[tuple[str, list[Any]]] = [
    ("averaging", FLAGS),
    ("max_weight", COUNTS),
    ("fractional_bits", COUNTS),
    ("threshold", COUNTS),
    ("clip", AMOUNTS),
    ("poll", AMOUNTS),
]
CONFIG: list[tuple[str, str]] = [
    ("secagg-require-active", "flags"),
    ("secagg-min-clients", "counts"),
    ("secagg-min-cohort", "counts"),
    ("secagg-min-threshold", "counts"),
    ("secagg-min-helper-threshold", "counts"),
]


@pytest.mark.parametrize(("name", "values"), ARGUMENTS, ids=[name for name, _ in ARGUMENTS])
def test_arguments_of_strategies_are_strict(
    name: str, values: list[Any], semi_honest: Party
) -> None:
    for value in values:
        for strategy in (wrapped, semi_honest.wrapped):
            with pytest.raises(ParameterError):
                strategy(**{name: value})


@pytest.mark.parametrize(
    ("name", "values"), [("key_timeout", AMOUNTS), ("neighbours", COUNTS)], ids=str
)
def test_arguments_of_rounds_are_strict(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ParameterError):
            wrapped(**{"threshold": 3, name: value})


@pytest.mark.parametrize("value", AMOUNTS, ids=repr)
@pytest.mark.parametrize("name", ["metrics", "evaluate"])
def test_bounds_of_metrics_are_numbers(name: str, value: Any) -> None:
    with pytest.raises(ParameterError):
        wrapped(**{name: {"loss": value}})


@pytest.mark.parametrize(("key", "kind"), CONFIG)
def test_values_of_a_node_are_strict(key: str, kind: str) -> None:
    for text in IN_TOML[kind]:
        config = tomllib.loads(f"{key} = {text}")
        with pytest.raises(ParameterError, match=key):
            strictest(ClientPolicy(), config)
        with pytest.raises(ParameterError, match=key):
            strictest_one_shot(OneShotPolicy(helpers=frozenset()), config)
