import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf.data import from_triples
from fedmf.data.internal import INTERNAL, internal, to_internal, to_public


def test_ratings_are_mapped_to_one_to_five():
    ratings = from_triples([1, 1, 2], [1, 2, 1], [0.0, 50.0, 100.0], scale=(0, 100))
    mapped = internal(ratings)
    assert mapped.scale == INTERNAL
    assert mapped.values.tolist() == [1.0, 3.0, 5.0]
    assert internal(mapped) is mapped


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.lists(st.floats(0, 1), min_size=1, max_size=9),
)
def test_maps_are_inverse_and_stay_on_the_scale(low, width, parts):
    scale = (low, low + width)
    values = np.clip(low + width * np.array(parts), *scale)
    ones = np.ones(values.size, dtype=np.int64)
    ratings = from_triples(np.arange(values.size), ones, values, scale=scale)
    mapped = internal(ratings).values
    np.testing.assert_allclose(to_public(mapped, scale), values, atol=1e-9 * (abs(low) + width))
    assert mapped.min() >= 1
    assert mapped.max() <= 5


@pytest.mark.parametrize("change", [to_internal, to_public])
def test_numbers_off_the_scale_are_not_clipped(change):
    assert np.ptp(change(np.array([-9.0, 9.0]), (0.0, 2.0))) > 8
