"""Bit packing against one big integer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg._fast import reference

KERNELS: dict[str, Any] = {"reference": reference, "active": _fast}
if _fast.COMPILED:
    KERNELS["best"] = _fast._kernels
    KERNELS["portable"] = SimpleNamespace(
        pack_bits=_fast._kernels.pack_bits_portable,
        pack_into=_fast._kernels.pack_into_portable,
        unpack_bits=_fast._kernels.unpack_bits,
    )
every = pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS.keys())
lanes = pytest.mark.parametrize("lane", [np.uint32, np.uint64])


def random_values(seed: int, size: int, lane: type) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, np.iinfo(lane).max, size, dtype=lane, endpoint=True)


def test_known_answer():
    """By hand: 1, 2, 3 at 3 bits are 0b011_010_001, two bytes from the low end."""
    for kernels in KERNELS.values():
        assert kernels.pack_bits(np.array([1, 2, 3], np.uint32), 3) == b"\xd1\x00"
        assert kernels.pack_bits(np.array([0x12345], np.uint32), 20) == b"\x45\x23\x01"


@every
@lanes
@examples(150)
@given(
    bits=st.integers(1, 64),
    size=st.one_of(st.integers(0, 40), st.integers(0, 300), st.integers(0, 3000)),
    seed=st.integers(0, 99),
)
def test_against_one_big_integer(kernels, lane, bits, size, seed):
    bits = min(bits, 8 * np.dtype(lane).itemsize)
    values = random_values(seed, size, lane)
    kept = [value % 2**bits for value in values.tolist()]
    string = sum(value << i * bits for i, value in enumerate(kept))
    packed = kernels.pack_bits(values, bits)
    assert type(packed) is bytes
    assert packed == string.to_bytes((size * bits + 7) // 8, "little")
    into = np.full(len(packed) + 2, 0xEE, np.uint8)
    kernels.pack_into(values, bits, into[1:-1])
    assert into.tobytes() == b"\xee" + packed + b"\xee"
    out = np.full(size, 77, lane)
    kernels.unpack_bits(memoryview(bytearray(packed)), bits, out)
    assert out.tolist() == kept


@every
def test_set_padding_is_rejected(kernels):
    """9 bits of 16 are used: any of the 7 others is an error."""
    out = np.zeros(3, np.uint32)
    for bit in range(1, 8):
        with pytest.raises(ValueError, match="padding"):
            kernels.unpack_bits(bytes([0xFF, 1 | 1 << bit]), 3, out)
    kernels.unpack_bits(b"\xff\x01", 3, out)
    assert out.tolist() == [7, 7, 7]


NARROW, WIDE = np.zeros(4, np.uint32), np.zeros(4, np.uint64)


@every
def test_rejects_wrong_shapes(kernels):
    for size in (0, 1, 3):
        with pytest.raises(ValueError, match="bytes"):
            kernels.unpack_bits(bytes(size), 3, np.zeros(3, np.uint32))
        with pytest.raises(ValueError, match=r"."):
            kernels.pack_into(np.zeros(3, np.uint32), 3, np.zeros(size, np.uint8))
    for values, bits in (
        *((NARROW, bits) for bits in (0, 33)),
        *((WIDE, bits) for bits in (-1, 65)),
        *((NARROW.astype(kind), 8) for kind in (np.int32, np.float64)),
        (NARROW.reshape(2, 2), 8),
        (np.zeros(8, np.uint32)[::2], 8),
    ):
        with pytest.raises(ValueError, match=r"."):
            kernels.pack_bits(values, bits)
        with pytest.raises(ValueError, match=r"."):
            kernels.unpack_bits(bytes(max(0, (values.size * bits + 7) // 8)), bits, values)
