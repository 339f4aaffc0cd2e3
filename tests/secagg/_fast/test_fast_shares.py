"""Shares of noise: decisions in integers, the exact law by enumeration, and ranges."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from independent_noise import exponential, share
from secagg import _fast
from secagg._fast import reference
from secagg.protocol.noise import LARGEST_SHARE, LEAST_SHARE, Share

IMPLEMENTATIONS = {"reference": reference, "active": _fast}

every = pytest.mark.parametrize("kernels", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
scales = st.one_of(
    st.integers(LEAST_SHARE, LARGEST_SHARE),
    st.integers(LEAST_SHARE, 30_000),
    st.sampled_from([LEAST_SHARE, 1228, 1536, 28_160, LARGEST_SHARE]),
)
law_of = cache(lambda p: Share(p).law)
edges = st.sampled_from([0, 1, 2, 3, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])

# 256 s, and the samples of the stream of the key 00 01 … 0f; made by `independent_noise.share`
KNOWN = {
    1024: [-3, -3, -3, -8, -4, 1, 3, 1, 6, -2, -2, 2, 0, 3, -8, 4, -3, 7, 5, 1],
    1228: [-3, -3, -3, -11, -4, 1, 3, 1, 6, -5, -2, 5, 0, 3, -8, 4, -3, 10, 5, 4],
    28_160: [
        -101, -111, -114, -264, -124, 54, -4, -6, 110, 60, 198, -79, -16, -78, -15, 68, 14, 132,
        -118, 225, 78, 56,
    ],
    1 << 36: [
        -250527580, -273293362, -280935924, -651182662, -305954814, 134576078, -12259396,
        -14750455, 272304070, 148586779, 488693529, -194634680, -39924845, -192478519,
        -38199818, 168144394, 35034238, 324931957, -291246485, 554489105, 193047102, 138752235,
    ],
}  # fmt: skip


def stream(key: bytes, count: int) -> np.ndarray:
    return np.frombuffer(reference.keystream(key, 8 * count), "<u8").astype(np.uint64)


def draw(kernels: object, words: np.ndarray, p: int, count: int = 999) -> tuple[list[int], int]:
    out = np.full(count, 99, np.int64)
    drawn, used = kernels.gaussian_shares(words, out, *law_of(p))  # type: ignore[attr-defined]
    return out[:drawn].tolist(), used


@every
@pytest.mark.parametrize("p", KNOWN)
def test_check12_known_answers_of_shares(kernels, p):
    samples, used = draw(kernels, stream(bytes(range(16)), 100), p)
    assert samples == KNOWN[p]
    assert used == 100


@every
@examples(40)
@given(p=scales, words=st.lists(edges | st.integers(0, 2**64 - 1), max_size=40))
def test_check12_decisions_of_shares_in_integers(kernels, p, words):
    samples, used = draw(kernels, np.array(words, np.uint64), p)
    assert samples == share(p, words)
    assert used == len(words) // 4 * 4
    if samples:  # no word is taken behind the last sample
        last = draw(kernels, np.array(words, np.uint64), p, len(samples))
        assert last[0] == samples
        assert last[1] <= used
        assert draw(kernels, np.array(words[: last[1]], np.uint64), p)[0] == samples


@pytest.mark.skipif(not _fast.COMPILED, reason="compares kernel and twin")
@examples(60)
@given(p=scales, seed=st.integers(0, 2**32), size=st.integers(0, 400), count=st.integers(0, 90))
def test_compiled_shares_against_their_twin(p, seed, size, count):
    words = np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)
    assert draw(_fast, words, p, count) == draw(reference, words, p, count)


def bisect(is_above: Callable[[list[int]], list[bool]], count: int, bits: int) -> list[int]:
    """Return the least number up to 2^bits that is above, for `count` monotone decisions."""
    low, high = [0] * count, [1 << bits] * count
    while low != high:
        middle = [min((a + b) // 2, 2**bits - 1) for a, b in zip(low, high, strict=True)]
        for i, above in enumerate(is_above(middle)):
            if above:
                high[i] = min(high[i], middle[i])
            else:
                low[i] = middle[i] + 1
    return low


@every
@pytest.mark.parametrize("p", [1024, 1228])
def test_check12_law_of_a_share_is_the_discrete_gaussian(kernels, p):
    """Decisions are monotone in their words, so that bisection counts the words of a sample."""
    law = law_of(p)
    k, entries = law.k, len(law.table)
    middle = [-(-(z << 64) // k) + 1 for z in range(k)]  # words that give each z

    def first(above: list[int]) -> list[bool]:
        words = [[r >> 63, r << 1 & 2**64 - 1, middle[0], 0] for r in above]
        samples, _ = draw(kernels, np.array(words, np.uint64).ravel(), p)
        return [y > k * x for x, y in enumerate(samples)]

    def words_of(x: int, z: int, chance: int) -> list[int]:
        r = steps[x - 1] if x else 0
        return [r >> 63, r << 1 & 2**64 - 1, middle[z], chance << 1]

    def last(above: list[int]) -> list[bool]:
        words = [words_of(*pair, chance) for pair, chance in zip(pairs, above, strict=True)]
        return [draw(kernels, np.array(some, np.uint64), p)[0] == [] for some in words]

    steps = [*bisect(first, entries, 127), 1 << 127]
    assert steps[:-1] == [high << 64 | low for high, low in law.table.tolist()]
    pairs = [(x, z) for x in range(entries + 1) for z in range(k)]
    chances = bisect(last, len(pairs), 63)
    for (x, z), chance in zip(pairs, chances, strict=True):
        assert share(p, words_of(x, z, chance - 1)) == [k * x + z]
        assert chance == 1 << 63 or share(p, words_of(x, z, chance)) == []
    weight = {
        k * x + z: (steps[x] - (steps[x - 1] if x else 0)) * chance
        for (x, z), chance in zip(pairs, chances, strict=True)
    }
    weight |= {-y: found for y, found in weight.items() if y}
    hoped = {y: exponential((256 * y) ** 2, 2 * p**2) for y in weight}
    total, whole = sum(weight.values()), sum(hoped.values())
    assert max(weight) > 12 * p // 256
    for y, found in weight.items():
        exact = Fraction(hoped[y], whole)
        assert abs(Fraction(found, total) - exact) <= exact / 2**45 + Fraction(1, 2**126)


@every
def test_check12_values_of_z_are_uniform(kernels):
    """Each value has ⌊2^64 / k⌋ words; the first word of some values is one too many."""
    p = 1 << 36
    k = law_of(p).k
    for z in (0, 1, 2, k // 3, k - 1):
        first = -(-(z << 64) // k)
        one, other = (
            draw(kernels, np.array([0, 0, word, 0], np.uint64), p)[0]
            for word in (first, first + 1)
        )
        assert one == ([z] if first * k % 2**64 >= 2**64 % k else [])
        assert other == [z]
    assert draw(kernels, np.zeros(4, np.uint64), p)[0] == []


@every
def test_shares_reject_wrong_arguments(kernels):
    words, out = np.zeros(8, np.uint64), np.zeros(3, np.int64)
    table, k, scale, shift = Share(1024).law
    for arguments in (
        (words.astype(np.uint32), out, table, k, scale, shift),
        (words, words.copy(), table, k, scale, shift),
        (np.zeros(16, np.uint64)[::2], out, table, k, scale, shift),
        (words, out, table[:, :1].copy(), k, scale, shift),
        (words, out, table[:0], k, scale, shift),
        (words, out, np.zeros((23, 2), np.uint64), k, scale, shift),
        (words, out, table, 0, scale, shift),
        (words, out, table, 1 << 28, scale, shift),
        (words, out, table, k, 1 << 63, shift),
        (words, out, table, k, scale, 64),
        (words, out, table, 100 * k, scale, shift),  # exponents above 64
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            kernels.gaussian_shares(*arguments)
