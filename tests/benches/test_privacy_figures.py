"""Figures of noised means, with few clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benches import privacy

pytest.importorskip("dp_accounting")


@pytest.mark.parametrize("kind", ["one element", "long"])
def test_error_of_a_small_mean_is_near_the_formula(kind: Any) -> None:
    plan = privacy.planned(20, 64, 0.9, count=kind == "long")
    row = privacy.measured(kind, plan)
    # 64 elements: the error's own deviation is a part of 1/√128
    assert 0.6 < row.ratio / row.formula < 1.5
    assert abs(row.bias) < 6 * row.deviation
    assert (row.counted is not None) == (kind == "long")
    assert plan.message == row.vector < row.sent


def test_vectors_of_a_kind_are_the_same_at_each_look_up() -> None:
    for kind in privacy.KINDS:
        vectors = privacy.Vectors(kind, 3, 50)
        np.testing.assert_array_equal(vectors[1], vectors[1])
        assert np.linalg.norm(vectors[2]) == pytest.approx(vectors.norm(2))
