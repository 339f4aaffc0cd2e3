"""Sharing of byte strings over GF(2^61 − 1) (Shamir 1979).

A secret of L bytes is cut into ⌈L / 7⌉ little-endian limbs of seven bytes, each below 2^56 and
so below p. Every limb is the constant term of its own random polynomial of t coefficients. A
share is the polynomials' values at one non-zero point.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import check_integer, is_integer
from secagg._hedging import Hedged
from secagg._secrets import without_frames
from secagg.encoding import Entropy
from secagg.errors import ParameterError
from secagg.shamir.field import M61

__all__ = [
    "LIMB_BYTES",
    "Share",
    "combine",
    "combine_limbs",
    "from_limbs",
    "limb_count",
    "split",
    "split_limbs",
    "to_limbs",
    "uniform",
]

LIMB_BYTES = 7


@dataclass(frozen=True)
class Share:
    """One of n shares; any `threshold` of them give the secret, fewer reveal nothing of it.

    Attributes
    ----------
    x : int
        The point, 1 ≤ x ≤ n.
    threshold : int
        t.
    length : int
        The secret's length in bytes.
    limbs : tuple of ints
        The polynomials' values at x, each in [0, 2^61 − 1). Secret, and so not in the repr.
    """

    x: int
    threshold: int
    length: int
    limbs: tuple[int, ...] = field(repr=False)


@without_frames
def split(
    secret: bytes, threshold: int, n: int, *, entropy: Entropy = os.urandom
) -> list[Share]:
    """Share a secret among n holders so that any `threshold` of them can rebuild it.

    Parameters
    ----------
    secret : bytes
        At least one byte.
    threshold, n : int
        1 ≤ t ≤ n ≤ 2^20.
    entropy : callable
        Source of the polynomials' coefficients, which are hedged with the secret (RFC 8937).

    Returns
    -------
    list of n shares, at the points 1 … n.

    Raises
    ------
    ParameterError
        Out of range.
    """
    if not isinstance(secret, bytes) or not secret:
        raise ParameterError("the secret must be at least one byte")
    check_integer("n", n, 1, 1 << 20)
    check_integer("threshold", threshold, 1, n)
    points = np.arange(1, n + 1, dtype=np.uint64)
    statement = b"secagg shamir split v1" + struct.pack("<QQ", threshold, n)
    hedged = Hedged(entropy, secret, statement)
    values = split_limbs(to_limbs(secret), threshold, points, hedged)
    return [
        Share(x, threshold, len(secret), tuple(row))
        for x, row in enumerate(values.tolist(), start=1)
    ]


@without_frames
def combine(shares: Sequence[Share]) -> bytes:
    """Rebuild a secret from at least `threshold` of its shares.

    Raises
    ------
    ParameterError
        Too few shares, shares of different secrets' shapes, repeated or zero points, values
        outside the field, or shares that do not belong together.
    """
    if not shares:
        raise ParameterError("no shares to combine")
    first = shares[0]
    check_integer("threshold", first.threshold, 1, 1 << 20)
    check_integer("length", first.length, 1, 1 << 30)
    shape = (first.threshold, first.length)
    if any((s.threshold, s.length) != shape for s in shares):
        raise ParameterError("the shares differ in threshold or length: not of one secret")
    if len(shares) < first.threshold:
        raise ParameterError(
            f"{len(shares)} shares are too few; this secret needs {first.threshold}"
        )
    if any(len(s.limbs) != limb_count(first.length) for s in shares):
        raise ParameterError(f"a share of {first.length} bytes has the wrong number of limbs")
    if not all(is_integer(s.x) and 0 < s.x < M61 for s in shares) or len(
        {s.x for s in shares}
    ) != len(shares):
        raise ParameterError("the points of the shares must be distinct and non-zero")
    if not all(is_integer(limb) and 0 <= limb < M61 for s in shares for limb in s.limbs):
        raise ParameterError("a share has a limb that is not an int in [0, 2^61 - 1)")
    points = np.array([s.x for s in shares], dtype=np.uint64)
    values = np.array([s.limbs for s in shares], dtype=np.uint64)
    t = first.threshold
    secret = from_limbs(combine_limbs(points[:t], values[:t]), first.length)
    if secret is None or any(
        from_limbs(combine_limbs(points[rest], values[rest]), first.length) != secret
        for rest in _other_quorums(len(shares), t)
    ):
        raise ParameterError("the shares do not belong together: at least one is wrong")
    return secret


def split_limbs(
    limbs: NDArray[np.uint64], threshold: int, points: NDArray[np.uint64], entropy: Entropy
) -> NDArray[np.uint64]:
    """Share m field elements at n points, each by its own polynomial of t coefficients.

    Parameters
    ----------
    limbs : uint64 array, shape (m,), in [0, p)
    threshold : int
        t ≥ 1.
    points : uint64 array, shape (n,), distinct and non-zero
    entropy : callable

    Returns
    -------
    uint64 array, shape (n, m)
    """
    # t coefficients each, the top one uniform like the others: forbidding it to be zero would
    # exclude one value of the limb for t − 1 holders
    coefficients = np.empty((threshold, limbs.size), dtype=np.uint64)
    coefficients[0] = limbs
    coefficients[1:] = uniform((threshold - 1) * limbs.size, entropy).reshape(-1, limbs.size)
    return _fast.m61_poly_eval(coefficients, points)


def combine_limbs(points: NDArray[np.uint64], values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the m constant terms behind t shares: Lagrange interpolation at zero.

    Parameters
    ----------
    points : uint64 array, shape (t,), distinct and non-zero
    values : uint64 array, shape (t, m)
    """
    weights = _fast.m61_lagrange_at_zero(points).reshape(1, -1)
    return _fast.m61_matmul(weights, np.ascontiguousarray(values)).ravel()


def limb_count(length: int) -> int:
    """Return the number of limbs of a secret of `length` bytes."""
    return -(-length // LIMB_BYTES)


def to_limbs(secret: bytes) -> NDArray[np.uint64]:
    """Cut a secret into little-endian limbs of seven bytes."""
    rows = np.zeros((limb_count(len(secret)), 8), dtype=np.uint8)
    padded = secret.ljust(len(rows) * LIMB_BYTES, b"\x00")
    rows[:, :LIMB_BYTES] = np.frombuffer(padded, dtype=np.uint8).reshape(-1, LIMB_BYTES)
    return rows.view("<u8").ravel().astype(np.uint64)


def from_limbs(limbs: NDArray[np.uint64], length: int) -> bytes | None:
    """Return the secret of `length` bytes, or None if the limbs do not hold one."""
    joined = limbs.astype("<u8").view(np.uint8).reshape(-1, 8)
    secret = joined[:, :LIMB_BYTES].tobytes()
    if joined[:, LIMB_BYTES].any() or any(secret[length:]):
        return None
    return secret[:length]


def _other_quorums(n: int, t: int) -> list[slice]:
    """Slices of t shares that, with the first t, cover all n."""
    return [slice(start, start + t) for start in range(1, n - t + 1)]


def uniform(count: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Draw elements of [0, p): 61 random bits each, again if they are all ones."""
    draws = np.frombuffer(entropy(8 * count), dtype="<u8").astype(np.uint64)
    draws &= np.uint64(M61)
    while (rejected := draws == np.uint64(M61)).any():
        draws[rejected] = uniform(int(rejected.sum()), entropy)
    return draws
