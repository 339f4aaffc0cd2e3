"""Decoder of Shamir shares, a Reed–Solomon word (McEliece and Sarwate 1981).

n shares of a polynomial of degree below t determine it as long as at most ⌊(n − t) / 2⌋ of
them are wrong. The decoder is Gao's (2003): interpolate all points, run Euclid's algorithm
half-way, divide. It runs only when a reconstruction has failed its check, in plain integers.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["decode"]


def decode(points: Sequence[int], values: Sequence[int], t: int, p: int) -> list[int] | None:
    """Return the polynomial of degree below t nearest to the points, if it is near enough.

    Parameters
    ----------
    points : sequence of n distinct ints in (0, p)
    values : sequence of n ints in [0, p)
    t : int
        Number of coefficients, 1 ≤ t ≤ n.
    p : int
        The prime of the field.

    Returns
    -------
    At most t ints, the constant term first, or None for more than ⌊(n − t) / 2⌋ wrong values.
    """
    n = len(points)
    g0, g1 = _vanishing(points, p), _interpolate(points, values, p)
    v0: list[int] = []
    v1: list[int] = [1]
    while 2 * (len(g1) - 1) >= n + t:
        quotient, rest = _divide(g0, g1, p)
        g0, g1 = g1, rest
        v0, v1 = v1, _subtract(v0, _multiply(quotient, v1, p), p)
    polynomial, rest = _divide(g1, v1, p)
    return polynomial if not rest and len(polynomial) <= t else None


def evaluate(polynomial: Sequence[int], x: int, p: int) -> int:
    """Return the value of a polynomial, constant term first, at x."""
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * x + coefficient) % p
    return value


def _trim(a: list[int]) -> list[int]:
    while a and a[-1] == 0:
        a.pop()
    return a


def _subtract(a: list[int], b: list[int], p: int) -> list[int]:
    size = max(len(a), len(b))
    a, b = a + [0] * (size - len(a)), b + [0] * (size - len(b))
    return _trim([(x - y) % p for x, y in zip(a, b, strict=True)])


def _multiply(a: list[int], b: list[int], p: int) -> list[int]:
    out = [0] * (len(a) + len(b) - 1) if a and b else []
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] = (out[i + j] + x * y) % p
    return _trim(out)


def _divide(a: list[int], b: list[int], p: int) -> tuple[list[int], list[int]]:
    rest = list(a)
    quotient = [0] * max(0, len(a) - len(b) + 1)
    inverse = pow(b[-1], -1, p)
    for shift in range(len(quotient) - 1, -1, -1):
        factor = rest[shift + len(b) - 1] * inverse % p
        quotient[shift] = factor
        for i, y in enumerate(b):
            rest[shift + i] = (rest[shift + i] - factor * y) % p
    return _trim(quotient), _trim(rest)


def _vanishing(points: Sequence[int], p: int) -> list[int]:
    """Π (X − x_i)."""
    out = [1]
    for x in points:
        out = _multiply(out, [-x % p, 1], p)
    return out


def _interpolate(points: Sequence[int], values: Sequence[int], p: int) -> list[int]:
    """Newton's divided differences, expanded."""
    table = list(values)
    for level in range(1, len(points)):
        for i in range(len(points) - 1, level - 1, -1):
            run = pow(points[i] - points[i - level], -1, p)
            table[i] = (table[i] - table[i - 1]) * run % p
    out: list[int] = []
    for x, value in zip(reversed(points), reversed(table), strict=True):
        shifted = _subtract(_multiply(out, [-x % p, 1], p), [], p)
        out = _subtract(shifted, [-value % p], p)
    return out
