"""The row of one-shot sums in a comparison."""

from __future__ import annotations

import pytest

from secagg import SecAggError
from secagg.bench import cases, one_shot, report
from secagg.bench.cases import Case
from secagg.bench.run import compare

CASE = Case(20, 30)


def test_row_has_all_parties_and_the_bytes_of_the_messages() -> None:
    shown: list[tuple[str, int, int]] = []
    row = one_shot.measure(CASE, lambda *step: shown.append(step))
    assert shown == [("report", done, 18) for done in range(1, 19)]
    assert row.measured
    assert row.holder is not None
    loads = (row.client, row.server, row.holder)
    assert min(load.seconds.value for load in loads) > 0
    assert all(load.memory is not None for load in loads)
    report_bytes = 2 + 32 + 8 + 3 * 32 + 3 * (48 + 2 * 16) + 4 * 30
    record = 8 + 3 * 32 + 48 + 2 * 16
    request, answer = 2 + 32 + 16 + 8 * 18, 2 + 32 + 2 + 32 + 2 * 4 * 30
    assert row.bytes_up.value == report_bytes
    assert row.holder_bytes_in is not None
    assert row.holder_bytes_out is not None
    assert row.holder_bytes_in.value == 3 * (2 + 32 + 2 + 18 * record + request)
    assert row.holder_bytes_out.value == 3 * answer
    assert row.bytes_down.value == 0
    assert "2 never report" in row.setting


def test_comparison_explains_the_row() -> None:
    found = compare(("one-shot",), [CASE], lambda *_: None, budget=1.0, per_float=False)
    assert [one.system.name for one in found.rows] == ["one-shot"]
    assert any(note.startswith("One-shot: the helpers stand") for note in report.notes(found))
    assert report.case_table(CASE, found.rows).rows[0][0] == "One-shot, 2 of 3"


def test_wrong_sum_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    check = cases.check_sum
    monkeypatch.setattr(cases, "check_sum", lambda found, *rest: check(found + 1, *rest))
    with pytest.raises(SecAggError, match="not exact"):
        one_shot.measure(CASE, lambda *_: None)
