"""The kernels against what one would write without them.

Every baseline is the plain way to do the same work with ``cryptography``, numpy and Python
integers, and gives the same result unless its label says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import gmpy2
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from benches.ratio import Row, compare
from secagg import _fast

__all__ = ["ROWS"]

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

P = 2**61 - 1
LENGTH = 100_000
PEERS = 100
CLIP, SCALE = 8.0, 65536.0
BATCH, EXPONENT, WINDOW = 64, 512, 8  # numbers, bits, bits

_rng = np.random.default_rng(2017)
KEYS = _rng.bytes(16 * PEERS)
SIGNS = bytes(j % 2 for j in range(PEERS))


def masks() -> Iterable[Row]:
    """Masks of 100 peers on a vector of 100,000."""
    plain = "cryptography, whole stream, then numpy"
    size = f"k = {PEERS}, d = {LENGTH:,}"
    for acc in (np.zeros(LENGTH, np.uint32), np.zeros(LENGTH, np.uint64)):
        ours = partial(_fast.mask_words, acc, KEYS, SIGNS)
        theirs = partial(plain_masks, acc.copy())
        yield compare(
            f"masks, {8 * acc.itemsize}-bit words, {size}", ours, theirs, f"{plain} add"
        )
    ours = partial(_fast.mask_mod, np.zeros(LENGTH, np.uint64), KEYS, SIGNS, P)
    theirs = partial(plain_masks_mod, np.zeros(LENGTH, np.uint64))
    biased = f"{plain} % p (not uniform)"
    yield compare(f"masks mod 2^61 - 1, {size}", ours, theirs, biased, repeats=5)


def plain_masks(acc: U32 | U64) -> None:
    """Add or subtract the whole stream of every key."""
    for j, minus in enumerate(SIGNS):
        mask = np.frombuffer(_stream(j, acc.nbytes), acc.dtype)
        (np.subtract if minus else np.add)(acc, mask, out=acc)


def plain_masks_mod(acc: U64) -> None:
    """Do the same mod p with the obvious, slightly biased, remainder."""
    for j, minus in enumerate(SIGNS):
        mask = np.frombuffer(_stream(j, acc.nbytes), np.uint64) % P
        acc[:] = (acc + (P - mask if minus else mask)) % P


def _stream(j: int, length: int) -> bytes:
    key = KEYS[16 * j : 16 * (j + 1)]
    return Cipher(AES(key), CTR(bytes(16))).encryptor().update(bytes(length))


def shamir() -> Iterable[Row]:
    """One element of GF(2^61 - 1) split and put together again."""
    for t, n in ((67, 100), (667, 1000)):
        coeffs = _rng.integers(0, P, (t, 1), dtype=np.uint64)
        xs = np.arange(1, n + 1, dtype=np.uint64)
        points, plain = xs.tolist(), "Python integers, "
        ours = partial(_fast.m61_poly_eval, coeffs, xs)
        theirs = partial(plain_split, coeffs[:, 0].tolist(), points)
        name = f"Shamir split, t = {t}, n = {n}"
        yield compare(name, ours, theirs, f"{plain}Horner", repeats=5)
        shares = np.ascontiguousarray(_fast.m61_poly_eval(coeffs, xs)[:t, 0])
        back = partial(reconstruct, shares, xs[:t].copy())
        plain_back = partial(plain_reconstruct, shares.tolist(), points[:t])
        name = f"Shamir reconstruct, t = {t}"
        yield compare(name, back, plain_back, f"{plain}Lagrange", repeats=5)


def reconstruct(shares: U64, xs: U64) -> int:
    """Interpolate at zero with the kernels."""
    return _fast.m61_dot(_fast.m61_lagrange_at_zero(xs), shares)


def plain_split(coeffs: list[int], points: list[int]) -> list[int]:
    """Evaluate one polynomial by Horner's rule."""
    shares = []
    for x in points:
        value = 0
        for coefficient in reversed(coeffs):
            value = (value * x + coefficient) % P
        shares.append(value)
    return shares


def plain_reconstruct(shares: list[int], points: list[int]) -> int:
    """Interpolate at zero by Lagrange's formula."""
    secret = 0
    for i, x in enumerate(points):
        above = below = 1
        for j, other in enumerate(points):
            if i != j:
                above, below = above * other % P, below * (other - x) % P
        secret += shares[i] * above * pow(below, -1, P)
    return secret % P


def fixed_point() -> Iterable[Row]:
    """100,000 floats to integers mod 2^32 and back."""
    x = _rng.normal(size=LENGTH) * 4
    noise = _rng.integers(0, 2**64, LENGTH, dtype=np.uint64)
    out, back = np.zeros(LENGTH, np.uint32), np.zeros(LENGTH)
    for name, random in (("stochastic", noise), ("nearest", None)):
        ours = partial(_fast.encode, x, out, CLIP, SCALE, 1, 2**32, random)
        theirs = partial(plain_encode, x, random)
        yield compare(f"encode, {name}, d = {LENGTH:,}", ours, theirs, "numpy")
    decode = partial(_fast.decode, out, back, 2**32, 1 / SCALE)
    plain_decode = lambda: out.view(np.int32) * (1 / SCALE)  # noqa: E731
    yield compare(f"decode, d = {LENGTH:,}", decode, plain_decode, "numpy")


