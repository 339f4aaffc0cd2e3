"""Shares of noise: their size, their places in the stream, and the law of their sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _fast
from secagg.encoding import Ring
from secagg.errors import ParameterError
from secagg.protocol.noise import Share

KEY = bytes(range(16))


def drawn(share: Share, key: bytes, start: int, count: int) -> np.ndarray:
    blocks = [block.copy() for block in share.blocks(key, start, count)]
    return np.concatenate([np.zeros(0, np.int64), *blocks])


@examples(100)
@given(
    sigma=st.integers(256, 1 << 48),
    survivors=st.integers(2, 1 << 20),
    part=st.floats(0, 1),
)
def test_honest_shares_have_the_variance_and_no_smaller_share_has(sigma, survivors, part):
    colluders = round(part * (survivors - 2))
    try:
        p = Share.of(sigma, survivors, colluders).scaled
    except ParameterError:
        each = sigma / 256 / math.sqrt(survivors - colluders)
        assert not 4.01 < each < 2**28 * 0.99
        return
    assert (p - 1) ** 2 * (survivors - colluders) < sigma**2 <= p**2 * (survivors - colluders)


def test_shares_out_of_range_are_an_error():
    for sigma, survivors, colluders in (
        (256 * 100, 900, 899),  # fewer than two honest survivors
        (256 * 3, 2, 0),
        (256 * 100, 900, 0),  # 3.3 steps each
        (1 << 49, 900, 0),
        (255, 3, 0),
        (1 << 48, 2, 0),
        (256 * 100, 900, -1),
    ):
        with pytest.raises(ParameterError):
            Share.of(sigma, survivors, colluders)
    for scaled in (1023, (1 << 36) + 1, 1024.0):
        with pytest.raises(ParameterError):
            Share(scaled)  # type: ignore[arg-type]


def test_parts_of_a_vector_get_the_noise_of_their_places():
    share = Share(28_160)
    whole = drawn(share, KEY, 0, 9000)
    assert len(set(whole[:4096].tolist()) & set(whole[4096:8192].tolist())) < 4096
    assert (whole[:4096] != whole[4096:8192]).any()
    for start, stop in ((0, 1), (4095, 4097), (4096, 9000), (8999, 9000), (100, 100)):
        part = drawn(share, KEY, start, stop - start)
        np.testing.assert_array_equal(part, whole[start:stop])


@pytest.mark.parametrize("modulus", [1 << 16, 1 << 48, 1 << 64, 97, 10**9 + 7])
def test_noise_is_added_modulo_r(modulus):
    share, ring = Share(28_160), Ring(modulus)
    noise = drawn(share, KEY, 7, 5000)
    before = np.random.default_rng(1).integers(0, modulus, 5000, dtype=np.uint64)
    values = before.astype(ring.dtype)
    share.adder(KEY, ring)(values, 7)
    ring.reduce(values)
    hoped = [(int(a) + int(b)) % modulus for a, b in zip(before, noise, strict=True)]
    assert values.tolist() == hoped


@pytest.mark.parametrize(("p", "shares"), [(1024, 1), (1203, 3)])
def test_frequencies_of_sums_fit_the_distribution(p, shares):
    frequencies(p, shares, 40_000)


@pytest.mark.slow
@pytest.mark.skipif(not _fast.COMPILED, reason="hours without the compiled kernel")
@pytest.mark.parametrize(("p", "shares"), [(1024, 1), (1228, 2), (1203, 8), (28_160, 3)])
def test_check12_chi_square_and_moments_of_a_hundred_million_sums(p, shares):
    found = frequencies(p, shares, 10**8)
    print(f"256 s = {p}, {shares} shares:", *(f"{each:+.2f}" for each in found))


def frequencies(p: int, shares: int, count: int) -> tuple[float, float, float]:
    """Assert that sums are plausible; return deviates of χ² and of two moments."""
    real = p / 256
    deviation = real * math.sqrt(shares)
    far = math.ceil(9 * deviation)
    single = np.exp(-(np.arange(-far, far + 1.0) ** 2) / (2 * real**2))
    law = single / single.sum()
    for _ in range(shares - 1):
        law = np.convolve(law, single / single.sum())
    law = law[law.size // 2 - far : law.size // 2 + far + 1]
    cells, block = np.zeros(2 * far + 1), min(count, 1 << 22)
    share = Share(p)
    for start in range(0, count, block):
        some = min(block, count - start)
        total = sum(drawn(share, bytes([i] * 16), start, some) for i in range(shares))
        assert abs(total).max() <= far
        cells += np.bincount(total + far, minlength=cells.size)
    keep = law * count >= 20
    observed = np.append(cells[keep], cells[~keep].sum())
    hoped = np.append(law[keep], law[~keep].sum()) * count
    degrees = observed.size - 1
    chi = (float(((observed - hoped) ** 2 / hoped).sum()) - degrees) / math.sqrt(2 * degrees)
    squares = (np.arange(-far, far + 1.0) / deviation) ** 2
    # the second and fourth moment of a Gaussian have variances 2 and 96 for each sample
    second = (float(cells @ squares) / count - 1) / math.sqrt(2 / count)
    fourth = (float(cells @ squares**2) / count - 3) / math.sqrt(96 / count)
    for deviate in (chi, second, fourth):
        assert abs(deviate) < 5
    return chi, second, fourth
