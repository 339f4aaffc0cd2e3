"""Exact law of a sum of shares of noise, and the exact ε of a shift."""

from __future__ import annotations

import math

import numpy as np


def law_of_sum(deviation: float, shares: int) -> np.ndarray:
    """Return the probabilities of a sum of discrete Gaussians, by convolution."""
    y = np.arange(-math.ceil(14 * deviation), math.ceil(14 * deviation) + 1)
    share = np.exp(-(y**2) / (2 * deviation**2))
    share /= share.sum()
    law = np.ones(1)
    for _ in range(shares):
        law = np.convolve(law, share)
    return law


def exact_epsilon(law: np.ndarray, shift: int, delta: float) -> float:
    """Return ε of the hockey-stick divergence δ of a law and the shifted law, by bisection."""
    here = np.concatenate([law, np.zeros(shift)])
    moved = np.concatenate([np.zeros(shift), law])
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        above = np.maximum(0, here - np.exp(middle) * moved).sum() > delta
        low, high = (middle, high) if above else (low, middle)
    return low
