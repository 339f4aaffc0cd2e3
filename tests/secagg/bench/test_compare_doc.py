"""docs/ss-or-he.md: every table has its place, and its statements are true."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benches import compare as bench
from secagg.bench import run
from secagg.bench.cases import Case, Figure, Row
from secagg.bench.run import Comparison

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
    tables = bench.tables(comparison)
    with pytest.raises(AssertionError):
        bench.written(PAGE, tables)


@pytest.mark.parametrize("options", [(), ("--write",)])
def test_page_is_written_only_if_asked_for(
    options: tuple[str, ...],
    comparison: Comparison,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    for name in ("DOC", "DOCUMENT", "PICTURE"):
        monkeypatch.setattr(bench, name, tmp_path / getattr(bench, name).name)
    bench.DOC.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(bench, "compare", lambda *_, **__: comparison)
    assert bench.main(options) == 0
    shown = capsys.readouterr().out
    assert "## 943 x 33640\n\n| " in shown
    tables = bench.tables(comparison)
    assert tables["ratios"] in shown
    if options:
        assert bench.DOC.read_text(encoding="utf-8") == bench.written(PAGE, tables)
        assert len(json.loads(bench.DOCUMENT.read_text())["rows"]) == 2
        assert bench.PICTURE.exists()
    else:
        assert bench.DOC.read_text(encoding="utf-8") == PAGE
        assert list(tmp_path.iterdir()) == [bench.DOC]


def test_interrupted_run_writes_no_page(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "compare", lambda *_, **__: replace(comparison, complete=False))
    assert bench.main([]) == bench.INTERRUPTED
    assert capsys.readouterr().out == ""


def test_ratios_name_both_ends_and_mark_scaled_figures(comparison: Comparison) -> None:
    ss = comparison.rows[0]

    def row(name: str, clients: int, seconds: Figure) -> Row:
        system = replace(ss.system, name=name)
        load = replace(ss.client, seconds=seconds)
        return replace(ss, system=system, case=Case(clients, 1000), client=load)

    rows = [row("ss", n, Figure(2.0)) for n in (10, 50, 100)]
    rows += [row("he", 10, Figure(90.0)), row("he", 50, Figure(20.0, 1, 2))]
    rows += [row("he", 100, Figure(1.0))]
    table = bench.ratio_table(rows)
    assert [column.head for column in table.columns] == ["", "d = 1,000"]
    first, *_ = table.lines()
    assert first == ["client's time: HE ÷ SS", "0.5× (n = 100) to 45× (n = 10)"]
    first, *others = bench.ratio_table(rows[1:2] + rows[4:5]).lines()
    assert first[1] == "~20× (n = 50)"
    assert others[-1] == ["server's: phe, per float ÷ packed", "–"]
