"""Slots: sums of packed vectors are packed sums, up to capacity and not one beyond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import FixedPoint, Integers, ParameterError
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
            with pytest.raises(ParameterError, match="sum"):
                packing.unpack([sign * (full + (1 << (bits * slot)) * 2**bits)], KEY_BITS)
    with pytest.raises(ParameterError, match="sum"):
        packing.unpack([full + (1 << (bits * 3)) * 2], KEY_BITS)


def test_element_beyond_a_slot_is_rejected():
    packing = Packing(encoding=Integers(7), length=2, summands=2)
    for bad in ([8, 0, 1], [-8, 0, 1], [0, 0, 8]):
        with pytest.raises(ParameterError, match="7"):
            packing.pack(np.array(bad), KEY_BITS)
    with pytest.raises(ParameterError, match="element 1"):
        packing.pack(np.array([0, -(2**63), 1]), KEY_BITS)  # its absolute value is negative
    for kind in ("int32", "uint64", "float64"):
        with pytest.raises(ParameterError, match=kind):
            packing.pack(np.array([1, 2, 1], dtype=kind), KEY_BITS)
    with pytest.raises(ParameterError, match="list"):
        packing.pack([1, 2, 1], KEY_BITS)
    with pytest.raises(ParameterError, match="shape"):
        packing.pack(np.array([1, 2]), KEY_BITS)
    with pytest.raises(ParameterError):
        packing.unpack([0, 0], KEY_BITS)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"encoding": FixedPoint}, "encoding"),
        ({"encoding": 8.0}, "encoding"),
        ({"length": 0}, "length"),
        ({"length": 1.0}, "length"),
        ({"summands": 0}, "summands"),
        ({"summands": True}, "summands"),
        ({"max_weight": 0}, "max_weight"),
        ({"session": "text"}, "session"),
        ({"session": bytes(65)}, "session"),
        ({"encoding": FixedPoint(2.0**40), "summands": 128}, "2\\^62"),
        ({"encoding": Integers(2**40), "max_weight": 2**30}, "2\\^62"),
        ({"encoding": Integers(2**40), "summands": 2**22}, "2\\^62"),
        ({"encoding": Integers(2**40), "summands": np.int64(2**32)}, "2\\^62"),
        ({"summands": 2**40 + 1}, "summands"),
    ],
)
def test_impossible_packings_are_rejected(change, match):
    with pytest.raises(ParameterError, match=match):
        Packing(**{"encoding": FixedPoint(8.0), "length": 5, "summands": 10} | change)


def test_integers_of_numpy_do_not_wrap_in_a_packings_products():
    """2^40 · 2^30 · 1 is 2^70, or 64 modulo 2^64."""
    with pytest.raises(ParameterError, match="2\\^62"):
        Packing(encoding=Integers(np.int64(2**40)), length=5, summands=1, max_weight=2**30)
    ours = Packing(encoding=FixedPoint(8.0, 16), length=5, summands=10)
    numpys = Packing(encoding=FixedPoint(8.0, np.int8(16)), length=5, summands=10)
    assert type(numpys.encoding.fractional_bits) is type(Integers(np.int8(5)).max) is int
    assert numpys.digest == ours.digest


def test_three_summands_have_one_guard_bit():
    packing = Packing(encoding=Integers(1), length=2, summands=3)
    assert packing.slot_bits == 3
    total = 3 * packing.pack(np.array([1, 0, 1]), KEY_BITS)[0]
    assert packing.unpack([total], KEY_BITS).tolist() == [3, 0, 3]


def test_check35_every_public_parameter_is_in_the_digest():
    base = {
        "encoding": FixedPoint(8.0, 16),
        "length": 5,
        "summands": 10,
        "max_weight": 3,
        "session": b"a",
    }
    changes = [
        {"encoding": FixedPoint(8.0, 15)},
        {"encoding": FixedPoint(4.0, 16)},
        {"encoding": Integers(8)},
        {"length": 6},
        {"summands": 11},
        {"max_weight": None},
        {"max_weight": 4},
        {"session": b"b"},
    ]
    digests = {Packing(**base | change).digest for change in [{}, *changes]}
    assert len(digests) == len(changes) + 1
    assert Packing(**base).digest == Packing(**base).digest


def test_key_without_room_for_a_slot_is_rejected():
    packing = Packing(encoding=Integers(2**60), length=1, summands=1)
    assert packing.slots(63) == 1
    with pytest.raises(ParameterError):
        packing.slots(62)


def test_weights_are_required_and_bounded():
    plain = Packing(encoding=Integers(7), length=2, summands=2)
    weighted = Packing(encoding=Integers(7), length=2, summands=2, max_weight=5)
    vector = np.array([1, 2])
    with pytest.raises(ParameterError, match="max_weight"):
        plain.encode(vector, 1)
    for weight in (None, 6, -1, 1.0, True):
        with pytest.raises(ParameterError, match="weight"):
            weighted.encode(vector, weight)
    np.testing.assert_array_equal(plain.encode(vector)[0], [1, 2, 1])
    np.testing.assert_array_equal(weighted.encode(vector, 5)[0], [5, 10, 5, 1])
    np.testing.assert_array_equal(weighted.encode(vector, 0)[0], [0, 0, 0, 1])
    assert (plain.filled, weighted.filled) == (3, 4)
    with pytest.raises(ParameterError, match="3 elements"):
        plain.encode(np.array([1, 2, 3]))
