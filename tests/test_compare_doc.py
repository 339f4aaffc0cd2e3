"""docs/ss-or-he.md: every table has its place, and what it says of the library is so."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

import secagg.cli
from benches import compare as bench
from secagg.compare import run
from secagg.compare.rows import Case
from secagg.compare.run import Comparison

PAGE = bench.DOC.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    cases = [Case(6, 5), Case(9, 5)]
    return run.compare(("ss",), cases, lambda *_: None, budget=1.0)


def test_every_table_has_its_place(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = bench.tables(comparison)
    once = bench.written(PAGE, dict.fromkeys(names, "| new |"))
    assert once.count("| new |") == len(names)
    assert bench.written(once, dict.fromkeys(names, "| new |")) == once
    monkeypatch.setattr(bench, "SHOWN", (Case(9, 5),))
    with pytest.raises(AssertionError, match="no place for 9 x 5"):
        bench.written(PAGE, bench.tables(comparison))


def test_a_table_has_the_rows_of_its_case(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "SHOWN", (Case(9, 5),))
    head, rule, row, _, setting = bench.tables(comparison)["9 x 5"].splitlines()
    assert head.count("|") == rule.count("|") == row.count("|") == len(bench.HEADS) + 1
    assert row.startswith("| SS | ")
    assert re.match(r"SS: k = \d+, t = \d+, 0 vanish\.$", setting)


def test_the_page_is_filled_in() -> None:
    """Each table has a row for every system, and one of the tables figures that were scaled."""
    for case in bench.SHOWN:
        text = PAGE.partition(f"<!-- {case.clients} x {case.length} -->")[2]
        rows = text.partition("<!-- end")[0].strip().splitlines()
        assert [row.split("|")[1].strip() for row in rows[2:9]] == [
            "SS",
            "HE",
            "HE, shared key",
            "HE, 2 of 3 trustees",
            "phe, packed",
            "phe, per float",
            "CKKS",
        ]
        assert "~" not in rows[2]
        assert "~" in rows[7]
    assert "encrypt, key's owner | 3072 bits" in PAGE


def test_the_commands_of_the_page_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to where they begin to measure."""
    asked = []

    def compare(wanted: object, cases: list[Case], *_: object, **__: object) -> Comparison:
        asked.append((wanted, len(cases)))
        raise secagg.ParameterError("enough")

    monkeypatch.setattr(secagg.cli, "compare", compare)
    monkeypatch.setattr(secagg.cli, "prepare", lambda _: None)
    for line in re.findall(r"(?m)^    secagg (bench .*?) *(?:#|$)", PAGE):
        ran = CliRunner().invoke(secagg.cli.app, line.split())
        assert ran.stderr == "secagg: enough\n", line
    both = ("ss", "he")
    assert asked == [(both, 12), (both, 2), (both, 1), (both, 1), (("ss",), 1)]
