"""Batches of large numbers modulo one odd number, through gmpy2: the twin of the C kernels.

A batch is a uint64 array of shape (count, limbs), limb 0 the least significant. Results lie in
[0, N); inputs may be any numbers of that many limbs. ``modulus`` is N as an array of shape
(limbs,), odd, its highest limb not zero, of 256 limbs at most. `out` may be an input. A
ValueError is raised for any other modulus and for shapes that do not fit.

The kernels compute with Montgomery's radix R = 2^``modular_radix(limbs)`` (Montgomery 1985),
and are given R² mod N as ``square``; here R = 1. Tables of powers are opaque: only the
implementation that made one can read it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "modular_multiply",
    "modular_power",
    "modular_power_fixed",
    "modular_radix",
    "modular_table",
    "modular_width",
]

U64 = NDArray[np.uint64]

_MOST_LIMBS = 256  # up to here the kernels' room for carries suffices


def modular_radix(limbs: int) -> int:
    """Return log2 of Montgomery's R for numbers of so many limbs; here 0, no Montgomery."""
    _check_limbs(limbs)
    return 0


def modular_width(limbs: int) -> int:
    """Return the number of uint64 in an entry of a table."""
    _check_limbs(limbs)
    return limbs


def modular_multiply(a: U64, b: U64, out: U64, modulus: U64, square: U64) -> None:
    """Write a · b mod N, row by row; a `b` of one row multiplies all."""
    n = _modulus(modulus, square, a, out)
    _check_words(b)
    if b.shape != a.shape and b.shape != (1, a.shape[1]):
        raise ValueError(f"shapes {a.shape} and {b.shape} differ")
    right = [_number(row) for row in b]
    for i in range(len(a)):
        _write(out[i], _number(a[i]) * right[i if len(right) > 1 else 0] % n)


def modular_power(base: U64, exponent: U64, out: U64, modulus: U64, square: U64) -> None:
    """Write base^e mod N, row by row, e ≥ 0 the same for all: shape (exponent_limbs,)."""
    n = _modulus(modulus, square, base, out)
    _check_words(exponent)
    if exponent.ndim != 1:
        raise ValueError(f"an exponent of shape {exponent.shape}")
    e = _number(exponent)
    for i in range(len(base)):
        _write(out[i], pow(_number(base[i]), e, n))


def modular_table(base: U64, table: U64, window: int, modulus: U64, square: U64) -> None:
    """Fill the table of base^(d · 2^(window · w)) for every window w and digit d.

    `base` has shape (limbs,), `table` (windows, 2^window, modular_width(limbs)); a window has
    1 to 16 bits.
    """
    n = _modulus(modulus, square, base[np.newaxis])
    _check_table(table, window, modulus)
    step = _number(base)
    for row in table:
        entry = 1 % n
        for digit in row:
            _write(digit, entry)
            entry = entry * step % n
        step = entry  # the entry after the last is the first of the next window


def modular_power_fixed(
    table: U64, exponents: U64, out: U64, window: int, modulus: U64, square: U64
) -> None:
    """Write, row by row, the table's base to the power of `exponents`, (count, exponent_limbs).

    An exponent with bits beyond the table's windows is a ValueError.
    """
    n = _modulus(modulus, square, out)
    _check_table(table, window, modulus)
    _check_words(exponents)
    if exponents.ndim != 2 or len(exponents) != len(out):
        raise ValueError(f"exponents of shape {exponents.shape} for {len(out)} results")
    for i, row in enumerate(exponents):
        exponent = _number(row)
        if exponent >> (window * len(table)):
            raise ValueError("an exponent has more bits than the table has windows for")
        product = 1 % n
        for powers in table:
            product = product * _number(powers[exponent & ((1 << window) - 1)]) % n
            exponent >>= window
        _write(out[i], product)


def _modulus(modulus: U64, square: U64, *batches: U64) -> int:
    """Check the shapes, and return N."""
    _check_words(modulus, square, *batches)
    if modulus.ndim != 1 or square.shape != modulus.shape:
        raise ValueError(f"a modulus of shape {modulus.shape}, its square {square.shape}")
    _check_limbs(len(modulus))
    if not modulus[0] & np.uint64(1) or not modulus[-1]:
        raise ValueError("the modulus is even, or its highest limb is zero")
    for batch in batches:
        if batch.ndim != 2 or batch.shape != (len(batches[0]), len(modulus)):
            raise ValueError(f"a batch of shape {batch.shape} for {len(modulus)} limbs")
    return _number(modulus)


def _check_table(table: U64, window: int, modulus: U64) -> None:
    if not 1 <= window <= 16:
        raise ValueError(f"a window of {window} bits is outside [1, 16]")
    _check_words(table)
    if table.ndim != 3 or table.shape[1:] != (1 << window, modular_width(len(modulus))):
        raise ValueError(f"a table of shape {table.shape} for windows of {window} bits")


def _check_limbs(limbs: int) -> None:
    if not 1 <= limbs <= _MOST_LIMBS:
        raise ValueError(f"{limbs} limbs of a modulus are outside [1, {_MOST_LIMBS}]")


def _check_words(*arrays: U64) -> None:
    if any(x.dtype != np.uint64 or not x.flags.c_contiguous for x in arrays):
        raise ValueError("expected contiguous arrays of uint64")


def _number(limbs: U64) -> int:
    """Return a gmpy2.mpz, which is faster than an int."""
    from gmpy2 import mpz  # imported here: secret sharing does not need gmpy2

    number: int = mpz(int.from_bytes(limbs.astype("<u8").tobytes(), "little"))
    return number


def _write(limbs: U64, value: int) -> None:
    limbs[:] = np.frombuffer(int(value).to_bytes(8 * len(limbs), "little"), dtype="<u8")
