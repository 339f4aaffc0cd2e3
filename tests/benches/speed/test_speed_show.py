"""Tables, document and picture of a run, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benches.speed import __main__ as command
from benches.speed.picture import draw
from benches.speed.rows import Arguments, Rival, Row
from benches.speed.runner import Against, Measured
from benches.speed.scaling import Grown, Series
from benches.speed.show import Run, parts, scaling_table, table
from secagg.errors import SecAggError
from secagg.kit.picture import svg
from secagg.kit.table import Strong, as_markdown
from secagg.kit.timing import INTERRUPTED

NOTHING: Arguments = {}


def measured(
    ours: float, theirs: float, *, tier: str = "vaes512", most: float | None = None
) -> Measured:
    """Row that is ours on one core and a half of it on two, against a rival and an absent one.

    The rival is required to take 4 times as long, and 7 times on two cores.
    """
    rivals = (Rival("rival", "a.b", (4, 7)), Rival("flint", "a.c"))
    one = Row("r", "a task", "a.b", NOTHING, NOTHING, rivals, (1, 2), most)
    seconds = {1: [ours, ours, 99.0], 2: [ours / 2]}
    against = [Against(rivals[0], [theirs]), Against(rivals[1], absent="none")]
    return Measured(one, tier, seconds, against)


def grown(power: float, order: float) -> Grown:
    series = Series("a client", "n", (10, 100, 1000), order, "n", NOTHING)
    return Grown(series, {x: [1e-6 * x**power] for x in series.points})


def run(*, quick: bool = False) -> Run:
    rows = [measured(1, 5), measured(1, 5, tier="aesni")]
    return Run(quick, 1, 0.1, rows, [grown(1, 1)], complete=True)


def test_line_has_medians_ratios_and_requirements() -> None:
    first, second = table([measured(1, 5)]).lines()
    cores = ["1 s", "5×", "4×", "500 ms", "10×", "7×"]
    assert first == ["a task", "rival", "5 s", *cores]
    assert second == ["", "flint", "none", *6 * ["–"]]


@pytest.mark.parametrize(
    ("theirs", "missed"), [(8, []), (7, []), (3.9, [4]), (3.4, [4, 7]), (3.5, [4])]
)
def test_missed_ratio_stands_out(theirs: float, missed: list[int]) -> None:
    line = table([measured(1, theirs)]).rows[0]
    strong = [least for at, least in ((4, 4), (7, 7)) if isinstance(line[at], Strong)]
    assert strong == missed


@pytest.mark.parametrize(("tier", "judge"), [("aesni", True), ("vaes512", False)])
def test_lower_tier_and_trial_are_not_judged(tier: str, judge: bool) -> None:
    line = table([measured(1, 1, tier=tier, most=0.1)], judge=judge).rows[1]
    assert line[4:6] == [1, None]
    assert not any(isinstance(cell, Strong) for cell in line)


def test_exponent_above_its_order_stands_out() -> None:
    (due,), (hidden,) = (scaling_table([grown(p, 1)]).rows for p in (1, 2))
    assert due[-2:] == pytest.approx([1, 1])
    assert hidden[-1] == Strong("2.00")


def test_parts_have_a_table_for_each_tier() -> None:
    found = parts(run())
    assert list(found) == ["ratios", "lower tiers", "scaling", "notes"]
    assert found["ratios"] == as_markdown(table([measured(1, 5)]))
    assert found["lower tiers"].startswith("Tier `aesni`:\n\n|")
    assert "--quick" not in found["notes"]
    assert "--quick" in parts(run(quick=True))["notes"]


def test_picture_has_a_panel_for_each_series() -> None:
    drawn = draw([grown(1, 1), grown(2, 2), grown(1, 2)])
    due, found = (line.get_ydata() for line in drawn.axes[2].lines)
    assert due == pytest.approx([1e-7, 1e-5, 1e-3])
    assert found == pytest.approx([1e-5, 1e-4, 1e-3])
    text = svg(drawn).decode()
    assert text.count("exponent 2.00") == 1
    assert text.count("exponent") == 3


@pytest.fixture(autouse=True)
def _copied_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let ``--write`` write a copy of the page, so that a mistake leaves the page alone."""
    copy = tmp_path / "docs" / command.DOC.name
    copy.parent.mkdir()
    copy.write_text(command.DOC.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(command, "DOC", copy)
    for name in ("DOCUMENT", "PICTURE"):
        monkeypatch.setattr(command, name, copy.parent / getattr(command, name).name)


def stand_in(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException] | None = None
) -> list[tuple[str, str, int, bool]]:
    """Replace `measure`, which may raise at the second row, and `grow`; return the rows."""
    asked: list[tuple[str, str, int, bool]] = []

    def measure(row: Row, tier: str, repeats: int, _: object, *, quick: bool) -> Measured:
        asked.append((row.name, tier, repeats, quick))
        if error is not None and len(asked) == 2:
            raise error("no result")
        return measured(1, 5, tier=tier)

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "grow", lambda *_, **__: grown(1, 1))
    monkeypatch.setattr(command._fast, "TIERS", ("vaes512", "aesni"))
    return asked


def test_rows_are_measured_in_each_tier(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = stand_in(monkeypatch)
    options = ["--row", "masks", "--row", "import", "--tier", "all", "--repeats", "3"]
    assert command.main([*options, "--out", str(tmp_path), "--json"]) == 0
    assert asked == [
        (name, tier, 3, False) for tier in ("vaes512", "aesni") for name in ("masks", "import")
    ]
    saved = (tmp_path / "speed.json").read_text()
    assert capsys.readouterr().out == saved
    found = json.loads(saved)
    assert found["complete"] is True
    assert found["rows"][0]["against"][0]["ratios"] == [5, 10]
    assert found["rows"][0]["against"][1]["absent"] == "none"
    assert not (tmp_path / "speed.svg").exists()


def test_trial_measures_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = stand_in(monkeypatch)
    assert command.main(["--quick", "--out", str(tmp_path)]) == 0
    assert {(tier, repeats, quick) for _, tier, repeats, quick in asked} == {
        ("vaes512", 1, True)
    }
    assert (tmp_path / "speed.svg").exists()


@pytest.mark.parametrize(
    ("error", "code", "rows"), [(KeyboardInterrupt, INTERRUPTED, 1), (SecAggError, 1, 2)]
)
def test_ctrl_c_or_a_failed_row_keeps_the_others(
    error: type[BaseException],
    code: int,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stand_in(monkeypatch, error)
    options = [part for name in ("masks", "x25519", "import") for part in ("--row", name)]
    assert command.main([*options, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert len(found["rows"]) == rows
    assert list(found["failed"]) == (["x25519, vaes512"] if error is SecAggError else [])


@pytest.mark.parametrize("error", [None, SecAggError, KeyboardInterrupt])
def test_page_is_written_by_a_whole_run_only(
    error: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, error)
    page = command.DOC.read_text(encoding="utf-8")
    command.main(["--write", "--tier", "all"])
    assert (command.DOC.read_text(encoding="utf-8") == page) == (error is not None)
    assert command.DOCUMENT.exists() == command.PICTURE.exists() == (error is None)


@pytest.mark.parametrize(
    "wrong", [["--repeats", "0"], ["--row", "no"], ["--tier", "no"], ["--write", "--quick"]]
)
def test_wrong_options_measure_nothing(
    wrong: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = stand_in(monkeypatch)
    with pytest.raises(SystemExit):
        command.main(wrong)
    assert wrong[0] in capsys.readouterr().err
    assert asked == []
