"""Rotation: the matrix itself, its inverse, bounded elements, and kernel against twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg._fast import reference

IMPLEMENTATIONS = {"reference": reference, "active": _fast}

every = pytest.mark.parametrize("kernels", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
compiled = pytest.mark.skipif(not _fast.COMPILED, reason="compares kernel and twin")


def matrix(size: int) -> np.ndarray:
    """Return Sylvester's matrix, whose elements are (−1)^(common ones of i and j)."""
    found = np.ones((1, 1))
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    return found


def signs_of(size: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return words of signs, and the signs themselves."""
    words = np.random.default_rng(seed).integers(0, 2**64, -(-size // 64), dtype=np.uint64)
    bits = [int(words[i // 64]) >> i % 64 & 1 for i in range(size)]
    return words, 1 - 2 * np.array(bits)


@every
@pytest.mark.parametrize("size", [1, 2, 8, 64, 256])
def test_rotation_is_the_matrix(kernels, size):
    words, signs = signs_of(size)
    vector = np.random.default_rng(2).normal(size=size)
    there, back = vector.copy(), vector.copy()
    kernels.rotate(there, words, False)
    kernels.rotate(back, words, True)
    hadamard = matrix(size) / math.sqrt(size)
    np.testing.assert_allclose(there, hadamard @ (signs * vector), rtol=0, atol=1e-13)
    np.testing.assert_allclose(back, signs * (hadamard @ vector), rtol=0, atol=1e-13)


@every
@pytest.mark.parametrize("bits", [0, 2, 10, 14])
def test_two_transforms_of_integers_are_the_identity(kernels, bits):
    """H · H = D exactly: sums of integers, and 2^(−ℓ/2), have no rounding."""
    vector = np.random.default_rng(3).integers(-1000, 1000, 1 << bits).astype(float)
    twice = vector.copy()
    nothing = np.zeros(-(-vector.size // 64), np.uint64)
    kernels.rotate(twice, nothing, False)
    np.testing.assert_array_equal(twice * 2 ** (bits / 2), np.rint(twice * 2 ** (bits / 2)))
    kernels.rotate(twice, nothing, True)
    np.testing.assert_array_equal(twice, vector)


@compiled
@examples(40)
@given(bits=st.integers(0, 14), seed=st.integers(0, 2**32), inverse=st.booleans())
def test_compiled_rotation_against_its_twin(bits, seed, inverse):
    words, _ = signs_of(1 << bits, seed)
    found = np.random.default_rng(seed).standard_cauchy(1 << bits)
    hoped = found.copy()
    _fast.rotate(found, words, inverse)
    reference.rotate(hoped, words, inverse)
    assert found.tobytes() == hoped.tobytes()


floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1e-310, 2.0**-300, -(2.0**-301), 2.0**300, -1e308, 1.5]),
)


@compiled
@examples(60)
@given(
    elements=st.lists(floats, max_size=40),
    more=st.integers(0, 30),
    narrow=st.booleans(),
    bad=st.sampled_from([None, math.inf, -math.inf, math.nan]),
    at=st.integers(0, 39),
)
def test_compiled_widening_against_its_twin(elements, more, narrow, bad, at):
    if bad is not None:
        elements = [*elements[:at], bad, *elements[at:]]
    with np.errstate(over="ignore"):
        vector = np.array(elements, np.float32 if narrow else np.float64)
    found, hoped = np.full((2, vector.size + more), 7.0)
    one, other = _fast.widen(vector, found), reference.widen(vector, hoped)
    assert one[1] == other[1]
    if one[1] < 0:
        assert one == other
        assert found.tobytes() == hoped.tobytes()


@every
def test_widened_elements_are_bounded(kernels):
    out = np.empty(8)
    vector = np.array([3.0, -1e-320, 2.0**-299, -(2.0**-301), 1e308, -4.0])
    square, bad = kernels.widen(vector, out)
    assert out.tolist() == [3.0, 0.0, 2.0**-299, 0.0, 2.0**300, -4.0, 0.0, 0.0]
    assert (square, bad) == (2.0**600, -1)
    narrow = np.array([2.0**-126, 2.0**-127, -5.0], np.float32)
    assert kernels.widen(narrow, out)[0] == 25.0
    assert out.tolist() == [2.0**-126, 0.0, -5.0, *[0.0] * 5]
    assert kernels.widen(np.array([1.0, math.nan, math.inf]), out)[1] == 1


@every
def test_rotations_reject_wrong_arguments(kernels):
    values, signs = np.zeros(64), np.zeros(1, np.uint64)
    for rotated in (
        (values.astype(np.float32), signs, False),
        (np.zeros(128)[::2], signs, False),
        (values, signs.astype(np.int64), False),
        (np.zeros(96), np.zeros(2, np.uint64), False),
        (np.zeros(0), signs[:0], False),
        (values, np.zeros(2, np.uint64), True),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            kernels.rotate(*rotated)
    for widened in ((np.zeros(65), values), (values, values.astype(np.float32))):
        with pytest.raises(ValueError):  # noqa: PT011
            kernels.widen(*widened)
