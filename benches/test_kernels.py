"""Times of the compiled kernels beside plain code with the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest
from numpy.typing import NDArray

from benches import plain
from benches.conftest import Call, Versus
from benches.plain import CLIP, SCALE, U32, U64
from secagg import _fast, shamir
from secagg.encoding import Ring
from secagg.encoding.bounded import Bounded
from secagg.oneshot.noise import Noise, blocks
from secagg.protocol.noise import Share

P = 2**61 - 1
LENGTH = 100_000
PEERS = 100
BATCH, EXPONENT, WINDOW = 64, 512, 8  # numbers, bits, bits

_rng = np.random.default_rng(2017)
KEYS = [_rng.bytes(16) for _ in range(PEERS)]
SIGNS = bytes(j % 2 for j in range(PEERS))


def test_masks_modulo_p(versus: Versus) -> None:
    """Compare with plain remainders, which are not uniform: only the range is the same."""
    acc = np.zeros(LENGTH, np.uint64)

    def ours() -> U64:
        _fast.mask_mod(acc, b"".join(KEYS), SIGNS, P)
        return acc

    def remainders() -> U64:
        for key, minus in zip(KEYS, SIGNS, strict=True):
            mask = np.frombuffer(plain.keystream(key, acc.nbytes), np.uint64) % P
            acc[:] = (acc + (P - mask if minus else mask)) % P
        return acc

    def check(*totals: U64) -> None:
        assert all(total.max() < P for total in totals)

    group = f"masks mod 2^61 - 1, k = {PEERS}, d = {LENGTH:,}: numpy % p, not uniform"
    versus(group, ours, remainders, check)


@pytest.mark.parametrize(("t", "n"), [(67, 100), (667, 1000)])
@pytest.mark.parametrize("step", ["split", "reconstruct"])
def test_shamir(versus: Versus, t: int, n: int, step: str) -> None:
    coefficients = _rng.integers(0, P, (t, 1), dtype=np.uint64)
    xs = np.arange(1, n + 1, dtype=np.uint64)
    few, shares = xs[:t].copy(), _fast.m61_poly_eval(coefficients, xs)[:t, 0].copy()
    one, points, known = coefficients[:, 0].tolist(), xs.tolist(), shares.tolist()
    if step == "split":
        versus(
            f"Shamir split, t = {t}, n = {n}: Python integers, Horner",
            lambda: _fast.m61_poly_eval(coefficients, xs)[:, 0],
            lambda: plain.split(one, points, P),
        )
    else:
        versus(
            f"Shamir reconstruct, t = {t}: Python integers, Lagrange",
            lambda: _fast.m61_dot(_fast.m61_lagrange_at_zero(few), shares),
            lambda: plain.reconstruct(known, plain.lagrange(points[:t], P), P),
        )


def test_bounded_with_noise(versus: Versus) -> None:
    """Compare a client's encoding and its share with noise of a one-shot sum, at a helper."""
    vector = _rng.normal(size=LENGTH)
    rotated, ring = Bounded(300.0, 1426).of_round(b"bench", LENGTH), Ring(1 << 16)
    noise, add = Noise(Fraction(110)), Share(110 * 256).adder(KEYS[0], ring)

    def ours() -> int:
        lanes, _ = rotated.encode(vector, ring)
        add(lanes, 0)
        return lanes.size

    def theirs() -> int:
        return sum(block.size for block in blocks(noise, KEYS[0], LENGTH))

    def check(padded: int, drawn: int) -> None:
        assert (padded, drawn) == (rotated.elements, LENGTH)

    group = f"clip, rotate, round, add a share, d = {LENGTH:,}: noise of a one-shot sum"
    versus(group, ours, theirs, check)


