"""No encoding loses its elements to rounding without an error or a warning."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import FixedPoint, Integers, ParameterError, PrecisionWarning
from secagg.encoding import Ring, from_canonical

RING = Ring(1 << 64)
BELOW = [(1.5e-5, 16), (math.nextafter(2.0**-16, 0.0), 16), (0.9, 0), (0.49, 1), (1e-15, 49)]
BELOW += [(1e-16, 52), (2.0**-1022, 52), (5e-324, 0)]
FEW = [(2.0**-16, 16), (1e-3, 16), (0.5, 1), (0.5, 7), (0.99, 6), (0.1, 9), (2.0**-52, 52)]
# whole numbers and halves are exact
ENOUGH = [(0.002, 16), (0.5, 8), (1e-8, 40), (1e-13, 52), (1.0, 0), (5.0, 1), (2.0, 2)]


@pytest.mark.parametrize(("clip", "bits"), BELOW)
def test_clip_below_the_step_is_rejected(clip: float, bits: int) -> None:
    with pytest.raises(ParameterError):
        FixedPoint(clip, bits)
    with pytest.raises(ParameterError):  # also one of the other side
        from_canonical(b"fixed point" + np.float64(clip).tobytes() + np.uint64(bits).tobytes())


@pytest.mark.parametrize(("clip", "bits"), FEW)
def test_clip_of_few_steps_warns(clip: float, bits: int) -> None:
    with pytest.warns(PrecisionWarning) as caught:
        FixedPoint(clip, bits)
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize(("clip", "bits"), ENOUGH)
def test_clip_of_many_steps_or_of_whole_numbers_does_not_warn(clip: float, bits: int) -> None:
    assert FixedPoint(clip, bits).max_encoded >= 1


@given(st.floats(2.0**-1022, 2.0**20), st.integers(0, 40), st.floats(-1, 1))
@examples(300)
def test_rounding_without_a_word_keeps_a_percent_of_the_clip(clip, bits, part):
    try:
        with warnings.catch_warnings(category=PrecisionWarning, action="error"):
            encoding = FixedPoint(clip, bits)
    except (ParameterError, PrecisionWarning):
        return
    floats = np.array([part * clip])
    found = encoding.decode(encoding.encode(floats, RING)[0], RING)[0]
    assert abs(found - floats)[0] <= max(0.01 * clip, 2.0**-bits if clip >= 1 else 0.0)


@pytest.mark.parametrize("elements", [[-1], [-100, 100], [0, 0, -2], [127, -127]])
def test_remedy_for_negative_integers_helps(elements: list[int]) -> None:
    """An encoding of floats without fractional bits sums them exactly."""
    with pytest.raises(ParameterError):
        Integers(127).encode(np.array(elements), RING)
    encoding = FixedPoint(127.0, fractional_bits=0)
    lanes, _ = encoding.encode(np.array(elements, np.float64), RING)
    assert encoding.decode(3 * lanes, RING)[1].tolist() == [3 * x for x in elements]
