"""Masks of all tiers: the same stream however it is cut, and uniform over Z_R."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from mask_case import IMPLEMENTATIONS, every
from secagg._fast import reference, reference_masks

KEY = bytes(range(16))


@pytest.mark.check(12)
@every
@examples(20)
@given(
    cuts=st.lists(st.integers(0, 5000), max_size=6),
    workers=st.integers(1, 4),
    start=st.integers(0, 100),
    modulus=st.sampled_from([0, 3 << 60, 1_000_003]),
)
def test_check12_one_stream_for_any_split_and_thread_count(
    masks, cuts, workers, start, modulus
):
    lane = np.uint32 if modulus == 0 and start % 2 else np.uint64
    whole = np.zeros(5000, lane)
    parts = np.zeros(5000, lane)
    both, signs = KEY + bytes(16), b"\0\1"

    def run(acc, first):
        if modulus:
            masks.mask_mod(acc, both, signs, modulus, first)
        else:
            masks.mask_words(acc, both, signs, first)

    run(whole, start)
    edges = sorted({0, *cuts, 5000})
    with ThreadPoolExecutor(workers) as pool:
        for done in [
            pool.submit(run, parts[low:high], start + low) for low, high in pairwise(edges)
        ]:
            done.result()
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.check(12)
@pytest.mark.parametrize("chunk", [8, 24, 128, 4096])
def test_check12_one_stream_for_any_block_size(monkeypatch, chunk):
    """The twin works in chunks of keystream, of whatever size."""
    words, residues = np.zeros(3000, np.uint32), np.zeros(3000, np.uint64)
    monkeypatch.setattr(reference_masks, "_CHUNK", chunk)
    reference.mask_words(words, KEY, b"\0", 5)
    reference.mask_mod(residues, KEY, b"\1", 3 << 60, 5)
    monkeypatch.undo()
    for masks in IMPLEMENTATIONS.values():
        masks.mask_words(words, KEY, b"\1", 5)
        masks.mask_mod(residues, KEY, b"\0", 3 << 60, 5)
        assert not words.any()
        assert not residues.any()
        masks.mask_words(words, KEY, b"\0", 5)
        masks.mask_mod(residues, KEY, b"\1", 3 << 60, 5)


def chi_square(values: np.ndarray, classes: int) -> float:
    """Distance from uniform in standard deviations of the statistic."""
    expected = values.size / classes
    statistic = ((np.bincount(values, minlength=classes) - expected) ** 2).sum() / expected
    return float((statistic - (classes - 1)) / np.sqrt(2 * (classes - 1)))


@pytest.mark.check(13)
@every
@pytest.mark.parametrize("modulus", [2, 3, 5, 7, 10, 255, 257, 1000])
def test_check13_masks_are_uniform_over_z_r(masks, modulus):
    acc = np.zeros(200_000, np.uint64)
    masks.mask_mod(acc, KEY, b"\0", modulus)
    assert acc.max() == modulus - 1
    assert chi_square(acc.astype(np.int64), modulus) < 5


@pytest.mark.check(13)
@every
def test_check13_rejection_removes_the_bias(masks):
    """Without rejection a mask over R = 3 · 2^60 is 0 mod 3 six times in 16, not one in 3."""
    acc = np.zeros(200_000, np.uint64)
    masks.mask_mod(acc, KEY, b"\0", 3 << 60)
    assert chi_square((acc % 3).astype(np.int64), 3) < 5
    assert acc.max() < 3 << 60
