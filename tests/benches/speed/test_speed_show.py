"""Tables of a run as docs/speed.md shows them: what stands out is what missed."""

from __future__ import annotations

from benches.speed.rows import Rival, Row
from benches.speed.runner import Against, Measured
from benches.speed.scaling import SERIES, Grown
from benches.speed.show import BOUND_TIER, GROWTH, Run, shown

RIVALS = (Rival("slower", "a.b", (2, 4)), Rival("absent", "a.b", (2, 4)), Rival("free", "a.b"))
ROW = Row("row", "work", "a.b", {}, {}, RIVALS, cores=(1, 2))
BOUND = Row("bound", "start", "a.b", {}, {}, (), most=0.5)


def run() -> Run:
    against = [
        Against(RIVALS[0], [3.0], None),
        Against(RIVALS[1], [], "not installed"),
        Against(RIVALS[2], [0.1], None),
    ]
    rows = [Measured(ROW, tier, {1: [1.0], 2: [1.0]}, against) for tier in (BOUND_TIER, "pure")]
    rows.append(Measured(BOUND, BOUND_TIER, {1: [1.0]}, []))
    series = SERIES[0]
    steep = [float(x ** (series.order + 1)) for x in series.points]
    grown = Grown(series, {x: [y] for x, y in zip(series.points, steep, strict=True)})
    return Run(quick=False, repeats=1, load=0.0, rows=rows, grown=[grown])


def test_missed_bounds_are_those_that_stand_out() -> None:
    found = shown(run(), "picture.svg", "text")
    assert list(found) == [BOUND_TIER, "pure", GROWTH]
    first, lower, growth = found.values()
    assert first["met"] == 1
    assert first["missed"] == ["work / slower, two cores", "start / bound, one core"]
    assert (lower["met"], lower["missed"]) == (0, [])  # bounds hold for the tier above
    assert len(growth["missed"]) == 1
    assert growth["pictures"] == [{"file": "picture.svg", "text": "text"}]
    for table in found.values():
        rows, heads = table["rows"], table["columns"]
        assert isinstance(rows, list)
        assert isinstance(heads, list)
        assert {len(line) for line in rows} == {len(heads)}
