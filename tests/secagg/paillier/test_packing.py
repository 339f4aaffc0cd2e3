"""Slots: sums of packed vectors are packed sums, up to capacity and not one beyond."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import Bounded, FixedPoint, Integers, ParameterError
from secagg.paillier import Packing

KEY_BITS = 512


@st.composite
def packings(draw):
    encoding = draw(
        st.one_of(
            st.builds(FixedPoint, st.sampled_from([1.0, 1.5, 8.0, 100.0]), st.integers(0, 20)),
            st.builds(Integers, st.integers(1, 1 << 20)),
        )
    )
    return Packing(
        encoding=encoding,
        length=draw(st.integers(1, 60)),
        summands=draw(st.integers(1, 1000)),
        max_weight=draw(st.one_of(st.none(), st.integers(1, 1000))),
    )


@given(packings(), st.data())
@examples(150)
def test_check34_sums_differences_and_multiples_of_slots(packing, data):
    """A plaintext is linear in all of its slots, whatever the signs, up to its capacity."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    most = packing.max_element
    factors, room = [], packing.summands
    while room and len(factors) < 5:
        factor = data.draw(st.integers(1, room))
        room -= factor
        factors.append(factor * data.draw(st.sampled_from([1, -1])))
    rows = [
        data.draw(
            st.sampled_from(
                [
                    np.full(packing.filled, most),
                    np.full(packing.filled, -most),
                    rng.integers(-most, most, packing.filled, endpoint=True),
                ]
            )
        )
        for _ in factors
    ]
    packed = [packing.pack(row, KEY_BITS) for row in rows]
    total = [
        sum(f * p for f, p in zip(factors, column, strict=True))
        for column in zip(*packed, strict=True)
    ]
    assert all(2 * abs(t) < 1 << (KEY_BITS - 1) for t in total)
    expected = sum(f * row for f, row in zip(factors, rows, strict=True))
    np.testing.assert_array_equal(packing.unpack(total, KEY_BITS), expected)


@given(packings())
@examples(50)
def test_check34_slot_has_guard_bits_for_all_summands(packing):
    one = (2 * packing.max_element).bit_length()
    guard = packing.slot_bits - one
    assert (1 << packing.slot_bits) > 2 * packing.max_sum
    needed = (packing.summands - 1).bit_length()  # ⌈log2 summands⌉
    assert guard in (needed - 1, needed)
    assert (1 << (packing.slot_bits - 1)) <= 2 * packing.max_sum  # and no bit is wasted
    assert packing.slots(KEY_BITS) * packing.slot_bits <= KEY_BITS - 1


def test_check34_top_slot_overflows_by_one():
    packing = Packing(encoding=Integers(7), length=3, summands=2)
    bits = packing.slot_bits
    assert packing.plaintexts(KEY_BITS) == 1
    full = packing.pack(np.array([7, 7, 7, 7]), KEY_BITS)[0] * 2
    np.testing.assert_array_equal(packing.unpack([full], KEY_BITS), [14] * 4)
    for slot in range(4):
        for sign in (1, -1):
            with pytest.raises(ParameterError):
                packing.unpack([sign * (full + (1 << (bits * slot)) * 2**bits)], KEY_BITS)
    with pytest.raises(ParameterError):
        packing.unpack([full + (1 << (bits * 3)) * 2], KEY_BITS)


@pytest.mark.parametrize(
    "integers",
    [
        np.array([8, 0, 1]),
        np.array([0, -8, 1]),
        np.array([0, 0, 8]),
        np.array([0, -(2**63), 1]),  # its absolute value is negative
        *(np.array([1, 2, 1], dtype=kind) for kind in ("int32", "uint64", "float64")),
        [1, 2, 1],
        np.array([1, 2]),
    ],
)
def test_element_beyond_a_slot_is_rejected(integers):
    packing = Packing(encoding=Integers(7), length=2, summands=2)
    with pytest.raises(ParameterError):
        packing.pack(integers, KEY_BITS)


@pytest.mark.parametrize(
    "change",
    [
        {"encoding": FixedPoint},
        {"encoding": Bounded(1.0, 8)},
        {"length": 0},
        {"length": 2**31 + 1},
        {"summands": 0},
        {"summands": 2**40 + 1},
        {"max_weight": 0},
        {"max_weight": 2**53 + 1, "encoding": Integers(1)},
        {"session": "text"},
        {"encoding": FixedPoint(2.0**40), "summands": 128},
        {"encoding": Integers(2**40), "max_weight": 2**30},
        {"encoding": Integers(2**40), "summands": np.int64(2**32)},  # 2^70 is 64 modulo 2^64
        {"encoding": Integers(np.int64(2**40)), "summands": 1, "max_weight": 2**30},
    ],
)
def test_impossible_packings_are_rejected(change):
    with pytest.raises(ParameterError):
        Packing(**{"encoding": FixedPoint(8.0), "length": 5, "summands": 10} | change)


def test_key_without_room_for_a_slot_is_rejected():
    packing = Packing(encoding=Integers(2**60), length=1, summands=1)
    assert packing.slots(63) == 1
    with pytest.raises(ParameterError):
        packing.slots(62)


def test_weights_are_required_and_bounded():
    plain = Packing(encoding=Integers(7), length=2, summands=2)
    weighted = replace(plain, max_weight=5)
    vector = np.array([1, 2])
    for packing, x, weight in (
        (plain, vector, 1),
        (plain, np.array([1, 2, 3]), None),
        *((weighted, vector, w) for w in (None, 6, -1, 1.0, True)),
    ):
        with pytest.raises(ParameterError):
            packing.encode(x, weight)
    np.testing.assert_array_equal(plain.encode(vector)[0], [1, 2, 1])
    np.testing.assert_array_equal(weighted.encode(vector, 5)[0], [5, 10, 5, 1])
    with pytest.raises(ParameterError):
        plain.unpack([0, 0], KEY_BITS)
