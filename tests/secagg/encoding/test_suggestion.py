"""Suggested clip and fractional bits, and their stated errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import make_params
from secagg import FixedPoint, ParameterError, RoundParams, simulate_round

SAMPLE = np.random.default_rng(0).normal(size=10_000)


def params(n: int, encoding: FixedPoint, bits: int, **changes: object) -> RoundParams:
    return make_params(n, encoding=encoding, modulus_bits=bits, **changes)


@pytest.mark.filterwarnings("ignore::secagg.PrecisionWarning")  # too few bits for many clients
@given(
    st.floats(1e-9, 1e9),
    st.integers(3, 1 << 20),
    st.none() | st.integers(1, 1000),
    st.integers(32, 64),
)
def test_suggestion_is_the_finest_with_headroom(scale, n, max_weight, bits):
    """RoundParams accepts it, and one more fractional bit has no headroom or no use."""
    try:
        found = FixedPoint.suggest(SAMPLE * scale, n, max_weight=max_weight, modulus_bits=bits)
    except ParameterError:
        reached = np.quantile(np.abs(SAMPLE * scale), 0.999, method="inverted_cdf")
        coarsest = FixedPoint(2.0 ** np.ceil(np.log2(reached)), 0)
        with pytest.raises(ParameterError):
            params(n, coarsest, bits, max_weight=max_weight)
        return
    encoding = found.encoding
    assert params(n, encoding, bits, max_weight=max_weight).ring.bits == found.modulus_bits
    if encoding.fractional_bits < 52 and encoding.max_encoded < 1 << 61:
        finer = FixedPoint(encoding.clip, encoding.fractional_bits + 1)
        with pytest.raises(ParameterError):
            params(n, finer, bits, max_weight=max_weight)
    assert found.mean_error == 2.0**-encoding.fractional_bits
    assert found.sum_error == n * (max_weight or 1) * found.mean_error


def test_suggestion_states_errors_that_a_round_keeps() -> None:
    vectors = SAMPLE[:40].reshape(10, 4)
    found = FixedPoint.suggest(SAMPLE, 10, modulus_bits=24)
    result = simulate_round(vectors, params(10, found.encoding, 24))
    assert np.abs(result.sum - vectors.sum(axis=0)).max() <= found.sum_error
    assert np.abs(result.mean - vectors.mean(axis=0)).max() <= found.mean_error
    assert found.sum_error < 0.01


@pytest.mark.parametrize(
    ("sample", "quantile", "clip", "clipped"),
    [
        ([0.5, -1.0], 1.0, 1.0, 0.0),
        ([0.5, -1.01], 1.0, 2.0, 0.0),
        ([0.3] * 999 + [900.0], 0.999, 0.5, 0.001),
        ([0.3] * 9 + [-900.0], 0.999, 1024.0, 0.0),
        ([0.3] * 9 + [-900.0], 0.9, 0.5, 0.1),
        ([[3, -4], [1, 0]], 0.999, 4.0, 0.0),
    ],
)
def test_clip_is_the_power_of_two_that_a_quantile_reaches(sample, quantile, clip, clipped):
    found = FixedPoint.suggest(np.array(sample), 100, quantile=quantile)
    assert (found.encoding.clip, found.clipped) == (clip, clipped)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sample": np.zeros(0)},
        {"sample": np.zeros(5)},
        {"sample": np.full(5, 1e30)},
        {"sample": np.full(5, 1e9)},
        {"sample": np.array(["a"])},
        {"sample": np.array([1.0, np.nan])},
        {"summands": 0},
        {"summands": 1.5},
        {"max_weight": 0},
        {"modulus_bits": 65},
        {"modulus_bits": 6},
        {"quantile": 0.0},
        {"quantile": 1.1},
    ],
    ids=str,
)
def test_impossible_suggestion_is_an_error(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        FixedPoint.suggest(**{"sample": SAMPLE, "summands": 100, **wrong})