def plain_encode(x: NDArray[np.float64], random: U64 | None) -> U32:
    """Clip, check, scale and round with numpy, given the same random words."""
    if not np.isfinite(x).all():
        raise ValueError("not finite")
    y = np.clip(x, -CLIP, CLIP) * SCALE
    if random is None:
        return np.rint(y).astype(np.int64).astype(np.uint32)
    down = np.floor(y)
    up = (random >> 11) < (y - down) * 2.0**53
    return (down.astype(np.int64) + up).astype(np.uint32)


def bits() -> Iterable[Row]:
    """100,000 values of 26 bits to bytes and back."""
    values = _rng.integers(0, 2**26, LENGTH, dtype=np.uint32)
    packed, out = _fast.pack_bits(values, 26), np.zeros(LENGTH, np.uint32)
    pack, plain = partial(_fast.pack_bits, values, 26), "numpy unpackbits, packbits"
    name = f"pack 26 bits, d = {LENGTH:,}"
    yield compare(name, pack, partial(plain_pack, values), plain, repeats=5)
    unpack = partial(_fast.unpack_bits, packed, 26, out)
    yield compare(f"un{name}", unpack, partial(plain_unpack, packed), plain, repeats=5)


def plain_pack(values: U32) -> bytes:
    """Spread the values to one byte per bit and pack those."""
    spread = np.unpackbits(values.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return np.packbits(spread[:, :26], bitorder="little").tobytes()


def plain_unpack(packed: bytes) -> U32:
    """Spread the string to one byte per bit and gather those of each value."""
    spread = np.zeros((LENGTH, 32), np.uint8)
    string = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
    spread[:, :26] = string[: 26 * LENGTH].reshape(LENGTH, 26)
    return np.packbits(spread, axis=1, bitorder="little").view(np.uint32)[:, 0]


def large_numbers() -> Iterable[Row]:
    """Products and powers modulo N of 4096 and 6144 bits, the squares of Paillier's keys."""
    for size in (4096, 6144):
        numbers = Numbers(size)
        kind = f"mod N of {size} bits, {BATCH} numbers"
        for by, others in (("", numbers.others), (" by one number", numbers.others[:1])):
            arguments = numbers.rows, others, numbers.out, *numbers.constants
            ours = partial(_fast.modular_multiply, *arguments)
            plain = numbers.plain_multiply
            yield compare(f"multiply{by} {kind}", ours, plain, "gmpy2, a * b % n")
        for of, power in (("", numbers.power), (" of one base", numbers.power_fixed)):
            name = f"{EXPONENT}-bit power{of} {kind}"
            yield compare(name, power, numbers.plain_power, "gmpy2.powmod", repeats=3)


class Numbers:
    """A modulus and a batch below it, as limbs and as gmpy2's integers."""

    def __init__(self, size: int) -> None:
        limbs = size // 64
        n = _rng.integers(2**63, 2**64, limbs, dtype=np.uint64) | np.uint64(1)
        self.n = integer(n)
        square = pow(2, 2 * _fast.modular_radix(limbs), self.n)
        self.constants = n, np.frombuffer(int(square).to_bytes(size // 8, "little"), np.uint64)
        self.rows, self.others, self.out = _rng.integers(
            0, 2**63, (3, BATCH, limbs), dtype=np.uint64
        )
        self.exponents = _rng.integers(0, 2**64, (BATCH, EXPONENT // 64), dtype=np.uint64)
        shape = (EXPONENT // WINDOW, 1 << WINDOW, _fast.modular_width(limbs))
        self.table = np.empty(shape, np.uint64)
        _fast.modular_table(self.rows[0], self.table, WINDOW, *self.constants)
        self.left = [integer(row) for row in self.rows]
        self.right = [integer(row) for row in self.others]
        self.powers = [integer(row) for row in self.exponents]

    def power(self) -> None:
        """Raise all numbers to the first exponent."""
        _fast.modular_power(self.rows, self.exponents[0], self.out, *self.constants)

    def power_fixed(self) -> None:
        """Raise the first number to all exponents."""
        _fast.modular_power_fixed(self.table, self.exponents, self.out, WINDOW, *self.constants)

    def plain_multiply(self) -> list[int]:
        """Multiply pairwise; integers stay integers, no bytes are read or written."""
        return [a * b % self.n for a, b in zip(self.left, self.right, strict=True)]

    def plain_power(self) -> list[int]:
        """Raise the first number to all exponents; another base takes the same time."""
        return [gmpy2.powmod(self.left[0], e, self.n) for e in self.powers]


def integer(limbs: U64) -> int:
    """Read a number as gmpy2 keeps it."""
    number: int = gmpy2.mpz(int.from_bytes(limbs.astype("<u8").tobytes(), "little"))
    return number


ROWS: list[Callable[[], Iterable[Row]]] = [masks, shamir, fixed_point, bits, large_numbers]
