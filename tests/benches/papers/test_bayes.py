"""The correlated t-test against an integral, and its pictures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benches.papers.bayes import Posterior, correlated_t_test, draw_posteriors
from fedmf.errors import DataError, SettingError

CF = [0.301, 0.298, 0.305, 0.300, 0.299]
FCF = [0.304, 0.295, 0.308, 0.299, 0.303]


def test_posterior_of_known_runs_is_as_by_hand():
    """Differences 3, −3, 3, −1, 4 thousandths: x̄ 1.2, σ̂² (44 − 5 · 1.44)/4 = 9.2."""
    found = correlated_t_test(CF, FCF, 0.2)
    assert found.mean == pytest.approx(1.2e-3)
    assert found.dof == 4
    assert found.scale == pytest.approx(math.sqrt((1 / 5 + 0.2 / 0.8) * 9.2e-6))


@pytest.mark.parametrize(("correlation", "rope"), [(0.0, 0.001), (0.5, 0.005)])
def test_posterior_probabilities_are_areas_under_the_density(correlation, rope):
    posterior = correlated_t_test(CF, FCF, correlation)
    x = np.linspace(-rope, rope, 200_001)
    area = np.trapezoid(posterior.density(x), x)
    assert posterior.within(rope) == pytest.approx(area, abs=1e-9)


def test_posterior_of_constant_differences_is_certain():
    assert correlated_t_test([1, 2], [1, 2], 0.2).within() == 1
    assert correlated_t_test([1, 2], [0, 1], 0.2).within() == 0
    assert correlated_t_test([1, 2], [2, 3], 0.2).within() == 0


def test_t_test_of_incomparable_runs_raises():
    for first, second in (([1.0], [1.0]), ([1, 2], [1]), ([1, math.nan], [1, 2])):
        with pytest.raises(DataError):
            correlated_t_test(first, second, 0.2)
    with pytest.raises(SettingError, match="correlation"):
        correlated_t_test(CF, FCF, 1.0)


@pytest.mark.parametrize("rope", [-1.0, math.nan, math.inf])
def test_posterior_region_out_of_range_raises(rope):
    for posterior in (correlated_t_test(CF, FCF, 0.2), correlated_t_test([1, 2], [1, 2], 0.2)):
        with pytest.raises(SettingError, match="rope = "):
            posterior.within(rope)


def test_posterior_picture_has_region_and_probability():
    known = correlated_t_test(CF, FCF, 0.2)
    certain = Posterior(mean=0.0, scale=0.0, dof=4)
    figure = draw_posteriors({"ml": {"P": known, "R": certain}, "sim": {"P": known}}, title="T")
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len(shown) == 3
    assert shown[0].get_title() == f"P: within {known.within():.4f}"
    low, high = shown[0].get_xlim()
    assert low < -0.005 < 0.005 < high
    with pytest.raises(DataError):
        draw_posteriors({}, title="T")
