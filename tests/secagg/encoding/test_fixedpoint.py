from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harness import ReplayedEntropy
from secagg import FixedPoint, Integers, ParameterError, _fast
from secagg.encoding import Ring
from secagg.encoding.encoding import take
from secagg.encoding.pieces import _SLICE

RING = Ring(1 << 32)


def test_check15_clipping_is_counted_or_rejected() -> None:
    vector = np.array([0.5, 1.0, -1.0, 1.5, -7.0])
    lanes, clipped = FixedPoint(clip=1.0, fractional_bits=4).encode(vector, RING)
    assert clipped == 2
    assert RING.centre(lanes).tolist() == [8, 16, -16, 16, -16]
    with pytest.raises(ParameterError, match="2 elements"):
        FixedPoint(clip=1.0, beyond_clip="refuse").encode(vector, RING)


def test_check15_stochastic_rounding_is_unbiased() -> None:
    """The mean of 200,000 roundings of x is x, within five standard errors."""
    encoding = FixedPoint(clip=1.0, fractional_bits=2)
    entropy = ReplayedEntropy("unbiased")
    for x in (0.3, -0.3, 0.01, 0.999, -0.74):
        integers, _ = encoding.encode_integers(np.full(200_000, x), entropy)
        fraction = (x * 4) % 1
        error = np.sqrt(fraction * (1 - fraction) / 200_000)
        assert abs(integers.mean() - x * 4) < 5 * error
        assert set(integers.tolist()) == {int(np.floor(x * 4)), int(np.floor(x * 4)) + 1}


def test_check15_stochastic_rounding_uses_injected_entropy() -> None:
    """Stochastic rounding draws on the injected entropy."""
    encoding = FixedPoint(clip=1.0, fractional_bits=2)
    vector = np.full(100, 0.3)
    entropy = ReplayedEntropy(1)
    first = encoding.encode_integers(vector, entropy)[0]
    assert [len(drawn) for drawn in entropy.drawn] == [16]
    assert first.tolist() == encoding.encode_integers(vector, ReplayedEntropy(1))[0].tolist()
    assert first.tolist() != encoding.encode_integers(vector, ReplayedEntropy(2))[0].tolist()

    def none(size: int) -> bytes:
        raise AssertionError("nearest rounding needs no entropy")

    FixedPoint(clip=1.0, rounding="nearest").encode_integers(vector, none)


@given(
    arrays(np.float64, st.integers(1, 20), elements=st.floats(-100, 100)),
    st.sampled_from([1 << 32, 1 << 64, 1 << 40, (1 << 61) - 1, 4_294_967_311]),
    st.integers(0, 12),
    st.sampled_from(["nearest", "stochastic"]),
)
def test_decoding_gives_back_the_vector_to_its_resolution(vector, modulus, bits, rounding):
    encoding = FixedPoint(clip=50.0, fractional_bits=bits, rounding=rounding)
    ring = Ring(modulus)
    lanes, clipped = encoding.encode(vector, ring)
    floats, integers = encoding.decode(lanes, ring)
    inside = np.clip(vector, -50.0, 50.0)
    assert clipped == np.count_nonzero(np.abs(vector) > 50.0)
    assert np.all(np.abs(floats - inside) <= 2.0**-bits / (2 if rounding == "nearest" else 1))
    assert floats.tolist() == encoding.decode_integers(integers).tolist()
    assert np.abs(integers).max() <= encoding.max_encoded


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_check15_nan_and_infinity_are_rejected(bad: float, rounding: str) -> None:
    vector = np.zeros(9)
    vector[6] = bad
    with pytest.raises(ParameterError, match="6"):
        FixedPoint(clip=1.0, rounding=rounding).encode(vector, RING)


WRONG = [
    [1.0, 2.0],
    np.zeros((2, 2)),
    *(np.zeros(2, dtype) for dtype in (np.int64, complex, np.float16, np.longdouble, "U1")),
]
"""float16, because numpy converts its subnormal numbers in other time."""


@pytest.mark.parametrize("vector", WRONG, ids=repr)
def test_wrong_vector_is_rejected(vector: object) -> None:
    with pytest.raises(ParameterError):
        FixedPoint(clip=1.0).encode(vector, RING)


@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
def test_subnormal_elements_of_binary32_count_as_zero(dtype: str) -> None:
    """They would be beyond this clip if they were widened first."""
    vector = np.array([2.0**-126, 2.0**-127, -(2.0**-149)], dtype).astype("=f4")
    out = np.empty(3, RING.dtype)
    clipped, _ = _fast.encode(vector, out, 2.0**-150, 2.0**16, 1, RING.modulus, None)
    assert clipped == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"clip": 0.0},
        {"clip": np.inf},
        {"clip": 2.0**61 + 512, "fractional_bits": 0},
        {"clip": "8"},
        {"fractional_bits": 53},
        {"rounding": "up"},
        {"beyond_clip": "wrap"},
        {"clip": 1e6, "fractional_bits": 50},
    ],
    ids=str,
)
def test_bad_setting_is_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        FixedPoint(**{"clip": 1.0, **wrong})
    assert FixedPoint(clip=2.0**61, fractional_bits=0)


def test_integers_outside_their_range_are_rejected() -> None:
    encoding = Integers(max=5)
    lanes, clipped = encoding.encode(np.array([0, 5]), RING, 3)
    assert (lanes.tolist(), clipped) == ([0, 15], 0)
    for bad in ([0, 6], [-1, 0], [0.0]):
        with pytest.raises(ParameterError):
            encoding.encode(np.array(bad), RING)
    with pytest.raises(ParameterError):
        Integers(max=0)


def test_check22_masked_array_hides_nothing_from_the_range() -> None:
    """A masked array cannot hide elements from the range check."""
    hidden = np.ma.array([1000, 1, 2, 3], mask=[1, 0, 0, 0])
    for encoding, vector in ((Integers(5), hidden), (FixedPoint(8.0), hidden.astype(float))):
        with pytest.raises(ParameterError):
            encoding.encode(vector, RING)


def test_byte_order_strides_and_read_only_do_not_matter() -> None:
    vector = np.array([0.5, -0.25, 3.0])
    for given_ in (
        vector.astype(">f8"),
        vector.astype("<f4"),
        np.repeat(vector, 2)[::2],
        np.frombuffer(vector.tobytes()),
    ):
        integers, _ = FixedPoint(8.0, rounding="nearest").encode_integers(given_)
        assert integers.tolist() == [32_768, -16_384, 196_608]


def test_source_of_entropy_that_returns_too_little_is_an_error() -> None:
    with pytest.raises(ParameterError):
        take(lambda size: b"", 16)


@pytest.mark.parametrize("weight", [-1, 1 << 60, 1.0, True])
@pytest.mark.parametrize(
    ("encoding", "vector"), [(FixedPoint(8.0), np.zeros(2)), (Integers(9), np.array([1, 2]))]
)
def test_weight_that_would_wrap_is_rejected(encoding, vector, weight):
    with pytest.raises(ParameterError):
        encoding.encode(vector, RING, weight)
    with pytest.raises(ParameterError):
        encoding.decode(np.zeros(2, dtype=np.int64), RING)
    with pytest.raises(ParameterError):
        Integers(100).encode(np.array([100]), Ring(7))


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
