"""docs/parameters.md has the default parameters of each door, as its own builder makes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import doors
from secagg import ClientPolicy, RoundParams
from secagg.graph import recommend

for extra in ("flwr", "nvflare", "msgspec"):
    pytest.importorskip(extra)


def test_tables_are_those_of_the_doors() -> None:
    text = doors.PAGE.read_text(encoding="utf-8")
    for heading, table in doors.tables().items():
        assert f"\n{table}\n" in text, f"run python tests/support/doors.py for {heading}"


@pytest.mark.parametrize("n", doors.SIZES)
@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_doors_agree_with_the_suggestion_and_the_default_policy(n: int, security) -> None:
    wanted = RoundParams.suggest(n, 4, doors.ENCODING, security=security, session=b"name")
    ClientPolicy().check(wanted)
    if n > 100 and security == "semi-honest":
        assert (wanted.neighbours, wanted.threshold) == recommend(n, 0.2, 0.1)
    else:
        rule = 2 * n // 3 + 1 if security == "active" else -(-7 * n // 10)
        assert (wanted.neighbours, wanted.threshold) == (None, rule)
    for name, door in doors.ROUNDS.items():
        found = door(n, security)
        if found is not None:
            pair = (found.neighbours, found.threshold)
            assert pair == (wanted.neighbours, wanted.threshold), name


@pytest.mark.parametrize("n", [5, 50, 200])
@pytest.mark.parametrize("door", doors.NOISED)
def test_doors_with_noise_agree_with_the_plan(door: str, n: int) -> None:
    found = replace(doors.NOISED[door](n), session=b"session")
    assert found == doors.planned(n).params(session=b"session")
    ClientPolicy().check(found)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize(
    ("n", "length", "suite"),
    [
        (10, 100, "x25519"),
        (10, 20_000, "hybrid"),
        # between the bytes of as few bits as the sum needs and those of 32 bits
        (5, 2000, "x25519"),
        (60, 20_000, "x25519"),
        (100, 40_000, "x25519"),
        (200, 200_000, "hybrid"),
        (400, 10**6, "x25519"),
    ],
)
def test_doors_have_the_suite_of_the_one_function(
    n: int, length: int, suite: str, security
) -> None:
    """The page of the parameters has the rule; no door has a default of its own."""
    for name, door in doors.SUITES.items():
        found = door(n, security, length=length)
        assert found is None or found.suite == suite, name


@pytest.mark.parametrize("suite", ["hybrid", "x25519"])
def test_doors_pass_a_given_suite_on(suite: str) -> None:
    for length in (100, 20_000):  # each default
        for name, door in doors.SUITES.items():
            assert door(10, length=length, suite=suite).suite == suite, name
    for name, noised in doors.NOISED.items():
        assert noised(10, suite=suite).suite == suite, name
