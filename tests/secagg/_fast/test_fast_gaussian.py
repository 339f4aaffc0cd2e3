"""Discrete Gaussian noise: known answers, exact decisions, and the distribution itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from independent_noise import sample
from secagg import _fast
from secagg._fast import reference
from secagg.oneshot.noise import Noise, blocks

IMPLEMENTATIONS = {"reference": reference, "active": _fast}

every = pytest.mark.parametrize("kernels", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
sigmas = st.one_of(
    st.integers(1, 2**48),
    st.integers(1, 2000),
    st.integers(0, 48).map(lambda bits: 1 << bits),
    st.integers(2**48 - 3, 2**48),
)

# 256 σ, words taken, samples. The key is 00 01 … 0f; made by `sample` from its AES stream.
KNOWN = {
    1: (188, [0, 0, 0, 0, 0, 0, 0, 0]),
    128: (238, [-1, 0, 0, -1, 0, 0, 1, 0]),
    256: (196, [-1, -1, -1, 0, 0, -2, 0, 1]),
    1000: (133, [-2, -4, -6, -1, -4, -2, -1, 7]),
    256007: (79, [-690, -97, -1601, -65, -904, -407, -1170, -538]),
    281474976710656: (
        79,
        [
            -759591340767, -107701069523, -1760979969984, -72501440675, -994356887112,
            -448524388005, -1287271374617, -592002435726,
        ],
    ),
}  # fmt: skip


def stream(key: bytes, count: int) -> np.ndarray:
    return np.frombuffer(reference.keystream(key, 8 * count), "<u8").astype(np.uint64)


def draw(kernels: object, words: np.ndarray, sigma: int, count: int) -> tuple[list[int], int]:
    out = np.full(count, 99, np.int64)
    drawn, used = kernels.discrete_gaussian(words, out, sigma)  # type: ignore[attr-defined]
    return out[:drawn].tolist(), used


def weights(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return integers and their probabilities, all but 2^-100 of them."""
    far = math.ceil(12 * sigma) + 1
    y = np.arange(-far, far + 1)
    found = np.exp(-(y.astype(float) ** 2) / (2 * sigma**2))
    return y, found / found.sum()


@every
@pytest.mark.parametrize("sigma", KNOWN)
def test_check12_known_answers_of_the_noise(kernels, sigma):
    words = stream(bytes(range(16)), 2000)
    used, samples = KNOWN[sigma]
    assert draw(kernels, words, sigma, len(samples)) == (samples, used)


def edge(at: np.random.Generator) -> Callable[[int], int]:
    """Return a source of words that often are at the boundary of a decision."""

    def word(digit: int) -> int:
        kind = int(at.integers(0, 12))
        if digit >= 0 and kind < 3:
            return min(max(digit + (0, 0, 1)[kind], 0), 2**64 - 1)
        return 0 if kind == 3 else int(at.integers(0, 2**64, dtype=np.uint64))

    return word


@every
@examples(25)
@given(sigma=sigmas, seed=st.integers(0, 2**32))
def test_check12_decisions_are_those_of_the_paper_in_integers(kernels, sigma, seed):
    taken: list[int] = []
    source = edge(np.random.default_rng(seed))

    def word(digit: int) -> int:
        taken.append(source(digit))
        return taken[-1]

    samples, ends = [], [0]
    for _ in range(4):
        samples.append(sample(sigma, word))
        ends.append(len(taken))
    words = np.array(taken, np.uint64)
    assert draw(kernels, words, sigma, 9) == (samples, len(taken))
    assert draw(kernels, words[:-1], sigma, 9) == (samples[:-1], ends[-2])
    assert draw(kernels, words, sigma, 2) == (samples[:2], ends[2])


compiled = pytest.mark.skipif(not _fast.COMPILED, reason="compares kernel and twin")


@compiled
@examples(60)
@given(
    sigma=sigmas,
    words=st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1, 2**62 + 5]), max_size=40),
    seed=st.integers(0, 2**32),
    size=st.integers(0, 400),
)
def test_compiled_kernel_against_its_twin(sigma, words, seed, size):
    more = np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)
    both = np.concatenate([np.array(words, np.uint64), more])
    assert draw(_fast, both, sigma, 30) == draw(reference, both, sigma, 30)


@compiled
@pytest.mark.parametrize("sigma", [1, 1000, 2**48 - 1, 2**48])
def test_largest_proposal_has_no_overflow(sigma):
    """The most successes of exp(−1) that the words allow, then a sum of squares of 126 bits."""
    half = 1 << 63
    words = [2**64 - 1, half]  # u = p − 1, accepted at K = 1: odd
    if sigma == 1:
        words = [0]  # u = 0 takes no decision
    words += [half - 1, 2**64 - 1] * 32_000  # K = 2 true, K = 3 false
    words += [half] * 3  # exp(−1) fails; not negative; and y is not accepted
    more = np.random.default_rng(1).integers(0, 2**64, 300, dtype=np.uint64)
    both = np.concatenate([np.array(words, np.uint64), more])
    samples, used = draw(_fast, both, sigma, 2)
    assert (samples, used) == draw(reference, both, sigma, 2)
    assert len(samples) == 2
    assert used > len(words)


@every
def test_rejects_wrong_arguments(kernels):
    words, out = np.zeros(3, np.uint64), np.zeros(3, np.int64)
    for arguments in (
        (words.astype(np.uint32), out, 256),
        (words, words.copy(), 256),
        (np.zeros(6, np.uint64)[::2], out, 256),
        (words, np.zeros(6, np.int64)[::2], 256),
        (np.zeros((1 << 16) + 1, np.uint64), out, 256),
        *((words, out, sigma) for sigma in (0, (1 << 48) + 1)),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            kernels.discrete_gaussian(*arguments)


@pytest.mark.parametrize("sigma", [60, 256, 2560])
def test_frequencies_fit_the_distribution(sigma):
    frequencies(sigma, 40_000)


@pytest.mark.slow
@pytest.mark.skipif(not _fast.COMPILED, reason="hours without the compiled kernel")
@pytest.mark.parametrize("sigma", [128, 256, 867, 25_600, 2**40])
def test_chi_square_of_a_hundred_million(sigma):
    print(f"256 σ = {sigma}:", frequencies(sigma, 10**8))


def frequencies(sigma: int, count: int) -> float:
    """Assert that χ² of many samples is plausible; return the normal deviate."""
    real = sigma / 256
    y, p = weights(min(real, 1000))  # of a wide distribution, in steps of σ / 1000
    cells = np.zeros(y.size)
    for block in blocks(Noise(Fraction(sigma, 256)), sigma.to_bytes(16, "little"), count):
        shown = block if real <= 1000 else np.floor(block / real * 1000 + 0.5).astype(np.int64)
        cells += np.bincount(np.clip(shown - y[0], 0, y.size - 1), minlength=y.size)
    assert cells.sum() == count
    keep = p * count >= 20
    observed = np.append(cells[keep], cells[~keep].sum())
    hoped = np.append(p[keep], p[~keep].sum()) * count
    if hoped[-1] < 5:  # too rare for a cell
        observed, hoped = observed[:-1], hoped[:-1]
    degrees = observed.size - 1
    found = (float(((observed - hoped) ** 2 / hoped).sum()) - degrees) / math.sqrt(2 * degrees)
    assert abs(found) < 5
    return found
