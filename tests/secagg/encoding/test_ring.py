from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg import ParameterError
from secagg.encoding import Ring

MODULI = st.integers(1, 64).map(lambda b: 1 << b) | st.integers(2, 1 << 62)


@given(MODULI, st.data())
def test_sums_are_exact_modulo_r_and_lift_to_the_centre(modulus, data):
    ring = Ring(modulus)
    element = st.integers(0, modulus - 1)
    rows = data.draw(st.lists(st.lists(element, min_size=3, max_size=3), max_size=5))
    total = ring.zeros(3)
    for row in rows:
        ring.add_into(total, np.array(row, dtype=ring.dtype))
    ring.reduce(total)
    expected = [sum(column) % modulus for column in zip(*rows, strict=True)] or [0, 0, 0]
    assert total.tolist() == expected
    centred = [x if x <= (modulus - 1) // 2 else x - modulus for x in expected]
    assert ring.centre(total).tolist() == centred


@given(MODULI, st.data())
def test_subtracting_undoes_adding(modulus: int, data: st.DataObject) -> None:
    ring = Ring(modulus)
    row = st.lists(st.integers(0, modulus - 1), min_size=3, max_size=3)
    first, second = (np.array(data.draw(row), dtype=ring.dtype) for _ in range(2))
    total = first.copy()
    ring.subtract_from(total, second)
    if not ring.is_power_of_two:
        assert int(total.max()) < modulus
    ring.add_into(total, second)
    ring.reduce(total)
    assert total.tolist() == first.tolist()


@pytest.mark.parametrize(
    ("modulus", "bits", "dtype", "name"),
    [
        (2, 1, np.uint32, "2^1"),
        (1 << 32, 32, np.uint32, "2^32"),
        (1 << 33, 33, np.uint64, "2^33"),
        (1 << 64, 64, np.uint64, "2^64"),
        (257, 9, np.uint64, "257"),
    ],
)
def test_lanes_and_bits(modulus: int, bits: int, dtype: type, name: str) -> None:
    ring = Ring(modulus)
    assert (ring.bits, ring.dtype, str(ring)) == (bits, dtype, name)


@pytest.mark.parametrize("modulus", [0, 1, -5, (1 << 62) + 1, 1 << 65, 3.0, True])
def test_modulus_without_a_ring_is_rejected(modulus: object) -> None:
    with pytest.raises(ParameterError):
        Ring(modulus)
