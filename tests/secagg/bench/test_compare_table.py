"""A comparison as tables, notes and a picture."""

from __future__ import annotations

import re

import pytest

from compare_rows import widest
from secagg.bench import report
from secagg.bench.run import Comparison


def test_tables_fit_a_terminal_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """With the widest figures that the default cases give."""
    report.print_comparison(Comparison([widest()], [], {}, 1.0))
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "…" not in shown
    figures = r"~59 min +~59 min +~59 min ~77.2 MB ~77.2 MB ~77.2 MB +114/53/10"
    assert re.search(figures, shown), shown
