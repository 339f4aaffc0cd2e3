"""Results as people read them: figures in cells, the document, the picture."""

from dataclasses import replace

import pytest

from benches.papers.picture import draw
from benches.papers.results import Record, Report, RowResult, TableResult
from benches.papers.show import document, grid, markdown, remarks
from benches.papers.table import Below, Mean, Row, Table, Target
from secagg.kit.picture import style

MACHINE = {"cores": "2", "cpu": "Quick", "python": "3.11"}


@pytest.fixture(autouse=True)
def _in_style():
    with style():
        yield


def record(seed, **figures):
    return Record(
        seed=seed,
        figures=figures,
        seconds=12.4 + seed,
        date=f"2026-01-0{1 + seed}T10:00:00+00:00",
        state=f"state{seed}",
        machine=MACHINE,
    )


def result(name, *figures, wanted=2, error=None, missing=None, **more):
    row = Row(name=name, data="simulated", run=lambda run: {}, **more)
    records = tuple(record(seed, **one) for seed, one in enumerate(figures))
    return RowResult(row=row, wanted=wanted, records=records, error=error, missing=missing)


ROWS = (
    result(
        "A | B",
        {"RMSE": 0.91, "bytes": 33640, "Δ": 0.0},
        {"RMSE": 0.93, "bytes": 33640, "Δ": 4e-7},
        paper={"RMSE": Mean(0.9491, 0.004)},
        target={"RMSE": Target(at_least=0.9, at_most=0.94), "Δ": Target(at_most=1e-7)},
    ),
    result(
        "met",
        {"RMSE": 0.92, "bytes": 1.5},
        paper={"RMSE": Mean(0.9)},
        target={"RMSE": Target(at_most=0.92)},
        wanted=3,
    ),
    result(
        "lost",
        error="seed 0: RuntimeError: why (x.py, line 1)",
        target={"RMSE": Target(at_most=1)},
    ),
    result("far", missing="FEDMF_DATA is not set"),
)


def report(*rows, quick=False):
    table = Table(
        key="t",
        title="Title",
        metrics=("RMSE", "bytes", "Δ"),
        rows=tuple(row.row for row in rows),
        note="A note.",
    )
    tables = (TableResult(table=table, rows=rows, quick=quick),)
    return Report(tables=tables, missing={"other": "no package"}, seeds=2, quick=quick)


GOLDEN = """\
# Results

Measured by `python -m benches.papers`: the mean over the runs ± their standard deviation, \
beside the figures of the papers. Run n has seed n − 1, which decides the split and all \
random draws.

**1 of 2 targets met; missed:**
- t / A | B / Δ

## Title

`python -m benches.papers --table t --seeds 2`

|  | RMSE: paper | measured | bytes | Δ | seeds | target | met? | s per run |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| A \\| B | 0.9491 ± 0.0040 | 0.9200 ± 0.0141 | 33,640 | 2.0e-07 ± 2.8e-07 | 2 \
| RMSE 0.9 to 0.94; Δ ≤ 1e-07 | **no: Δ** | 13 |
| met | 0.9000 | 0.9200 | 1.5000 | – | 1 of 3 | RMSE ≤ 0.92 | so far yes | 12 |
| lost | – | – | – | – | 0 of 2 | RMSE ≤ 1 | – | – |
| far | – | – | – | – | 0 of 2 | – | – | – |

- lost: failed: seed 0: RuntimeError: why (x.py, line 1)
- far: left out: FEDMF_DATA is not set

A note.

![What it shows](results/t.svg)

<sub>2026-01-01 to 2026-01-02; sources and data state0, state1; 2 × Quick, python 3.11</sub>

Table other is left out: no package
"""


def test_markdown_equals_the_golden_document():
    assert markdown(report(*ROWS), {"t": {"results/t.svg": "What it shows"}}) == GOLDEN


def test_target_without_measurement_is_missed():
    row = result("row", {"RMSE": 0.5}, target={"RMSE": Target(at_most=1), "Δ": Target()})
    (table,) = report(row).tables
    assert table.judged(row) == {"RMSE": True, "Δ": False}
    (line,) = grid(table).lines()
    assert line[-2] == "so far no: Δ"


def verdicts(*rows):
    """Return target and verdict of each row as they are shown, and as programs read them."""
    whole = report(*rows)
    shown = [tuple(line[-3:-1]) for line in grid(whole.tables[0]).lines()]
    (table,) = document(whole)["tables"]
    return shown, [row["met"] for row in table["rows"]]


