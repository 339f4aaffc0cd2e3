"""The large rounds of docs/scale.md, on a small one: checks of sums and bytes that can fail."""

from __future__ import annotations

import pytest
from rich.progress import Progress

from benches import scale

SMALL = scale.Case("small", 12, 50, None, 7, 0.2)


def test_a_small_round_is_checked_and_measured() -> None:
    with Progress(disable=True) as progress:
        measured = scale.Round(SMALL, progress).run()
    assert measured.survivors == 10
    assert measured.client_seconds > 0
    (row,) = list(scale.table([measured]))[2:]
    assert row.startswith("| small | 12 | 50 | all, 7 | 20% |")


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_byte_more_than_the_formula_is_seen(way: str) -> None:
    with Progress(disable=True) as progress:
        small = scale.Round(SMALL, progress)
        getattr(small, way)[3] += 1
        with pytest.raises(AssertionError):
            small.run()
    for process in small.processes:
        process.kill()


def test_the_doc_has_a_row_for_each_round() -> None:
    text = scale.DOC.read_text(encoding="utf-8")
    for case in scale.cases().values():
        k = "all" if case.neighbours is None else case.neighbours
        assert (
            f"| {case.name} | {case.clients:,} | {case.length:,} | {k}, {case.threshold} "
            in text
        )