@pytest.mark.parametrize("bits", [62, 127])
def test_shamir_over_another_prime(versus: Versus, bits: int) -> None:
    """Compare the whole function, shares checked, with a plain one."""
    t, n, p = 667, 1000, 2**62 - 57 if bits == 62 else 2**127 - 1
    few = shamir.split(p // 3, t, n, field=shamir.Field(p))[:t]
    known = [share.limbs[0] for share in few]
    versus(
        f"Shamir combine, t = {t}, prime of {bits} bits: Python integers, Lagrange",
        lambda: shamir.combine(few),
        lambda: plain.reconstruct(known, plain.lagrange(range(1, t + 1), p), p),
    )


@pytest.mark.parametrize("rounding", ["stochastic", "nearest"])
def test_encode(versus: Versus, rounding: str) -> None:
    x, out = _rng.normal(size=LENGTH) * 4, np.zeros(LENGTH, np.uint32)
    random = _rng.integers(0, 2**64, LENGTH, dtype=np.uint64)
    words = random if rounding == "stochastic" else None

    ours = _into(out, _fast.encode, x, out, CLIP, SCALE, 1, 2**32, words)
    group = f"encode, {rounding}, d = {LENGTH:,}: numpy"
    versus(group, ours, lambda: plain.encode(x, words))


def test_decode(versus: Versus) -> None:
    words, out = _rng.integers(0, 2**32, LENGTH, dtype=np.uint32), np.zeros(LENGTH)
    ours = _into(out, _fast.decode, words, out, 2**32, 1 / SCALE)
    versus(f"decode, d = {LENGTH:,}: numpy", ours, lambda: words.view(np.int32) * (1 / SCALE))


def test_pack(versus: Versus) -> None:
    values = _rng.integers(0, 2**26, LENGTH, dtype=np.uint32)

    def spread() -> bytes:
        bits = np.unpackbits(values.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
        return np.packbits(bits[:, :26], bitorder="little").tobytes()

    group = f"pack 26 bits, d = {LENGTH:,}: numpy unpackbits, packbits"
    versus(group, lambda: _fast.pack_bits(values, 26), spread)


def test_unpack(versus: Versus) -> None:
    packed, out = _rng.bytes(26 * LENGTH // 8), np.zeros(LENGTH, np.uint32)

    def spread() -> U32:
        bits = np.zeros((LENGTH, 32), np.uint8)
        string = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        bits[:, :26] = string.reshape(LENGTH, 26)
        return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)[:, 0]

    group = f"unpack 26 bits, d = {LENGTH:,}: numpy unpackbits, packbits"
    versus(group, _into(out, _fast.unpack_bits, packed, 26, out), spread)


@pytest.mark.large
@pytest.mark.parametrize("size", [4096, 6144])
@pytest.mark.parametrize(
    "work", ["multiply", "multiply by one number", "power", "power of one base"]
)
def test_large_numbers(versus: Versus, size: int, work: str) -> None:
    """Compare with gmpy2, at the sizes of n² for Paillier keys n of 2048 and 3072 bits."""
    limbs = size // 64
    root = _rng.integers(2**63, 2**64, limbs // 2, dtype=np.uint64) | np.uint64(1)
    (number,) = _integers([root])
    n = np.frombuffer(int(number**2).to_bytes(size // 8, "little"), np.uint64)
    rows, others, out = list[U64](_rng.integers(0, 2**63, (3, BATCH, limbs), dtype=np.uint64))
    exponents = _rng.integers(0, 2**64, (BATCH, EXPONENT // 64), dtype=np.uint64)
    (modulus,), left = _integers([n]), _integers(rows)
    right, powers = _integers(others), _integers(exponents)
    square = pow(2, 2 * _fast.modular_radix(limbs), int(modulus))
    constants = n, np.frombuffer(square.to_bytes(size // 8, "little"), np.uint64), root
    table = np.empty((EXPONENT // WINDOW, 1 << WINDOW, _fast.modular_width(limbs)), np.uint64)
    _fast.modular_table(rows[0], table, WINDOW, *constants)

    ways: dict[str, tuple[Call, Call]] = {
        "multiply": (
            lambda: _fast.modular_multiply(rows, others, out, *constants),
            lambda: [a * b % modulus for a, b in zip(left, right, strict=True)],
        ),
        "multiply by one number": (
            lambda: _fast.modular_multiply(rows, others[:1], out, *constants),
            lambda: [a * right[0] % modulus for a in left],
        ),
        "power": (
            lambda: _fast.modular_power(rows, exponents[0], out, *constants),
            lambda: [gmpy2.powmod(a, powers[0], modulus) for a in left],
        ),
        "power of one base": (
            lambda: _fast.modular_power_fixed(table, exponents, out, WINDOW, *constants),
            lambda: [gmpy2.powmod(left[0], e, modulus) for e in powers],
        ),
    }
    fill, gmp = ways[work]

    def check(limbs: U64, numbers: list[int]) -> None:
        assert _integers(limbs) == numbers

    group = f"{work} mod N of {size} bits, {BATCH} numbers, {EXPONENT}-bit powers: gmpy2"
    versus(group, _into(out, fill), gmp, check)


def _into(out: NDArray[Any], kernel: Callable[..., object], *arguments: object) -> Call:
    def call() -> NDArray[Any]:
        kernel(*arguments)
        return out

    return call


def _integers(rows: Iterable[U64]) -> list[int]:
    """Convert rows of limbs to gmpy2 integers; this is not part of a timed call."""
    return [gmpy2.mpz(int.from_bytes(row.astype("<u8").tobytes(), "little")) for row in rows]
