"""Encoding slice by slice gives what encoding a whole vector gives."""

from __future__ import annotations

import numpy as np
import pytest

from secagg import FixedPoint, _fast
from secagg.encoding import Ring
from secagg.encoding.pieces import _SLICE

RING = Ring(1 << 32)
SIZES = (1, _SLICE - 1, _SLICE, _SLICE + 1, 2 * _SLICE + 77)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_bits_are_one_stream_over_all_slices(size: int, dtype: type) -> None:
    values = np.random.default_rng(size).uniform(-9, 9, size).astype(dtype)
    encoding = FixedPoint(8.0, 10)
    found, clipped = encoding.encode(values, RING, 3, lambda n: bytes(range(n)))
    bits, whole = np.zeros(size, np.uint64), np.empty(size, np.uint32)
    _fast.mask_words(bits, bytes(range(16)), b"\x00")
    expected = _fast.encode(values, whole, 8.0, 1024.0, 3, RING.modulus, bits)
    assert (clipped, -1) == expected
    assert clipped == np.count_nonzero(np.abs(values) > 8)
    np.testing.assert_array_equal(found, whole)
