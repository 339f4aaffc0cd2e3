"""Shares of discrete Gaussian noise in constant time: the specification of ``src/shares.c``.

Sampling after Zhao, Steinfeld and Sakzad, "FACCT: FAst, Compact, and Constant-Time Discrete
Gaussian Sampler over Integers" (IEEE Transactions on Computers, 2020), and Howe, Prest,
Ricosset and Rossi, "Isochronous Gaussian Sampling" (PQCrypto 2020). The absolute value is
y = k x + z: x from a table of exp(−(k x)² / 2s²), z uniform in [0, k), and the pair is accepted
with exp(−z (z + 2k x) / 2s²). All proposals take four words each, accepted or not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays, check_law

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_WORD = 1 << 64
TAYLOR = (
    0x8000000000000000, 0x58B90BFBE8E7BCD5, 0x1EBFBDFF82C58EA8, 0x071AC235C1282FE2,
    0x013B2AB6FBA4E772, 0x002BB0FFCF14CE62, 0x00050C244BE1B1E1, 0x00007FF2FF1622C3,
    0x00000B160111D2E4, 0x000000DA929E9CAF, 0x0000000F267A8AC5, 0x00000000F465639A,
    0x000000000E1DEB28, 0x0000000000C0B0C9, 0x0000000000098A4B, 0x00000000000070DB,
)  # fmt: skip
"""⌊2^63 ln(2)^i / i!⌋."""


def gaussian_shares(
    words: U64, out: I64, table: U64, k: int, scale: int, shift: int
) -> tuple[int, int]:
    """Draw integers y with probability ∝ exp(−y² / 2s²), as many as the words suffice for.

    The law is exact but for the rounding of the table and of the acceptance. Time and addresses
    depend on which proposals were accepted, and not on the samples.

    Parameters
    ----------
    words : uint64[m]
        Uniformly random words, four for a proposal, in order.
    out : int64[d]
        Overwritten with samples from the beginning on; the rest is unspecified.
    table : uint64[n, 2], n ≤ 22
        High and low word of ⌊2^127 P(X ≤ x)⌋ for x = 0, …, n − 1.
    k : int
        Number of values of z, 1 ≤ k < 2^28.
    scale, shift : int
        scale / 2^(64 + shift) = 1 / (2s² ln 2), 1 ≤ scale < 2^63, 0 ≤ shift < 64.

    Returns
    -------
    drawn : int
        Number of samples, at most d.
    used : int
        Number of words of all proposals up to the last sample, or of all whole proposals.

    Raises
    ------
    ValueError
        A dtype or shape is wrong, a number is out of range, or an exponent could reach 64.
    """
    check_arrays(np.uint64, 1, words)
    check_arrays(np.int64, 1, out)
    check_arrays(np.uint64, 2, table)
    check_law(table.shape[0], table.shape[1], k, scale, shift)
    steps = [high * _WORD + low for high, low in table.tolist()]
    numbers, drawn, at = words.tolist(), 0, 0
    while drawn < out.size and at + 4 <= words.size:
        first, second, third, fourth = numbers[at : at + 4]
        at += 4
        r, negative = divmod(first * _WORD + second, 2)
        x = sum(r >= step for step in steps)
        z, rest = divmod(third * k, _WORD)
        whole, part = divmod(z * (z + 2 * k * x) * scale >> shift, _WORD)
        y = k * x + z
        # Lemire's rejection makes z uniform; −0 would give 0 twice its probability
        if (
            rest >= _WORD % k
            and fourth >> 1 < _power_of_half(part) >> whole
            and not (negative and y == 0)
        ):
            out[drawn] = -y if negative else y
            drawn += 1
    return drawn, at


def _power_of_half(f: int) -> int:
    """Return 2^63 · 2^(−f / 2^64), rounded by Horner's rule in integers."""
    y = TAYLOR[-1]
    for coefficient in TAYLOR[-2::-1]:
        y = coefficient - (f * y >> 64)
    return y
