"""Rejected numbers of clients and helpers: each error has a remedy, and the remedy works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from secagg import ClientPolicy, FixedPoint, ParameterError, RoundParams
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.simulate import temporary_journals

PARAMS = RoundParams.suggest(20, 3, FixedPoint(clip=1.0))
TWO = RoundParams(
    n_clients=2,
    threshold=2,
    length=3,
    encoding=FixedPoint(clip=1.0),
    allow_two_clients=True,
)
Change = dict[str, Any]
SHORT = PARAMS, {"min_threshold": 19}
FEW = PARAMS, {"min_clients": 21}
MORE = RoundParams.suggest(21, 3, FixedPoint(clip=1.0))
ROUNDS: dict[str, tuple[RoundParams, Change, str, RoundParams, Change]] = {
    "active": (PARAMS, {"require_active": True}, "require_active=False",
               PARAMS, {"require_active": False}),
    "threshold, in the policy": (*SHORT, ";.*min_threshold", PARAMS, {"min_threshold": 14}),
    "threshold, in the sum": (*SHORT, "min_threshold 19;.*threshold",
                              replace(PARAMS, threshold=19), {"min_threshold": 19}),
    "clients, in the policy": (*FEW, ";.*min_clients", PARAMS, {"min_clients": 20}),
    "clients, in the sum": (*FEW, "min_clients 21;.*clients", MORE, {"min_clients": 21}),
    "two clients": (TWO, {}, r"ClientPolicy\(min_clients=2, allow_two_clients=True\)",
                    TWO, {"min_clients": 2, "allow_two_clients": True}),
    "cohort": (PARAMS, {"min_cohort": 21}, "min_cohort 21;.*min_cohort",
               PARAMS, {"min_cohort": 20}),
    "length": (PARAMS, {"max_length": 2}, ";.*max_length", PARAMS, {"max_length": 3}),
}  # fmt: skip
"""Parameters, a policy that rejects them, words of the error, and what is accepted."""


@pytest.mark.parametrize(
    ("params", "policy", "remedy", "better", "mended"), ROUNDS.values(), ids=list(ROUNDS)
)
def test_remedies_of_a_policy_work(params, policy, remedy, better, mended):
    with pytest.raises(ParameterError, match=remedy):
        ClientPolicy(**policy).check(params)
    ClientPolicy(**mended).check(better)


@pytest.fixture(scope="module")
def suggest() -> Iterator[Callable[..., OneShotParams]]:
    with temporary_journals(3, "x25519") as journals:
        keys = [journal.public for journal in journals]

        def made(n: int, *, helpers: int = 3, **settings: Any) -> OneShotParams:
            given = {"security": "semi-honest", **settings}
            return OneShotParams.suggest(
                n, 3, FixedPoint(clip=1.0), helpers=keys[:helpers], **given
            )

        yield made


ONE_SHOT: dict[str, tuple[Change, Change, str, Change, Change]] = {
    "active": ({"n": 20}, {"require_active": True}, "require_active=False",
               {"n": 20}, {"require_active": False}),
    "threshold": ({"n": 20}, {"min_threshold": 3}, "min_threshold 3;.*threshold",
                  {"n": 20, "threshold": 3}, {}),
    "clients, in the sum": ({"n": 20}, {"min_clients": 15}, "min_clients 15;.*min_clients",
                            {"n": 20, "min_clients": 15}, {"min_clients": 15}),
    "clients, in the policy": ({"n": 20}, {"min_clients": 15}, "min_clients 15;.*policy",
                               {"n": 20}, {"min_clients": 14}),
    "two clients": ({"n": 2, "corrupt": 0.0}, {},
                    r"OneShotPolicy\(min_clients=2, corrupt=0\.0\)",
                    {"n": 2, "corrupt": 0.0}, {"min_clients": 2, "corrupt": 0.0}),
    "length": ({"n": 20}, {"max_length": 2}, ";.*max_length", {"n": 20}, {"max_length": 3}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("params", "policy", "remedy", "better", "mended"), ONE_SHOT.values(), ids=list(ONE_SHOT)
)
def test_remedies_of_a_one_shot_policy_work(suggest, params, policy, remedy, better, mended):
    with pytest.raises(ParameterError, match=remedy):
        OneShotPolicy(**policy).check(suggest(**params))
    OneShotPolicy(**mended).check(suggest(**better))


@pytest.mark.parametrize(("helpers", "threshold"), [(1, 2), (2, 3), (1, 3), (3, 4), (2, 16)])
def test_a_threshold_above_the_number_of_helpers_names_both(suggest, helpers, threshold):
    with pytest.raises(ParameterError, match=rf";.*\b{threshold}\b.*\b{helpers}\b"):
        suggest(20, helpers=helpers, threshold=threshold)
    assert suggest(20, helpers=helpers, threshold=helpers).threshold == helpers


@pytest.mark.parametrize("more", [{}, {"threshold": 2}, {"neighbours": None}])
def test_two_clients_are_told_how(more):
    with pytest.raises(ParameterError, match="allow_two_clients=True"):
        RoundParams.suggest(2, 3, FixedPoint(clip=1.0), **more)
    assert TWO.n_clients == 2
