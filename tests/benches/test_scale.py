"""The large rounds of docs/scale.md, on a small one: checks of sums and bytes that can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benches import scale
from secagg.bench import ss
from secagg.bench.table import as_markdown

SMALL = scale.Case("small", 12, 50, None, 7, 0.2)


def test_a_small_round_is_checked_and_measured() -> None:
    measured = scale.run(SMALL, lambda *_: None)
    assert measured.survivors == 10
    assert measured.client_seconds > 0
    (row,) = as_markdown(scale.table([measured])).splitlines()[2:]
    assert row.startswith("| small | 12 | 50 | all, 7 | 20% |")


@pytest.mark.parametrize("way", ["bytes_up", "bytes_down"])
def test_a_byte_more_than_the_formula_is_seen(way: str) -> None:
    seed = bytes(32)
    vectors = SMALL.vectors.__getitem__
    quiet = lambda *_: None  # noqa: E731
    costs = ss.run_round(SMALL.params, vectors, SMALL.leaving, quiet, scale.Drawn(seed))
    scale.check(SMALL, costs, seed)
    more = {**getattr(costs, way), 3: getattr(costs, way)[3] + 1}
    with pytest.raises(AssertionError):
        scale.check(SMALL, replace(costs, **{way: more}), seed)


def test_the_doc_has_a_row_for_each_round() -> None:
    text = scale.DOC.read_text(encoding="utf-8")
    for case in scale.cases().values():
        k = "all" if case.neighbours is None else case.neighbours
        assert (
            f"| {case.name} | {case.clients:,} | {case.length:,} | {k}, {case.threshold} "
            in text
        )
