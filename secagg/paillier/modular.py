"""Arithmetic with batches of large integers modulo one odd number N.

A batch is a uint64 array of shape (count, limbs). Each row is a number in [0, N), with the
least significant 64 bits in limb 0. As bytes, a row is little-endian and of fixed width.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._threads import in_slices
from secagg.paillier.gmp import gmpy2

Batch = NDArray[np.uint64]

TABLE_BYTES = 64 << 20  # a larger table falls out of every cache


def to_batch(numbers: Iterable[int], limbs: int) -> Batch:
    """Return numbers in [0, 2^(64 limbs)) as an array of shape (count, limbs)."""
    return _rows(b"".join(int(x).to_bytes(8 * limbs, "little") for x in numbers), limbs)


def _rows(data: bytes, limbs: int) -> Batch:
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, limbs)


class Modulus:
    """Odd number N > 1, with arithmetic on batches modulo N.

    The attribute `value` is N, and a row of a batch has `limbs` uint64 words.
    """

    def __init__(self, value: int) -> None:
        self.value: int = gmpy2.mpz(value)
        self.limbs = -(-int(value).bit_length() // 64)
        radix = 1 << _fast.modular_radix(self.limbs)
        # the kernels reduce faster modulo a square (n², p²) if they know the root
        root = gmpy2.isqrt(self.value)
        roots = [root] if root * root == self.value else []
        self._constants = (
            self.pack([self.value])[0],
            self.pack([radix * radix % self.value])[0],
            to_batch(roots, (self.limbs + 1) // 2).reshape(-1),
        )

    @property
    def width(self) -> int:
        """Number of bytes of a row."""
        return 8 * self.limbs

    def pack(self, numbers: Iterable[int]) -> Batch:
        """Return numbers in [0, 2^(64 limbs)) as a batch."""
        return to_batch(numbers, self.limbs)

    def unpack(self, batch: Batch) -> list[int]:
        """Return the rows of a batch as integers of type gmpy2.mpz."""
        data, width = self.wrap(batch), self.width
        rows = (data[i : i + width] for i in range(0, len(data), width))
        return [gmpy2.mpz(int.from_bytes(row, "little")) for row in rows]

    def wrap(self, batch: Batch) -> bytes:
        """Return a batch as bytes, `width` bytes a row."""
        return batch.astype("<u8", copy=False).tobytes()

    def unwrap(self, data: bytes) -> Batch:
        """Return the bytes of `wrap` as a batch, without a check that rows are below N."""
        return _rows(data, self.limbs)

    def multiply(self, a: Batch, b: Batch) -> Batch:
        """Return a · b mod N, row by row; a `b` of a single row multiplies all rows."""
        out = np.empty_like(a)

        def part(rows: slice) -> None:
            right = b if len(b) == 1 else b[rows]
            _fast.modular_multiply(a[rows], right, out[rows], *self._constants)

        in_slices(part, len(a), least=512)
        return out

    def power(self, batch: Batch, exponent: int) -> Batch:
        """Return each row to the power of `exponent` ≥ 0, modulo N.

        The exponent may be secret: kernels do not branch on exponent bits. The time depends on
        the length of the exponent.
        """
        out = np.empty_like(batch)
        limbs = max(1, -(-int(exponent).bit_length() // 64))
        words = to_batch([exponent], limbs)[0]

        def part(rows: slice) -> None:
            _fast.modular_power(batch[rows], words, out[rows], *self._constants)

        in_slices(part, len(batch))
        return out

    def product(self, batch: Batch) -> int:
        """Return the product of all rows mod N; 1 for an empty batch."""
        # a tree of products: every level is one threaded call of the kernel
        while len(batch) > 1:
            half = len(batch) // 2
            odd = batch[2 * half :]
            batch = np.concatenate([self.multiply(batch[:half], batch[half : 2 * half]), odd])
        return self.unpack(batch)[0] if len(batch) else 1


class FixedBase:
    """Fast powers of a fixed base, from a table of powers (Brickell et al. 1992).

    With windows of w bits, a power takes ⌈bits / w⌉ multiplications, and the table 2^w times as
    many. A table with longer windows replaces the first table when enough powers are needed.
    Table lookups depend on the exponent, so they are not constant-time in the cache. The base
    is in [0, N), and exponents have at most `exponent_bits` bits.
    """

    def __init__(self, modulus: Modulus, base: int, exponent_bits: int) -> None:
        self.modulus = modulus
        self.exponent_bits = exponent_bits
        self._base = modulus.pack([base])[0]
        self._powers = 0
        # one tuple, replaced in one assignment: threads read it without a lock
        self._windowed = (0, np.zeros((0, 1, 0), dtype=np.uint64))

    def expect(self, powers: int) -> None:
        """Enlarge the table, before threads share it, if `powers` more powers justify this."""
        self._powers += powers
        best, modulus = self._best_window(), self.modulus
        if best > self._windowed[0]:
            width = _fast.modular_width(modulus.limbs)
            table = np.zeros((self._windows(best), 1 << best, width), dtype=np.uint64)
            _fast.modular_table(self._base, table, best, *modulus._constants)
            self._windowed = (best, table)

    def power(self, exponents: Iterable[int]) -> Batch:
        """Return base^e mod N for each e of `exponents`, 0 ≤ e < 2^exponent_bits."""
        digits = to_batch(exponents, -(-self.exponent_bits // 64))
        if not self._windowed[0]:
            self.expect(len(digits))
        # read once: another thread may replace window and table together meanwhile
        modulus, (window, table) = self.modulus, self._windowed
        out = np.empty((len(digits), modulus.limbs), dtype=np.uint64)

        def part(rows: slice) -> None:
            _fast.modular_power_fixed(
                table, digits[rows], out[rows], window, *modulus._constants
            )

        in_slices(part, len(digits))
        return out

    def _best_window(self) -> int:
        """Return the window length that would have been cheapest for all powers so far."""
        entry = 8 * _fast.modular_width(self.modulus.limbs)

        def multiplications(window: int) -> int:
            return self._windows(window) * ((1 << window) + self._powers)

        fitting = (w for w in range(2, 12) if self._windows(w) * (entry << w) <= TABLE_BYTES)
        return min(fitting, key=multiplications, default=1)

    def _windows(self, window: int) -> int:
        return -(-self.exponent_bits // window)