def test_relative_target_uses_seeds_of_both_rows():
    """Over all its seeds, "FedMF" is at .95: .012 below would be met by .938, and is not."""
    base = result("FedMF", {"RMSE": 0.93}, {"RMSE": 0.95}, {"RMSE": 0.97}, wanted=3)
    below = {"RMSE": Below("FedMF", 0.012)}
    for first, second, met in ((0.92, 0.9359, True), (0.92, 0.937, False)):
        mine = result("mine", {"RMSE": first}, {"RMSE": second}, below=below)
        shown, read = verdicts(base, mine)
        assert shown == [("–", "–"), ("RMSE ≤ FedMF − 0.012", "yes" if met else "no")]
        assert read == [{}, {"RMSE below FedMF": met}]
    both = result(
        "both",
        {"RMSE": 0.90},
        below=below,
        target={"RMSE": Target(at_most=0.8)},
        wanted=1,
    )
    shown, read = verdicts(base, both)
    assert shown[1] == ("RMSE ≤ 0.8; RMSE ≤ FedMF − 0.012", "no: RMSE")
    assert read[1] == {"RMSE": False, "RMSE below FedMF": True}
    nothing = result("FedMF", error="seed 0: gone")
    assert verdicts(nothing, both)[0][1][1] == "so far no", "nothing to compare with"
    assert "missed" not in markdown(report(base), {})
    with pytest.raises(ValueError, match=r"'mine' .*Z"):
        report(result("mine", {"RMSE": 0.9}, below={"RMSE": Below("Z", 0.1)}))


def test_unfinished_row_is_not_final():
    """Neither where runs are missing, nor where the row that it is compared with lacks some."""
    aims = {"target": {"RMSE": Target(at_most=1)}}
    part = result("part", {"RMSE": 0.9}, wanted=2, **aims)
    folds = result("u1 to u5", {"RMSE": 0.9}, wanted=5, seeds=5, whole=True, **aims)
    other = result("other", {"RMSE": 0.9}, wanted=1, below={"RMSE": Below("part", 0.0)})
    shown, read = verdicts(part, folds, other)
    assert [verdict for _, verdict in shown] == ["so far yes", "–", "so far yes"]
    assert read == [None, None, None]
    assert report(part, folds, other).verdicts == {}
    five = [{"RMSE": 0.9}] * 5
    done = result("u1 to u5", *five, wanted=5, seeds=5, whole=True, **aims)
    assert verdicts(done) == ([("RMSE ≤ 1", "yes")], [{"RMSE": True}])
    assert "**1 of 1 targets met.**" in markdown(report(done), {})
    with pytest.raises(ValueError, match="needs a number of seeds"):
        result("folds", whole=True)


def test_reason_is_shown_for_missed_targets_only():
    why = "so many users are missing"
    for most, said in ((0.5, (f"row: missed: {why}",)), (1.0, ())):
        row = result(
            "row", {"RMSE": 0.9}, wanted=1, target={"RMSE": Target(at_most=most)}, reason=why
        )
        assert remarks(report(row).tables[0]) == said
        assert remarks(report(row, quick=True).tables[0]) == ()


def test_findings_stand_below_the_table():
    (result_of,) = report(result("row", {"RMSE": 0.9}, wanted=1)).tables
    table = replace(result_of.table, findings=lambda found: [f"runs: {len(found['row'])}"])
    assert remarks(replace(result_of, table=table)) == ("runs: 1",)


def test_picture_has_a_panel_per_measured_metric():
    """Points of every row that was measured, the first row on top, paper and bounds beside."""
    figure = draw(report(*ROWS).tables[0])
    assert figure is not None
    panels = figure.get_axes()
    assert [axes.get_title(loc="left") for axes in panels] == ["RMSE", "bytes", "Δ"]
    names = [label.get_text() for label in panels[0].get_yticklabels()]
    assert names == ["A | B", "met"]
    assert panels[0].get_ylim()[0] > panels[0].get_ylim()[1]
    points = {line.get_marker(): line.get_xdata()[0] for line in panels[0].get_lines()[::-1]}
    assert (points["o"], points["D"]) == (pytest.approx(0.92), 0.9491)
    (whole,) = report(*ROWS).tables
    bare = replace(whole, table=replace(whole.table, panels=()))
    for empty in (report(*ROWS[2:]).tables[0], report(ROWS[0], *ROWS[2:]).tables[0], bare):
        assert draw(empty) is None
