"""The large rounds of docs/scale.md, on a small one: checks of sums and bytes that can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benches import recommender_scale, scale
from secagg.bench import ss
from secagg.bench.cases import CLIP, RandomVectors, leaving
from secagg.kit.table import as_markdown

SMALL = scale.Case("small", 12, 50, None, 7, 0.2)


def test_small_round_is_checked_and_measured() -> None:
    measured = scale.run(SMALL, lambda *_: None)
    assert measured["survivors"] == 10
    assert measured["client_seconds"] > 0
    (row,) = as_markdown(scale.table([measured])).splitlines()[2:]
    assert row.startswith("| small | 12 | 50 | all, 7 | 20% |")


@pytest.mark.parametrize("way", ["bytes_up", "bytes_down"])
def test_check_bytes_with_one_byte_more_raises(way: str) -> None:
    vectors = RandomVectors(SMALL.clients, SMALL.length, CLIP, 0).__getitem__
    gone, entropy = leaving(SMALL.clients, SMALL.dropout), np.random.default_rng(1).bytes
    costs = ss.run_round(SMALL.params, vectors, gone, lambda *_: None, entropy)
    scale.check_bytes(SMALL, costs)
    more = {**getattr(costs, way), 3: getattr(costs, way)[3] + 1}
    with pytest.raises(AssertionError):
        scale.check_bytes(SMALL, replace(costs, **{way: more}))


def test_round_of_recommenders_is_measured() -> None:
    cases = recommender_scale.cases(12, 30)
    rows = [recommender_scale.run(one, lambda *_: None) for one in cases]
    lines = as_markdown(recommender_scale.table(rows)).splitlines()[2:]
    for row, line in zip(rows, lines, strict=True):
        assert line.startswith(f"| {row.model} | 12 | 30 | {row.rounds} |")
        assert row.record.survivors == 12
        assert row.record.bytes_up > 30 * 14 * 24 / 8
