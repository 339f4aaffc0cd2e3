"""Discrete Gaussian noise in exact integers: the specification of ``src/gaussian.c``.

Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020),
Algorithms 1 to 3. With p = 256 σ, the discrete Laplace of Algorithm 3 has the scale t / s =
p / 256 = σ and not ⌊σ⌋ + 1. For any scale τ the acceptance is exp(−(|y| − σ²/τ)² / 2σ²), which
becomes exp(−(256 |y| − p)² / 2p²), in smaller numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_WORD = 1 << 64
_STEP = 256
MAX_SIGMA = 1 << 48
MAX_WORDS = 1 << 16


def discrete_gaussian(words: U64, out: I64, sigma: int) -> tuple[int, int]:
    """Draw integers y with probability ∝ exp(−y² / 2σ²), as many as the words suffice for.

    Random decisions take words in order. The time, and the words of a sample, depend on the
    sample.

    Parameters
    ----------
    words : uint64[m], m ≤ 2^16
        Uniformly random words.
    out : int64[d]
        Overwritten with samples from the beginning on; the rest is unspecified.
    sigma : int
        256 σ, 1 ≤ 256 σ ≤ 2^48.

    Returns
    -------
    drawn : int
        Number of samples, at most d.
    used : int
        Number of words that these samples took. An unfinished sample begins with the next word.

    Raises
    ------
    ValueError
        A dtype, the number of words or sigma is out of range.
    """
    check_arrays(np.uint64, 1, words)
    check_arrays(np.int64, 1, out)
    if words.size > MAX_WORDS:
        raise ValueError(f"{words.size} words are more than {MAX_WORDS}")
    if not 1 <= sigma <= MAX_SIGMA:
        raise ValueError(f"sigma {sigma} is outside [1, {MAX_SIGMA}]")
    left = iter(words.tolist())
    used = 0
    for i in range(out.size):
        try:
            out[i] = _sample(left, int(sigma))
        except StopIteration:
            return i, used
        # after whole samples only: the words of an unfinished sample are used again
        used = words.size - left.__length_hint__()
    return out.size, used


def _sample(words: Iterator[int], p: int) -> int:
    """Return a sample of Algorithm 3, from proposals of Algorithm 2."""
    while True:
        u = _uniform(words, p)
        if not _exponential(words, u, p):
            continue
        v = 0
        while _exponential(words, 1, 1):
            v += 1
        y = (u + p * v) // _STEP
        negative = _bernoulli(words, 1, 2)
        # −0 would give 0 twice its probability
        if negative and y == 0:
            continue
        n, d = (_STEP * y - p) ** 2, 2 * p * p
        accepted = True
        while accepted and n >= d:  # exp(−γ), γ > 1: ⌊γ⌋ times exp(−1) first
            accepted = _exponential(words, 1, 1)
            n -= d
        if accepted and _exponential(words, n, d):
            return -y if negative else y


def _uniform(words: Iterator[int], p: int) -> int:
    """Return a uniform integer of [0, p), by Lemire's method as in `mask_mod`."""
    while True:
        product = next(words) * p
        if product % _WORD >= _WORD % p:
            return product // _WORD


def _exponential(words: Iterator[int], n: int, d: int) -> bool:
    """Return True with probability exp(−n / d), n ≤ d: Algorithm 1."""
    k = 1
    while _bernoulli(words, n, d * k):
        k += 1
    return k % 2 == 1


def _bernoulli(words: Iterator[int], n: int, d: int) -> bool:
    """Return True with probability n / d, 0 ≤ n ≤ d; no word is taken for n = 0 or n = d.

    The words are digits of a uniform number in base 2^64, compared with the digits of n / d.
    """
    while 0 < n < d:
        n = n * _WORD - next(words) * d
    return n > 0
