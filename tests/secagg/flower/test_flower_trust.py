"""Helpers that a node trusts, its policy and its identity."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flower_helpers import Faulty, Party
from flower_nodes import NODES, assert_mean, errors, make_app, noting, run
from secagg.flower import OneShot, OneShotMod
from secagg.flower.testing import LocalGrid
from secagg.oneshot import HelperJournal, OneShotParams, OneShotPolicy

REFUSED = "secagg: ParameterError"


@pytest.fixture
def party(semi_honest: Party) -> Party:
    return semi_honest


def file_of(path: Path, journals: list[HelperJournal]) -> str:
    """A file of helpers, as the commands take it."""
    entries = [
        {
            "url": "https://host:8444",
            "suite": "x25519",
            "hpke": journal.public[0].hex(),
            "ed25519": journal.public[1].hex(),
        }
        for journal in journals
    ]
    (path / "helpers.json").write_text(json.dumps(entries))
    return str(path / "helpers.json")


def outcome(
    party: Party,
    policy: OneShotPolicy | None = None,
    config: dict[str, Any] | None = None,
    **given: Any,
) -> set[str]:
    """Errors of the nodes in a round; {""} stands for a mean of all of them."""
    nodes = {node: {**own, **(config or {})} for node, own in party.configs().items()}
    trained: list[int] = []

    grid = LocalGrid(make_app([OneShotMod(policy)], noting(trained)), nodes)
    result = run(grid, party.wrapped(on_failure="skip", **given))
    if result.arrays:
        assert_mean(result.arrays, NODES)
    assert bool(result.arrays) == bool(trained)  # a node that reports nothing has not trained
    return {reply.error.reason if reply.has_error() else "" for reply in grid.replies}


def trusting(party: Party, **demands: Any) -> OneShotPolicy:
    return OneShotPolicy(helpers=party.trusted, **demands)


def test_check50_a_node_that_trusts_no_helpers_reports_to_none(party):
    assert outcome(party) == {REFUSED}
    assert outcome(party, OneShotPolicy(min_clients=2)) == {REFUSED}


def test_check50_a_foreign_helper_gets_no_report(party, journals):
    helpers = [Faulty(journal) for journal in (*journals[:2], journals[3])]
    assert outcome(party, trusting(party), helpers=helpers) == {REFUSED}
    assert {call for helper in helpers for call in helper.calls} == {"endorse"}


@pytest.mark.parametrize("spoil", [lambda _: bytes(64), lambda own: own[:-1], lambda _: b""])
def test_check50_helpers_that_have_not_endorsed_get_no_report(party, journals, spoil):
    helpers = [*party.helpers[:2], Faulty(journals[2], "endorse", spoil)]
    assert outcome(party, trusting(party), helpers=helpers) == {REFUSED}


def test_check50_hpke_keys_of_the_server_get_no_report(party, journals, monkeypatch):
    """It knows the Ed25519 keys that nodes trust, and puts its own key beside one."""
    honest = OneShot._params

    def swapped(*given: Any) -> OneShotParams:
        params = honest(*given)
        (_, identity), *others = params.helpers
        return replace(params, helpers=((journals[3].public[0], identity), *others))

    helpers = [Relaying(party, journal) for journal in party.journals]
    assert outcome(party, trusting(party), helpers=helpers) == {""}
    monkeypatch.setattr(OneShot, "_params", swapped)
    assert outcome(party, trusting(party), helpers=helpers) == {REFUSED}


class Relaying(Faulty):
    """Helper whose endorsement is one of the right parameters, whatever it is asked for."""

    def __init__(self, party: Party, journal: HelperJournal) -> None:
        super().__init__(journal)
        self._party = party

    def reach(self, params: OneShotParams) -> Any:
        pairs = tuple(journal.public for journal in self._party.journals)
        return super().reach(replace(params, helpers=pairs))


def test_check50_helpers_of_application_and_node_must_both_accept(party, journals, tmp_path):
    for listed, named, accepted in [
        (journals[:3], None, True),
        (journals, None, True),
        (journals[:2], None, False),
        ([], None, False),
        (journals, journals[:3], True),
        (journals[:2], journals, False),
        (journals, journals[:2], False),
        (journals[:2], journals[2:], False),
    ]:
        keys = None if named is None else frozenset(one.public[1] for one in named)
        config = {"secagg-helpers": file_of(tmp_path, listed)}
        expected = {""} if accepted else {REFUSED}
        assert outcome(party, OneShotPolicy(helpers=keys), config) == expected


@pytest.mark.parametrize("content", ["", "{", "3", '[{"url": "https://h:1"}]'])
def test_a_file_of_another_form_is_refused(party, tmp_path, content):
    (tmp_path / "file").write_text(content)
    config = {"secagg-helpers": str(tmp_path / "file")}
    assert outcome(party, trusting(party), config) == {REFUSED}
    assert outcome(party, trusting(party), {"secagg-helpers": str(tmp_path)}) == {REFUSED}


WEAK = {
    "secagg-min-clients": 2,
    "secagg-min-helper-threshold": 1,
    "secagg-require-active": False,
}
CONFIGURED = [
    ({}, {"secagg-min-clients": 3, "secagg-min-cohort": 3, "partition-id": 3}, True),
    ({}, {"secagg-min-clients": 5}, False),
    ({}, {"secagg-min-cohort": 5}, False),
    ({}, {"secagg-min-clients": 0, "secagg-min-helper-threshold": 2}, True),
    ({}, {"secagg-min-helper-threshold": 3}, False),
    ({}, {"secagg-min-threshold": 100, "secagg-require-active": False}, True),
    ({}, {"secagg-require-active": True}, False),
    ({}, {"secagg-require-hybrid": True}, False),
    ({}, {"secagg-identity": "key"}, False),
    ({"min_clients": 3, "min_threshold": 2}, WEAK, True),
    ({"min_clients": 5}, WEAK, False),
    ({"min_threshold": 3}, WEAK, False),
    ({"require_active": True}, WEAK, False),
    ({"require_hybrid": True}, {"secagg-require-hybrid": False}, False),
]


@pytest.mark.parametrize(("policy", "config", "accepted"), CONFIGURED, ids=str)
def test_check50_configuration_of_a_node_makes_its_policy_stricter(
    party, policy, config, accepted
):
    expected = {""} if accepted else {REFUSED}
    assert outcome(party, trusting(party, **policy), config) == expected


def test_configuration_of_a_run_has_no_part_in_the_trust(party, journals, tmp_path):
    config = {"secagg-helpers": file_of(tmp_path, journals)}
    grid = LocalGrid(make_app([OneShotMod()]), party.configs(), run_config=config)
    assert not run(grid, party.wrapped(on_failure="skip")).arrays


def test_check50_nodes_with_identities_are_in_no_semi_honest_sum(party):
    signed = Party(party.journals, active=True)
    for demands in ({}, {"require_active": False}):
        grid = LocalGrid(party.app(**demands), signed.configs())
        assert not run(grid, party.wrapped(on_failure="skip")).arrays
        assert set(errors(grid)) == {REFUSED}


def test_check50_active_sums_take_an_identity(party, active):
    assert outcome(active, trusting(active, require_active=True)) == {""}
    grid = LocalGrid(active.app(), party.configs())
    assert not run(grid, active.wrapped(on_failure="skip")).arrays
    assert set(errors(grid)) == {REFUSED}
