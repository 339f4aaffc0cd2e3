"""Strategies and invariant of one-shot rounds: exact for the library, and not for its bugs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import find, given, settings
from test_testing import PLANTED

from oneshot_parties import run_one_shot
from secagg import ParameterError, TooFewSurvivors, testing
from secagg.oneshot import OneShotResult


@given(testing.one_shot_rounds())
def test_library_is_exact(round: testing.OneShotRound) -> None:
    testing.assert_exact_one_shot_sum(round, run_one_shot)


# ---- the strategies reach every legal case


@pytest.mark.parametrize(
    "wanted",
    [
        lambda r: r.params.threshold == 4 and len(r.params.helpers) == 7,
        lambda r: r.params.active and len(r.present) == r.params.quorum < len(r.params.helpers),
        lambda r: not r.params.active and len(r.present) == 1,
        lambda r: len(r.vectors) < r.params.min_clients,
        lambda r: len(r.vectors) == r.params.n_clients > 5 and r.weights is not None,
        lambda r: isinstance(r.tree, tuple) and all(isinstance(t, tuple) for t in r.tree),
    ],
)
def test_case_is_drawn(wanted: Callable[[testing.OneShotRound], bool]) -> None:
    find(testing.one_shot_rounds(), wanted, settings=settings(PLANTED, max_examples=3000))


def test_keys_are_those_of_the_helpers(tmp_path: Path) -> None:
    round = find(testing.one_shot_rounds(), lambda r: len(r.present) == 3, settings=PLANTED)
    with round.helpers(tmp_path) as helpers:
        assert tuple(helper.number for helper in helpers) == round.present


# ---- an aggregator's bugs


def forgets_a_report(round: testing.OneShotRound) -> OneShotResult:
    """An adder that takes the first half of a tree only."""
    left = round.tree[0] if isinstance(round.tree, tuple) else round.tree
    rest = {u: round.vectors[u] for u in _ids(left)}
    return run_one_shot(dataclasses.replace(round, vectors=rest, tree=left))


def ignores_the_minimum(round: testing.OneShotRound) -> OneShotResult:
    lower = dataclasses.replace(round.params, min_clients=2)
    return run_one_shot(dataclasses.replace(round, params=lower))


def always_aborts(round: testing.OneShotRound) -> OneShotResult:
    raise TooFewSurvivors("on a whim", phase="reserve", survivors=len(round.vectors), needed=99)


def blames_a_helper(round: testing.OneShotRound) -> OneShotResult:
    return dataclasses.replace(run_one_shot(round), outvoted=(1,))


def _ids(tree: object) -> list[int]:
    return [*_ids(tree[0]), *_ids(tree[1])] if isinstance(tree, tuple) else [tree]  # type: ignore[list-item]


BUGS = {
    forgets_a_report: r"the sum is over|was aborted",
    ignores_the_minimum: r"were opened",
    always_aborts: r"was aborted",
    blames_a_helper: r"outvoted",
}


@pytest.mark.parametrize("aggregate", BUGS, ids=lambda bug: bug.__name__)
def test_bug_of_an_aggregator_is_detected(
    aggregate: Callable[[testing.OneShotRound], OneShotResult],
) -> None:
    # of 100 rounds two have fewer clients than min_clients, and enough for another minimum
    @settings(PLANTED, max_examples=500)
    @given(testing.one_shot_rounds())
    def check(round: testing.OneShotRound) -> None:
        testing.assert_exact_one_shot_sum(round, aggregate)

    with pytest.raises(AssertionError, match=BUGS[aggregate]):
        check()


def test_result_of_a_wrong_type_is_named() -> None:
    round = find(testing.one_shot_rounds(), lambda r: len(r.vectors) > 2, settings=PLANTED)
    with pytest.raises(ParameterError):
        testing.assert_exact_one_shot_sum(round, lambda _: None)  # type: ignore[arg-type, return-value]
