"""Masked inputs written block by block, against whole vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secagg
from effort import examples
from secagg import FixedPoint, Integers, ParameterError, RoundParams, _fast
from secagg.client import masked_input
from secagg.client.masked_input import Input
from secagg.encoding import Encoding, Vector
from secagg.protocol.masks import MaskSum, filled
from secagg.protocol.messages import MaskedInput, encode, start

ENCODINGS: list[Encoding] = [
    FixedPoint(2.0, 3, rounding="nearest"),
    FixedPoint(2.0, 3),
    Integers(9),
]
SEED = bytes(range(16))


def params_of(
    length: int, encoding: Encoding, modulus: int, weight: int | None, *, count: bool = False
) -> RoundParams:
    return RoundParams(
        n_clients=3,
        threshold=2,
        length=length,
        encoding=encoding,
        modulus=modulus,
        max_weight=weight,
        count_clipped=count,
    )


def vector_of(length: int, encoding: Encoding) -> Vector:
    draw = np.random.default_rng(length)
    if isinstance(encoding, Integers):
        return draw.integers(0, 9, length, endpoint=True)
    return draw.uniform(-3, 3, length)


def masks(count: int) -> MaskSum:
    total = MaskSum()
    for i in range(count):
        total.add(bytes([i]) * 16, negate=i % 2 == 1)
    return total


def expected(vector: Vector, weight: int | None, params: RoundParams, count: int) -> bytes:
    """Encode, mask and pack the whole vector, one step after the other."""
    ring, factor = params.ring, 1 if weight is None else weight
    values, clipped = params.encoding.encode(vector, ring, factor, lambda n: SEED[:n])
    elements = ring.zeros(params.elements)
    more = [] if weight is None else [weight]
    elements[: values.size] = values
    elements[values.size :] = [*more, clipped] if params.count_clipped else more
    masks(count).apply(elements, ring)
    ring.reduce(elements)
    return _fast.pack_bits(elements, ring.bits)


@examples(60)
@given(
    length=st.integers(1, 100),
    encoding=st.sampled_from(ENCODINGS),
    modulus=st.sampled_from([1 << 12, 1 << 20, 1 << 32, 1 << 37, 1 << 64, 9973, (1 << 61) - 1]),
    weight=st.sampled_from([None, 0, 3]),
    clipped=st.booleans(),
    count=st.integers(0, 3),
    threads=st.sampled_from([1, 3]),
)
def test_blocks_are_those_of_the_whole_vector(
    length, encoding, modulus, weight, clipped, count, threads
):
    count_clipped = clipped and isinstance(encoding, FixedPoint)
    most = None if weight is None else 3
    params = params_of(length, encoding, modulus, most, count=count_clipped)
    vector = vector_of(length, encoding)
    size = -(-params.elements * params.ring.bits // 8)
    given_input = Input(vector, weight, params, lambda n: SEED[:n])
    total = masks(count)
    secagg.set_threads(threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masked_input, "_BLOCK", 16)
        patch.setattr(masked_input, "_ALONE", 0)
        patch.setattr(MaskSum, "slices", lambda *_: (8, 0))
        try:
            found, _ = filled([b"head"], size, lambda packed: given_input.write(packed, total))
        finally:
            secagg.set_threads(None)
    assert found == b"head" + expected(vector, weight, params, count)


def test_last_bad_element_is_named():
    """It comes after the blocks, with the elements that do not fill a byte."""
    encoding = FixedPoint(2.0, 3)
    vector = np.zeros(21)
    vector[20] = np.inf
    params = params_of(21, encoding, 1 << 20, None)
    given_input = Input(vector, None, params, lambda n: SEED[:n])
    with pytest.raises(ParameterError, match=r"\b20\b"):
        filled([], 53, lambda packed: given_input.write(packed, masks(1)))


def test_an_encoding_of_the_caller_encodes_the_whole_vector():
    class Shifted(FixedPoint):
        def encode(self, vector, ring, weight=1, entropy=None):
            values, clipped = super().encode(vector, ring, weight, entropy)
            return values + ring.dtype.type(1), clipped

    encoding = Shifted(2.0, 3, rounding="nearest")
    params = params_of(9, encoding, 1 << 20, None)
    packed = bytearray(23)
    Input(np.zeros(9), None, params, lambda n: SEED[:n]).write(memoryview(packed), masks(0))
    assert bytes(packed) == _fast.pack_bits(np.ones(9, np.uint32), 20)


@pytest.mark.parametrize(
    "made",
    [
        np.full(9, -1, np.int64),
        np.full(9, 0.7),
        np.zeros(9, np.uint32),
        np.zeros((9, 1), np.uint64),
        [0] * 9,
        np.full(9, 9973, np.uint64),
    ],
)
def test_elements_of_an_own_encoding_must_be_those_of_the_ring(made):
    class Own(FixedPoint):
        def encode(self, vector, ring, weight=1, entropy=None):
            return made, 0

    params = params_of(9, Own(2.0, 3), 9973, None)
    with pytest.raises(ParameterError):
        Input(np.zeros(9), None, params, lambda n: SEED[:n])


def test_vectors_of_several_whole_blocks_are_those_of_one():
    """At the real size of a block."""
    length = 2 * masked_input._BLOCK + 1003
    encoding = FixedPoint(2.0, 3, rounding="nearest")
    params = params_of(length, encoding, 1 << 20, None)
    vector = np.random.default_rng(5).normal(size=length)
    packed = bytearray(-(-length * 20 // 8))
    Input(vector, None, params, lambda n: SEED[:n]).write(memoryview(packed), masks(3))
    assert bytes(packed) == expected(vector, None, params, 3)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65535, 65536])
def test_a_message_begins_as_it_is_encoded(size):
    fields = (3, bytes(32), b"deposits", b"complaints", b"disclosed", b"accepted")
    whole = encode(MaskedInput(*fields, bytes(size)))
    assert start(MaskedInput(*fields, b""), size) + bytes(size) == whole


def test_filled_bytes_are_not_copied():
    addresses = []

    def fill(memory: memoryview) -> None:
        memory[:] = b"content"
        addresses.append(np.frombuffer(memory, np.uint8).ctypes.data)

    made, _ = filled([b"a", b"bc"], 7, fill)
    assert type(made) is bytes
    assert made == b"abccontent"
    assert np.frombuffer(made, np.uint8)[3:].ctypes.data == addresses[0]
