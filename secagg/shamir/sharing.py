"""Sharing of byte strings and integers over GF(p) (Shamir 1979).

A secret of L bytes is cut into little-endian limbs of w = ⌊(b − 1) / 8⌋ bytes, for a prime of b
bits. So each limb is below p; a limb has seven bytes in GF(2^61 − 1). Every limb is the
constant term of a separate random polynomial of t coefficients. A share is the values of all
polynomials at a non-zero point. An integer in [0, p) is a limb itself.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer, is_integer
from secagg._hedging import Hedged
from secagg._secrets import without_frames
from secagg.encoding import Entropy
from secagg.encoding.encoding import take
from secagg.errors import ParameterError
from secagg.shamir.field import (
    M61,
    PROTOCOL_FIELD,
    U64,
    Elements,
    Field,
    evaluate,
    from_limbs,
    lagrange_at_zero,
    limb_count,
    matmul,
    objects,
    packed,
    to_limbs,
)

_MOST = 1 << 20  # holders

Secret = TypeVar("Secret", bytes, int)
Limbs = TypeVar("Limbs", U64, NDArray[np.object_], Elements)


@dataclass(frozen=True, init=False)
class Share(Generic[Secret]):
    """One of n shares; any `threshold` of them give the secret, fewer reveal nothing.

    Attributes
    ----------
    x : int
        The point, 1 ≤ x ≤ n.
    threshold : int
        t.
    length : int or None
        The secret's length in bytes, or None for an integer.
    limbs : tuple of ints
        The polynomials' values at x, each in [0, p). Secret, and so not in the repr.
    field : Field
        GF(p), by default GF(2^61 − 1).
    """

    x: int
    threshold: int
    length: int | None
    limbs: tuple[int, ...] = dataclasses.field(repr=False)
    field: Field = PROTOCOL_FIELD

    def __init__(
        self,
        x: int,
        threshold: int,
        length: int | None,
        limbs: tuple[int, ...],
        field: Field = PROTOCOL_FIELD,
    ) -> None:
        own = self.__dict__  # a frozen dataclass sets attributes by calls, in twice the time
        own["x"], own["threshold"], own["length"] = x, threshold, length
        own["limbs"], own["field"] = limbs, field


@without_frames
def split(
    secret: Secret,
    threshold: int,
    n: int,
    *,
    field: Field = PROTOCOL_FIELD,
    entropy: Entropy = os.urandom,
) -> list[Share[Secret]]:
    """Share a secret among n holders so that any `threshold` of them can rebuild the secret.

    `split_limbs` shares many integers at once.

    Parameters
    ----------
    secret : bytes or int
        At least one byte, for a field with p > 256; or an integer in [0, p).
    threshold, n : int
        1 ≤ t ≤ n ≤ 2^20, and n < p.
    field : Field
        GF(p). Odd primes below 2^63 are fast and in constant time, other primes are neither.
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
    p = field.modulus
    if isinstance(secret, bytes) and secret:
        length, limbs, key = len(secret), to_limbs(secret, field), secret
    elif is_integer(secret) and 0 <= (value := int(secret)) < p:
        length, limbs = None, field.array([value])
        key = value.to_bytes(-(-p.bit_length() // 8), "little")
    else:
        raise ParameterError(
            f"the secret must be at least one byte, or an int in [0, {p}); take a larger field "
            "for larger integers"
        )
    check_integer("n", n, 1, _MOST)
    check_integer("threshold", threshold, 1, n)
    if n >= p:
        raise ParameterError(
            f"the field of {p} elements has no {n} points for n = {n} holders; take a prime "
            "above n"
        )
    points = np.arange(1, n + 1, dtype=np.uint64)
    hedged = Hedged(entropy, key, _statement(threshold, n, length, p))
    values = split_limbs(limbs, threshold, points, hedged, field=field)
    return [
        Share(x, threshold, length, row, field)
        for x, row in enumerate(zip(*values.T.tolist(), strict=True), start=1)
    ]


@without_frames
def combine(shares: Sequence[Share[Secret]]) -> Secret:
    """Rebuild a secret from at least `threshold` of its shares.

    Raises
    ------
    ParameterError
        Too few shares, shares of different secrets' shapes or fields, repeated or zero points,
        values outside the field, or shares that do not belong together.
    """
    if not shares:
        raise ParameterError("no shares to combine")
    t, length, field = shares[0].threshold, shares[0].length, shares[0].field
    p = field.modulus
    check_integer("threshold", t, 1, _MOST)
    if length is not None:
        check_integer("length", length, 1, 1 << 30)
    if any((s.threshold, s.length, s.field) != (t, length, field) for s in shares):
        raise ParameterError(
            "the shares differ in threshold, length or field; take those of one secret"
        )
    if len(shares) < t:
        raise ParameterError(f"{len(shares)} shares are too few; this secret needs {t}")
    limbs = 1 if length is None else limb_count(length, field)
    if any(len(s.limbs) != limbs for s in shares):
        raise ParameterError(f"a share has a number of limbs other than its secret's, {limbs}")
    if not all(is_integer(s.x) and 0 < s.x < p for s in shares) or len(
        {s.x for s in shares}
    ) != len(shares):
        raise ParameterError("the points of the shares must be distinct and non-zero")
    if not all(is_integer(limb) and 0 <= limb < p for s in shares for limb in s.limbs):
        raise ParameterError(f"a share has a limb that is not an int in [0, {p})")
    points = packed(np.array([s.x for s in shares], object), p)
    values = packed(np.array([s.limbs for s in shares], object), p)
    found = set[bytes | int | None]()
    # together these quorums use every share, so a wrong share changes one of the secrets
    for start in range(len(shares) - t + 1):
        quorum = slice(start, start + t)
        elements = _at_zero(points[quorum], values[quorum], p)
        found.add(int(elements[0]) if length is None else from_limbs(elements, length, field))
    secret = found.pop()
    if secret is None or found:
        raise ParameterError("the shares do not belong together: at least one is wrong")
    return cast("Secret", secret)


def split_limbs(
    limbs: Limbs,
    threshold: int,
    points: Elements,
    entropy: Entropy,
    *,
    field: Field = PROTOCOL_FIELD,
) -> Limbs:
    """Share m field elements at n points, each by its own polynomial of t coefficients.

    Parameters
    ----------
    limbs : array of elements, shape (m,), in [0, p)
        ``uint64`` for p < 2^63, and else Python integers.
    threshold : int
        t ≥ 1.
    points : array of elements, shape (n,), distinct and non-zero
    entropy : callable
        Source of the coefficients: 8 bytes for each coefficient, or ⌈b / 8⌉ where p ≥ 2^63 has
        b bits. A draw that is not below p takes as many bytes again.
    field : Field

    Returns
    -------
    array of elements, shape (n, m)

    Raises
    ------
    ParameterError
        A shape that does not match, t < 1, an element outside the field, or a point that is
        zero: the share at zero would be the secret.
    """
    check_integer("threshold", threshold, 1, _MOST)
    constants, xs = field.array(limbs), field.array(points)
    if constants.ndim != 1 or xs.ndim != 1:
        raise ParameterError(
            f"limbs of shape {constants.shape} and points of shape {xs.shape} must be vectors"
        )
    if not xs.all():
        raise ParameterError("a point is 0, whose share is the secret; number holders from 1")
    # t coefficients each, also the highest uniform: if the highest could not be zero, t − 1
    # holders could exclude a value of the limb
    coefficients = cast("Elements", np.empty((threshold, constants.size), constants.dtype))
    coefficients[0] = constants
    drawn = uniform((threshold - 1) * constants.size, entropy, field.modulus)
    coefficients[1:] = drawn.reshape(threshold - 1, constants.size)
    shares: Limbs = evaluate(coefficients, xs, field.modulus)  # type: ignore[assignment]
    return shares


def combine_limbs(points: Limbs, values: Limbs, *, field: Field = PROTOCOL_FIELD) -> Limbs:
    """Return the m constant terms that t shares determine: Lagrange interpolation at zero.

    Parameters
    ----------
    points : array of elements, shape (t,), distinct and non-zero
    values : array of elements, shape (t, m)
    field : Field

    Raises
    ------
    ParameterError
        A shape that does not match, an element outside the field, or a point that is zero or
        repeated.
    """
    xs, ys = field.array(points), field.array(values)
    if xs.ndim != 1 or ys.ndim != 2 or len(xs) != len(ys):
        raise ParameterError(
            f"values of shape {ys.shape} are not one row for each of the points, of shape "
            f"{xs.shape}"
        )
    if not xs.all() or len(set(xs.tolist())) != xs.size:
        raise ParameterError("the points of the shares must be distinct and non-zero")
    constants: Limbs = _at_zero(xs, ys, field.modulus)  # type: ignore[assignment]
    return constants


def uniform(count: int, entropy: Entropy, p: int = M61) -> Elements:
    """Draw elements of [0, p), with as many bits as p − 1 has; repeat draws not below p."""
    bits = (p - 1).bit_length()
    mask = (1 << bits) - 1

    narrow = p < 1 << 63
    size = 8 if narrow else -(-bits // 8)
    draws = cast("Elements", np.full(count, p, np.uint64 if narrow else object))
    # rejection, because remainders modulo p would not be uniform
    while (rejected := draws >= p).any():
        # a source that returns less would repeat the same element
        data = take(entropy, size * int(np.count_nonzero(rejected)))
        if narrow:
            draws[rejected] = np.frombuffer(data, "<u8") & np.uint64(mask)
        else:
            cuts = (data[i : i + size] for i in range(0, len(data), size))
            draws[rejected] = objects([int.from_bytes(cut, "little") & mask for cut in cuts])
    return draws


def _statement(threshold: int, n: int, length: int | None, p: int) -> bytes:
    """Return the polynomials' purpose; bytes in GF(2^61 − 1) omit length and modulus."""
    counts = struct.pack("<QQ", threshold, n)
    if p == M61 and length is not None:
        return b"secagg shamir split v1" + counts
    modulus = p.to_bytes(-(-p.bit_length() // 8), "little")
    return b"secagg shamir field v1" + counts + struct.pack("<Q", length or 0) + modulus


def _at_zero(points: Elements, values: Elements, p: int) -> Elements:
    weights = lagrange_at_zero(points, p).reshape(1, -1)
    return matmul(weights, values, p).ravel()
