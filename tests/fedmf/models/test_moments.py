"""Packed tables of moments, and the check of sums that are too coarse."""

import numpy as np
import pytest

from fedmf.errors import SettingError
from fedmf.models.moments import lower, solved, symmetric


def test_triangles_are_inverted():
    rows = np.random.default_rng(5).normal(size=(7, 4))
    assert lower(rows).shape == (7, 10)
    np.testing.assert_allclose(symmetric(lower(rows), 4), rows[:, :, None] * rows[:, None])
    np.testing.assert_allclose(symmetric(lower(rows)[2], 4), np.outer(rows[2], rows[2]))


@pytest.mark.parametrize("least", [0.5, np.array([0.5, 0.5])])
def test_rounding_may_take_less_than_half_of_the_penalty(least):
    normal, right = np.array([np.diag([3.0, 0.26]), np.eye(2)]), np.ones((2, 2))
    np.testing.assert_allclose(solved(normal, right, 0.5, least), [[1 / 3, 1 / 0.26], [1, 1]])
    normal[0, 1, 1] = 0.24
    with pytest.raises(SettingError, match="fractional_bits"):
        solved(normal, right, 0.5, least)
