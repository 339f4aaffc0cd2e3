from __future__ import annotations

import numpy as np
import pytest

from secagg.encoding import Ring
from secagg.protocol import keys
from secagg.protocol.masks import MaskSum


def test_lower_id_adds_and_the_higher_subtracts() -> None:
    """Bonawitz 2017, §4; the other way round would also cancel but not be the protocol."""
    assert keys.subtracts(4, np.array([3, 5], np.uint64)).tolist() == [True, False]


@pytest.mark.parametrize("modulus", [1 << 8, 1 << 32, 1 << 40, 1 << 64, 257, (1 << 61) - 1])
def test_masks_of_either_sign_cancel(modulus: int) -> None:
    ring = Ring(modulus)
    values = ring.zeros(100)
    values[:] = np.arange(100)
    there, back = MaskSum(), MaskSum()
    for i in range(5):
        there.add(bytes([i]) * 16, negate=i % 2 == 0)
        back.add(bytes([i]) * 16, negate=i % 2 == 1)
    there.apply(values, ring)
    ring.reduce(values)
    assert values.max() < modulus
    assert np.count_nonzero(values == np.arange(100)) < 10
    back.apply(values, ring)
    ring.reduce(values)
    assert values.tolist() == list(range(100))


def test_check29_mask_keys_are_not_printed() -> None:
    total = MaskSum()
    total.add(b"sixteen byte key")
    assert "sixteen" not in repr(total)
