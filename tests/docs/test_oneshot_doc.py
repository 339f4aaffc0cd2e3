"""docs/oneshot.md and the code say the same: checks by phase, labels, sizes, quorums."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from math import comb
from pathlib import Path

import numpy as np
import pytest

from secagg import Integers, _fast
from secagg.oneshot import OneShotParams, OneShotPolicy, suites
from secagg.oneshot.helper import MAX_LENGTH
from vectors_reader import b, load

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "oneshot.md").read_text()
TREES = [
    ast.parse(path.read_text()) for path in sorted((ROOT / "secagg" / "oneshot").glob("*.py"))
]
BOUNDS = {("unmasking", "sum"), ("unmasking", "weight")}
"""Checks of the sum, which are those of docs/protocol.md; nothing clipped is counted here."""


def section(name: str) -> str:
    return TEXT.split(f"<!-- {name} -->")[1].split("<!-- end -->")[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            yield (node.func.id if isinstance(node.func, ast.Name) else name or ""), node


FUNCTIONS = [
    node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
]
PLACES = {
    node.name: names.index("phase")
    for node in FUNCTIONS
    if "phase" in (names := [a.arg for a in node.args.args if a.arg != "self"])
}
"""Functions with a parameter `phase`, and which one it is."""


@cache
def phases_of(function: str) -> frozenset[str]:
    """Return the phases with which a function is called anywhere in the package."""
    at = PLACES[function]
    return frozenset(
        phase
        for caller in FUNCTIONS
        for name, call in calls(caller)
        if name == function and len(call.args) > at
        for phase in phases_in(call.args[at], caller.name)
    )


def phases_in(argument: ast.expr, function: str) -> frozenset[str]:
    """Return the phases that an argument `phase` of a call within a function can be."""
    if isinstance(argument, ast.Constant):
        return frozenset([argument.value])
    assert isinstance(argument, ast.Name)
    assert argument.id == "phase", "not a literal phase"
    return phases_of(function)


def test_table_of_checks_is_that_of_the_code() -> None:
    found = set(BOUNDS)
    for function in FUNCTIONS:
        for name, call in calls(function):
            if name == "violation":
                phase, check = call.args[:2]
                assert isinstance(check, ast.Constant), f"line {call.lineno}: not a literal"
                found |= {(p, check.value) for p in phases_in(phase, function.name)}
    table = [row[:2] for row in rows(section("checks"))]
    assert len({check for check, _ in table}) == len(table)
    documented = {(p, check.strip("`")) for check, phases in table for p in phases.split(", ")}
    assert documented == found


def test_checks_of_parameters_are_those_of_the_code() -> None:
    found = {
        call.args[0].value
        for tree in TREES
        for name, call in calls(tree)
        if name == "malformed" and isinstance(call.args[0], ast.Constant)
    }
    assert {row[0].strip("`") for row in rows(section("parameter checks"))} == found


def test_attacks_have_the_tests_that_the_table_names() -> None:
    there = {
        node.name
        for path in (ROOT / "tests" / "secagg" / "oneshot").glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    checks = {row[0] for row in rows(section("checks"))}
    attacks = rows(section("attacks"))
    assert len(attacks) >= 16
    for _, stopped, tests in attacks:
        named = re.findall(r"`(\w+)`", tests)
        assert named
        assert set(named) <= there
        assert {f"`{check}`" for check in re.findall(r"`(\w+)`", stopped)} <= checks


def test_labels_are_those_of_the_code() -> None:
    label = r"secagg/1 one-shot [a-z]+"
    found = {
        node.value.decode()
        for tree in TREES
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, bytes)
        and re.fullmatch(label.encode(), node.value)
    }
    documented = set(re.findall(rf'"({label})"', TEXT))
    # the first link of a journal's chain is no matter of a peer
    assert documented == found - {"secagg/1 one-shot journal"}


def test_sizes_of_the_suites_are_those_of_the_code() -> None:
    table = TEXT.split("Sizes of the suites")[1].split("- β_j")[0]
    shown = {
        row[0]: [int(re.findall(r"\d+", cell)[0]) for cell in row[1:]] for row in rows(table)
    }
    assert shown == {
        name: [
            suites.NAMES.index(name),
            suites.KEY_BYTES[name],
            suites.SECRET_BYTES[name],
            suites.OVERHEAD[name],
        ]
        for name in suites.NAMES
    }


@pytest.mark.parametrize("row", rows(TEXT.split("### 2.4")[1].split("### ")[0]), ids=str)
def test_table_of_helpers_is_right(row: list[str]) -> None:
    threshold, helpers = map(int, row[0].split(" of "))
    known = {
        pair[1]: tuple(map(b, pair))
        for session in load("oneshot")["sessions"]
        if session["parameters"]["suite"] == "x25519"
        for pair in session["parameters"]["helpers"]
    }
    params = OneShotParams(
        n_clients=3,
        length=1,
        encoding=Integers(1),
        helpers=tuple(known.values())[:helpers],  # type: ignore[arg-type]
        threshold=threshold,
        min_clients=3,
        suite="x25519",
        session=b"session",
    )
    assert row[1] == f"{params.seeds}, {len(params.held_by(1))}"
    assert params.seeds == comb(helpers, threshold - 1)
    assert row[2] == (str(params.quorum) if params.quorum else "–")
    assert row[3:] == [str(helpers - threshold), str(helpers - (params.quorum or helpers))]


def test_defaults_of_the_policy_are_those_of_the_code() -> None:
    client, helper = (
        {row[0].strip("`"): row[1].split(";")[0] for row in rows(text)}
        for text in TEXT.split("### 3.6")[1].split("## 4")[0].split("### 3.7")
    )
    policy, own = OneShotPolicy(), OneShotPolicy(max_length=MAX_LENGTH)
    assert client.keys() == policy.__dataclass_fields__.keys()
    assert helper.pop("the registry") == "absent"
    for table, defaults in ((client, policy), (helper, own)):
        for name, shown in table.items():
            value = getattr(defaults, name)
            if name.startswith("max_"):
                assert shown == f"2^{value.bit_length() - 1}"
                assert value.bit_count() == 1
            elif value is None:
                assert shown.startswith("absent")
            else:
                assert shown == str(value).lower()


def test_known_answers_of_the_sampler_are_those_of_the_code() -> None:
    table = rows(TEXT.split("For the key 000102")[1].split("### 8.3")[0])
    words = np.zeros(1000, np.uint64)
    _fast.mask_words(words, bytes(range(16)), b"\x00")
    assert len(table) == 3
    for row in table:
        base, _, exponent = row[0].partition("^")
        out = np.zeros(8, np.int64)
        drawn, used = _fast.discrete_gaussian(words, out, int(base) ** int(exponent or 1))
        assert (drawn, str(used)) == (8, row[1])
        assert out.tolist() == [int(y.replace("−", "-")) for y in row[2].split(", ")]
