"""A comparison as tables, notes and a picture."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from compare_rows import widest
from secagg.bench import report
from secagg.bench.cases import Figure, Load
from secagg.bench.run import Comparison


def test_tables_fit_a_terminal_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """With the widest figures that the default cases give."""
    report.print_comparison(Comparison([widest()], [], {}, 1.0))
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "…" not in shown
    figures = r"~59 min +~59 min +~59 min ~77.2 MB ~77.2 MB ~77.2 MB +114/53/10"
    assert re.search(figures, shown), shown


@pytest.mark.parametrize("scaled", ["holder", "holder_bytes_in"])
def test_scaled_figures_are_explained(scaled: str) -> None:
    load, sent, part = Load(Figure(1.0), 1), Figure(1.0), Figure(1.0, 1, 2)
    row = replace(
        widest(), client=load, server=load, holder=load,
        bytes_up=sent, bytes_down=sent, holder_bytes_in=sent,
    )  # fmt: skip
    assert not any("~" in note for note in report.notes(Comparison([row], [], {}, 1.0)))
    value = part if "bytes" in scaled else Load(part, None)
    row = replace(row, **{scaled: value})
    assert any(note.startswith("~:") for note in report.notes(Comparison([row], [], {}, 1.0)))
