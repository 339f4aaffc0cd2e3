"""The script that finds figures of another version finds each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

import figures

MEASURED = "<!-- measured 1.0: python -m benches.scale -->"


def faults(text: str, docs: Path = figures.DOCS) -> list[int]:
    return [line for line, _ in figures.page(text, "1.0", docs)]


@pytest.mark.parametrize("figure", ["5.2 ms", "**12 µs**", "34×", ".8745", "0.8745 (biases)"])
def test_figure_needs_a_mark_in_its_section_or_at_the_head(figure: str) -> None:
    assert faults(f"# Page\n\n## Costs\n\nIt is {figure}.\n") == [3]
    assert faults(f"# Page\n\n## Costs\n\n{MEASURED}\nIt is {figure}.\n") == []
    assert faults(f"# Page\n\n{MEASURED}\n\n## Costs\n\nIt is {figure}.\n") == []
    assert faults(f"# Page\n\n{MEASURED}\n\n## Costs\n\n`{figure}`\n\n    {figure}\n") == []
    assert faults(f"# Page\n\n## Other\n\n{MEASURED}\n\n## Costs\n\n{figure}\n") == [7]
    assert faults(f"# Page\n\n<!-- not measured -->\nIt is {figure}.\n") == []


def test_sizes_versions_and_grids_are_no_figures() -> None:
    assert faults("# Page\n\nd = 33,640 in 40 ms\n") == [1]
    assert faults("# Page\n\nd = 33,640, version 1.2.345, 943 × 33,640, 5 %\n") == []


def test_command_that_measures_needs_a_mark() -> None:
    page = "# Page\n\n## Costs\n{}\n    python -m benches.scale\n\n```\n# no heading\n```\n"
    assert faults(page.format("")) == [3]
    assert faults(page.format(MEASURED + "\n")) == []


def test_other_version_is_found() -> None:
    old = MEASURED.replace("1.0", "0.4")
    assert faults(f"# Page\n\n## Costs\n\n{old}\nIt is 5 ms.\n") == [3]
    assert faults(f"# Page\n\n## Costs\n\n{old}\nNo figure.\n") == [3]


def test_figures_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"rows": [["**.8745** ± .001", "12 ms", "3.5×"]]}')
    page = "# Page\n\n<!-- measured: one.json -->\n{}\n"
    for right in (".8745", "0.8745", ".875", "12 ms", "3.5×"):
        assert faults(page.format(right), tmp_path) == []
    for wrong in (".8746", ".873", "2 ms", "12 µs", "5×", "13.5×"):
        assert faults(page.format(wrong), tmp_path) == [1]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"origin": "2026-12-01; secagg 1.0.3, numpy 2"}', False),
        ('{"machine": {"secagg": "1.0.0"}}', False),
        ('{"origin": ""}', False),
        ('{"origin": "secagg 0.4.0"}', True),
        ('{"origin": "secagg 1.0.0; 3 runs: secagg 0.4.0"}', True),
        ('{"machine": {"numpy": "2.0"}}', True),
    ],
)
def test_data_files_name_the_version(tmp_path: Path, text: str, *, fault: bool) -> None:
    (tmp_path / "one.json").write_text(text)
    assert bool(list(figures.data(tmp_path / "one.json", "1.0"))) == fault
