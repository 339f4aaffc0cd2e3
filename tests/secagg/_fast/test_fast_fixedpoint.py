"""Fixed point: encoding and decoding against Python's integers and floats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg._fast import reference

KERNELS = {"reference": reference.encode, "active": _fast.encode}
if _fast.COMPILED:
    KERNELS["avx512"] = _fast._kernels.encode
    KERNELS["avx2"] = _fast._kernels.encode_avx2
    KERNELS["portable"] = _fast._kernels.encode_portable
every = pytest.mark.parametrize("kernels", [reference, _fast], ids=["reference", "active"])
encoders = pytest.mark.parametrize("encode", KERNELS.values(), ids=KERNELS)

# clip · scale from 3 to 2^62: past 2^51 a value no longer fits the mantissa with a half.
ranges = st.sampled_from(
    [
        (1.0, 3.0), (8.0, 65536.0), (0.3, 1e6), (1e-3, 2.0**20), (1.0, 2.0**50),
        (0.9999, 2.0**51), (1.0, 2.0**51), (4.0, 2.0**51), (1.0, 2.0**62), (1e300, 1e-290),
    ]
)  # fmt: skip
modulus_of_64 = st.one_of(
    st.integers(1, 64).map(lambda b: 2**b),
    st.integers(2, 2**62),
    st.sampled_from([3, 2**61 - 1, 2**62 - 1, 3 << 60]),
)
TINY = 2.0**-1022  # the least normal number
SUBNORMAL = [5e-324, -5e-324, TINY / 2, -TINY / 2, TINY - 5e-324]
fractions = st.one_of(
    st.floats(-1.5, 1.5),
    st.integers(-40, 40).map(lambda i: i / 16),
    st.sampled_from([0.0, -0.0, *SUBNORMAL, TINY, -TINY, 1.0, -1.0, 1e308, -1e308]),
)


def fitting(modulus: int, clip: float, scale: float, weight: int = 1) -> int:
    """`modulus`, or 2^62 if weighted elements do not fit: only powers of two may wrap."""
    wraps = modulus & (modulus - 1) and math.ceil(clip * scale) * weight >= modulus
    return 2**62 if wraps else modulus


@st.composite
def encodings(draw):
    clip, scale = draw(ranges)
    x = [value * min(clip, 1.0) for value in draw(st.lists(fractions, max_size=30))]
    if draw(st.booleans()):  # halves, the ties of round to nearest
        x = [(math.floor(value * scale) + 0.5) / scale for value in x if abs(value) < 1e300]
    x = x * draw(st.sampled_from([1, 1, 20]))
    most = max(1, int(2.0**62 / (clip * scale)))
    weight = draw(st.one_of(st.just(1), st.integers(0, min(most, 1000)), st.just(most)))
    if clip * scale * max(weight, 1) > 2.0**62:
        weight = 1
    lane = draw(st.sampled_from([np.uint32, np.uint64]))
    modulus = draw(
        st.integers(1, 32).map(lambda b: 2**b) if lane is np.uint32 else modulus_of_64
    )
    modulus = fitting(modulus, clip, scale, weight)
    seed = draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed).integers(0, 2**64, len(x), dtype=np.uint64)
    return np.array(x, np.float64), lane, clip, scale, weight, modulus, random


def round_one(x: float, clip: float, scale: float, noise: int | None) -> int:
    y = min(max(0.0 if abs(x) < TINY else x, -clip), clip) * scale
    if noise is None:
        return round(y)
    return math.floor(y) + ((noise >> 11) < (y - float(math.floor(y))) * 2.0**53)


@encoders
@examples(200)
@given(encoding=encodings(), stochastic=st.booleans())
def test_encode_against_python(encode, encoding, stochastic):
    x, lane, clip, scale, weight, modulus, random = encoding
    out = np.full(x.size, 123, lane)
    found = encode(x, out, clip, scale, weight, modulus, random if stochastic else None)
    assert found == (sum(abs(value) > clip for value in x.tolist()), -1)
    assert [type(value) for value in found] == [int, int]
    noise = random.tolist() if stochastic else [None] * x.size
    expected = [
        round_one(value, clip, scale, r) * weight % modulus
        for value, r in zip(x.tolist(), noise, strict=True)
    ]
    assert out.tolist() == expected


@pytest.mark.skipif(not _fast.COMPILED, reason="compares the compiled kernels with their twin")
@encoders
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@examples(40)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(0, 3000),
    bounds=ranges,
    modulus=modulus_of_64,
    stochastic=st.booleans(),
)
def test_long_vectors_against_the_twin(encode, dtype, seed, size, bounds, modulus, stochastic):
    clip, scale = bounds
    modulus = fitting(modulus, clip, scale)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=size) * min(clip, 1e30)
    x *= rng.choice([1, np.finfo(dtype).tiny, 0], size, p=[0.8, 0.1, 0.1])
    x = x.astype(dtype)
    random = rng.integers(0, 2**64, size, dtype=np.uint64) if stochastic else None
    out, expected = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    found = encode(x, out, clip, scale, 1, modulus, random)
    assert found == reference.encode(x, expected, clip, scale, 1, modulus, random)
    np.testing.assert_array_equal(out, expected)
    back, exact = np.zeros(size), np.zeros(size)
    _fast.decode(out, back, modulus, 1 / scale)
    reference.decode(out, exact, modulus, 1 / scale)
    np.testing.assert_array_equal(back, exact)


@encoders
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("random", [None, np.zeros(4, np.uint64)])
def test_check44_subnormal_elements_are_zero(encode, dtype, random):
    """Random bits of zero round any positive number up, so that these elements would show."""
    tiny = np.finfo(dtype).tiny
    least = np.nextafter(tiny, dtype(0))
    x, out = np.array([tiny, least, -least, -tiny], dtype), np.zeros(4, np.uint64)
    encode(x, out, 1.0, 1.0, 1, 2**64, random)
    up = int(random is not None)
    assert out.view(np.int64).tolist() == [up, 0, 0, 0]
    clipped, _ = encode(x, out, 5e-324, 1.0, 1, 2**64, random)
    assert clipped == 2


@encoders
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 256, 700])
@pytest.mark.parametrize("random", [None, np.zeros(701, np.uint64)])
def test_first_non_finite_element_is_named(encode, dtype, bad, place, random):
    x = np.full(701, 9.0, dtype)
    x[place:] = bad
    found = encode(x, np.zeros(701, np.uint32), 8.0, 16.0, 1, 2**32, random)
    assert found == (place if np.isnan(bad) else 701, place)


@every
@examples(60)
@given(data=st.data(), scale=st.sampled_from([1.0, 2.0**-16, 1e-6, 0.1]))
def test_decode_against_python(kernels, data, scale):
    narrow = data.draw(st.booleans())
    modulus = data.draw(st.integers(1, 32).map(lambda b: 2**b) if narrow else modulus_of_64)
    half = (modulus - 1) // 2
    residues = st.one_of(
        st.integers(0, modulus - 1),
        st.sampled_from(sorted({0, 1, half, min(half + 1, modulus - 1), modulus - 1})),
    )
    values = data.draw(st.lists(residues, max_size=40))
    out = np.full(len(values), 5.0)
    kernels.decode(np.array(values, np.uint32 if narrow else np.uint64), out, modulus, scale)
    lifted = [v if v <= half else v - modulus for v in values]
    assert out.tolist() == [float(v) * scale for v in lifted]


X, OUT, NOISE = np.zeros(4), np.zeros(4, np.uint32), np.zeros(4, np.uint64)
ARGUMENTS = {
    "x": X, "out": OUT, "clip": 8.0, "scale": 16.0, "weight": 1, "modulus": 2**32,
    "random": NOISE,
}  # fmt: skip
WRONG = {
    "x": [X[:3], X.astype(np.float16), X.astype(np.int64), X.reshape(2, 2), np.zeros(8)[::2]],
    "out": [OUT[:3], OUT.astype(np.int32), OUT.astype(np.uint8), OUT.reshape(2, 2)],
    "random": [NOISE[:3], X],
    "clip": [0.0, math.nan, math.inf],
    "scale": [-1.0, 2.0**63],
    "weight": [-1, 2**62],
    "modulus": [0, 1, 3, 2**33],
}


@every
@pytest.mark.parametrize("name", WRONG)
def test_encode_rejects_invalid_arguments(kernels, name):
    kernels.encode(*ARGUMENTS.values())
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=r"."):
            kernels.encode(*(ARGUMENTS | {name: value}).values())


@encoders
def test_weighted_elements_fit_a_modulus_that_is_no_power_of_two(encode):
    arguments = X, np.zeros(4, np.uint64), 7.95, 16.0, 3
    encode(*arguments, 385, None)
    with pytest.raises(ValueError, match="modulus"):
        encode(*arguments, 384, None)


@every
@pytest.mark.parametrize("modulus", [0, 1, 2**62 + 1, 2**65])
def test_64_bit_lanes_reject_wrong_moduli(kernels, modulus):
    wide = np.zeros(4, np.uint64)
    with pytest.raises(ValueError, match="modulus"):
        kernels.encode(X, wide, 8.0, 16.0, 1, modulus, None)
    with pytest.raises(ValueError, match="modulus"):
        kernels.decode(wide, X.copy(), modulus, 1.0)


@every
def test_decode_rejects_wrong_shapes(kernels):
    for values, out in (
        (NOISE, X[:3]),
        (NOISE.astype(np.int64), X),
        (NOISE, X.astype(np.float32)),
        (NOISE.reshape(2, 2), X),
        (NOISE, X.reshape(2, 2)),
    ):
        with pytest.raises(ValueError, match=r"."):
            kernels.decode(values, out, 2**32, 1.0)
