"""Arithmetic with batches of large numbers modulo an odd N, by gmpy2: twins of the C kernels.

A batch is a uint64 array of shape (count, limbs), a number in each row, with the least
significant 64 bits in limb 0. Inputs may be any numbers of that many limbs, and results lie in
[0, N). The parameter ``modulus`` is N, an array of shape (limbs,) with at most 256 limbs, the
highest not zero. `out` is overwritten with the result and may be an input. ValueError is raised
for any other modulus and for shapes that do not fit.

The C kernels compute with Montgomery's radix R = 2^``modular_radix(limbs)`` (Montgomery 1985),
and need R² mod N as ``square``; here R = 1. If N is a square, the kernels are faster with
``root``, √N in half the limbs, rounded up; for any other N ``root`` has no limbs. Only the
implementation that filled a table of powers can read the table, with the same root. The kernels
check the size of the root, but not the square of the root.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

_MOST_LIMBS = 256  # up to here the kernels' room for carries suffices


def modular_radix(limbs: int) -> int:
    """Return log2 of Montgomery's radix R for numbers of `limbs` limbs; here 0."""
    _check_limbs(limbs)
    return 0


def modular_width(limbs: int) -> int:
    """Return the number of uint64 words in an entry of a table of powers."""
    _check_limbs(limbs)
    return limbs


def modular_multiply(a: U64, b: U64, out: U64, modulus: U64, square: U64, root: U64) -> None:
    """Write a · b mod N to `out`, row by row; a `b` of a single row multiplies all rows."""
    n = _modulus(modulus, square, root, a, out)
    _check_words(b)
    if b.shape != a.shape and b.shape != (1, a.shape[1]):
        raise ValueError(f"shapes {a.shape} and {b.shape} differ")
    right = [_number(row) for row in b]
    for i in range(len(a)):
        _write(out[i], _number(a[i]) * right[i if len(right) > 1 else 0] % n)


def modular_power(
    base: U64, exponent: U64, out: U64, modulus: U64, square: U64, root: U64
) -> None:
    """Write base^e mod N to `out`, row by row; e is `exponent`, shape (exponent_limbs,)."""
    n = _modulus(modulus, square, root, base, out)
    _check_words(exponent)
    if exponent.ndim != 1:
        raise ValueError(f"an exponent of shape {exponent.shape}")
    e = _number(exponent)
    for i in range(len(base)):
        _write(out[i], pow(_number(base[i]), e, n))


def modular_table(
    base: U64, table: U64, window: int, modulus: U64, square: U64, root: U64
) -> None:
    """Fill `table` with base^(d · 2^(window · w)) mod N for every window w and digit d.

    `base` has shape (limbs,), `table` has shape (windows, 2^window, modular_width(limbs)), and
    `window` is the length of a window in bits, 1 to 16.
    """
    n = _modulus(modulus, square, root, base[np.newaxis])
    _check_table(table, window, modulus)
    step = _number(base)
    for row in table:
        # 0 for N = 1, which is odd and so allowed
        entry = 1 % n
        for digit in row:
            _write(digit, entry)
            entry = entry * step % n
        step = entry  # the entry after the last is the first of the next window


def modular_power_fixed(
    table: U64, exponents: U64, out: U64, window: int, modulus: U64, square: U64, root: U64
) -> None:
    """Write base^e mod N to `out` for each row e of `exponents`, shape (count, exponent_limbs).

    `table` is the base's table from `modular_table`. ValueError is raised for an exponent with
    more bits than the windows of the table.
    """
    n = _modulus(modulus, square, root, out)
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


def _modulus(modulus: U64, square: U64, root: U64, *batches: U64) -> int:
    """Check the shapes and the root, and return N as an integer."""
    _check_words(modulus, square, root, *batches)
    if root.ndim != 1 or (root.size and 2 * root.size - modulus.size not in (0, 1)):
        raise ValueError(f"a root of shape {root.shape} of a modulus of {modulus.shape}")
    if root.size and _number(root) ** 2 != _number(modulus):
        raise ValueError("the square of the root is not the modulus")
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
    """Return the number in `limbs` as a gmpy2.mpz, which is faster than an int."""
    from gmpy2 import mpz  # imported here: secret sharing does not need gmpy2

    number: int = mpz(int.from_bytes(limbs.astype("<u8").tobytes(), "little"))
    return number


def _write(limbs: U64, value: int) -> None:
    limbs[:] = np.frombuffer(int(value).to_bytes(8 * len(limbs), "little"), dtype="<u8")
