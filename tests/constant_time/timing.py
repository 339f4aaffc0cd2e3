"""Welch's t-test on the times of two classes of inputs, after dudect.

Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?" (DATE 2017): times of both
classes are taken in random order, and the longest are cropped at several percentiles. The
largest |t| counts: above 4.5 the means differ with high probability, above 10 surely.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg import FixedPoint, Integers, _fast
from secagg._fast import reference_masks
from secagg.encoding import Ring
from secagg.protocol.noise import Share

F64 = NDArray[np.float64]
PROBABLE, SURE = 4.5, 10.0
ELEMENTS = 1024
CROPS = 100  # as many percentiles as dudect takes
LEAST = 500  # times left of a class
POOL = 16  # inputs of a class
OTHER = 200  # a weight; CPython makes a new object of a number above 256, which takes longer

_RNG = np.random.default_rng(7)


Draw = Callable[[], tuple[NDArray[Any], int]]


@dataclass(frozen=True)
class Case:
    """Kernel with two classes of inputs, each a vector and a weight.

    All vectors are made in one `buffer` before `run(buffer, weight)` is timed, from the first
    and the difference of a pair. So neither an address nor the cache depends on the class.
    """

    name: str
    draw: tuple[Draw, Draw]
    buffer: NDArray[Any]
    run: Callable[[NDArray[Any], int], object]


def welch(first: F64, second: F64) -> float:
    """Return Welch's t of two samples: positive if the first has the larger mean."""
    error = first.var(ddof=1) / first.size + second.var(ddof=1) / second.size
    difference = first.mean() - second.mean()
    if error == 0:
        return float(np.sign(difference) * np.inf) if difference else 0.0
    return float(difference / np.sqrt(error))


def largest_t(first: F64, second: F64) -> float:
    """Return the t of largest absolute value, without and with cropping."""
    both = np.concatenate([first, second])
    shares = 1 - 0.5 ** (10 * np.arange(1, CROPS + 1) / CROPS)
    found = [welch(first, second)]
    for limit in np.unique(np.quantile(both, shares)):
        a, b = first[first <= limit], second[second <= limit]
        if min(a.size, b.size) >= LEAST:
            found.append(welch(a, b))
    return max(found, key=abs)


def times(case: Case, count: int, rng: np.random.Generator) -> tuple[F64, F64]:
    """Return `count` times in ns, of the two classes in random order."""
    pairs = [tuple(draw() for draw in case.draw) for _ in range(POOL)]
    bits = case.buffer.view(f"u{case.buffer.itemsize}")
    firsts, seconds = (
        np.array([pair[i][0] for pair in pairs], case.buffer.dtype).view(bits.dtype)
        for i in (0, 1)
    )
    differences, scratch = firsts ^ seconds, np.empty_like(bits)
    masks = np.zeros((4, 8), bits.dtype)  # rows of one alignment, none of them the last
    masks[2] = ~masks[2]
    weights = [(0, *(weight for _, weight in pair)) for pair in pairs]
    # an index of 0 in CPython, and a scalar in numpy, would take other branches before the time
    chosen = rng.integers(1, 3, count)
    # index 1 stands for one class in half of the turns, for the other in the rest, so what the
    # index leaves in the caches is the same in both classes
    swapped = np.arange(count) // POOL % 2
    turns = ((firsts, weights), (seconds, [(0, second, first) for _, first, second in weights]))
    taken = np.empty(count)
    gc.collect()
    gc.disable()
    try:
        for i, (which, swap) in enumerate(zip(chosen.tolist(), swapped.tolist(), strict=True)):
            bases, ordered = turns[swap]
            weight = ordered[i % POOL][which]
            np.bitwise_and(differences[i % POOL], masks[which, :1], out=scratch)
            np.bitwise_xor(bases[i % POOL], scratch, out=bits)
            sum(ordered[i % POOL])  # the cache has both objects, or the common 1 were quicker
            start = time.perf_counter_ns()
            case.run(case.buffer, weight)
            taken[i] = time.perf_counter_ns() - start
    finally:
        gc.enable()
    is_first = (chosen == 1) ^ (swapped == 1)
    return taken[is_first], taken[~is_first]


def t_of(case: Case, count: int, seed: int = 1) -> float:
    """Return the t of a case after `count` times."""
    return largest_t(*times(case, count, np.random.default_rng(seed)))


def cases() -> Iterator[Case]:
    """Yield the kernels and the paths of a client that touch secrets.

    In the first case the classes are alike: a large t there is of the machine or of `times`.
    """
    alike, vector = _floats(1.0), np.empty(ELEMENTS)
    encoding = FixedPoint(4.0)
    yield Case(
        "encode, alike", (alike, alike), vector,
        lambda x, weight: encoding.encode(x, Ring(2**32), weight, bytes),
    )  # fmt: skip
    for modulus, ring in ((2**32, "2^32"), (2**48, "2^48"), (10**15 + 37, "prime")):
        yield from encoder(FixedPoint(4.0, rounding="nearest"), modulus, f"{ring}, nearest")
        yield from encoder(FixedPoint(4.0), modulus, f"{ring}, stochastic")
    yield from integers()
    yield from kernels()
    yield from noise()


def encoder(encoding: FixedPoint, modulus: int, name: str) -> Iterator[Case]:
    """Yield weights and elements that took another time when the encoder branched on them."""
    ring = Ring(modulus)

    def run(vector: F64, weight: int) -> object:
        return encoding.encode(vector, ring, weight, bytes)

    for dtype, subnormal in ((np.float64, 1e-310), (np.float32, 1e-40)):
        buffer = np.empty(ELEMENTS, dtype)
        usual, title = _floats(1.0), f"encode, {name}, {buffer.dtype}"
        yield Case(f"{title}: weight 1", (usual, _floats(1.0, weight=OTHER)), buffer, run)
        yield Case(f"{title}: zeros", (_floats(0.0), usual), buffer, run)
        yield Case(f"{title}: subnormal", (_floats(subnormal), usual), buffer, run)
        yield Case(f"{title}: clipped", (_floats(8.0), _floats(1e9)), buffer, run)


def integers() -> Iterator[Case]:
    """Yield the encoding of integers, which is numpy's arithmetic."""
    encoding, ring, buffer = Integers(1000), Ring(2**48), np.empty(ELEMENTS, np.int64)

    def run(vector: NDArray[Any], weight: int) -> object:
        return encoding.encode(vector, ring, weight)

    usual = _words(1001)
    yield Case("Integers: weight 1", (usual, _words(1001, weight=OTHER)), buffer, run)
    yield Case("Integers: zeros", (_words(1), usual), buffer, run)


def kernels() -> Iterator[Case]:
    """Yield zeros against random secrets: keys, coefficients, elements, an exponent."""
    acc, p = np.zeros(ELEMENTS, np.uint64), 2**61 - 1
    keys, key = (_words(1, 2), _words(2**63, 2)), np.empty(2, np.uint64)

    def mask_words(key: NDArray[Any], _: int) -> object:
        return _fast.mask_words(acc, key.tobytes(), b"\0")

    def mask_mod(key: NDArray[Any], _: int) -> object:
        return _fast.mask_mod(acc, key.tobytes(), b"\0", p)

    def portable(key: NDArray[Any], _: int) -> object:
        return reference_masks.mask_words(acc, key.tobytes(), b"\0")

    yield Case("mask_words", keys, key, mask_words)
    yield Case("mask_mod", keys, key, mask_mod)
    yield Case("mask_words, portable", keys, key, portable)

    points = np.arange(1, 41, dtype=np.uint64)
    coefficients = np.empty((20, 10), np.uint64)
    shares = (_words(1, 20, 10), _words(p, 20, 10))
    yield Case(
        "m61_poly_eval", shares, coefficients, lambda c, _: _fast.m61_poly_eval(c, points)
    )
    prime = 2**62 - 57
    yield Case(
        "prime_poly_eval", (_words(1, 20, 10), _words(prime, 20, 10)), coefficients.copy(),
        lambda c, _: _fast.prime_poly_eval(c, points, prime),
    )  # fmt: skip
    weights, values = points.reshape(1, -1), np.empty((40, 100), np.uint64)
    yield Case(
        "prime_matmul", (_words(1, 40, 100), _words(prime, 40, 100)), values,
        lambda v, _: _fast.prime_matmul(weights, v, prime),
    )  # fmt: skip
    elements = (_words(1), _words(p))
    yield Case("m61_mul", elements, acc.copy(), lambda a, _: _fast.m61_mul(a, a))
    yield Case("pack_bits", elements, acc.copy(), lambda a, _: _fast.pack_bits(a, 48))

    modulus = np.full(16, 2**64 - 1, np.uint64)
    base = np.tile(np.arange(1, 17, dtype=np.uint64), (8, 1))
    out, exponent = np.empty_like(base), np.empty(4, np.uint64)

    def power(exponent: NDArray[Any], _: int) -> object:
        return _fast.modular_power(base, exponent, out, modulus, modulus, modulus[:0])

    yield Case("modular_power", (_words(1, 4), _words(2**63, 4)), exponent, power)

    point = np.full((1, 32), 7, np.uint8)
    result, scalar = np.empty_like(point), np.empty(4, np.uint64)

    def x25519(scalar: NDArray[Any], _: int) -> object:
        return _fast.x25519(scalar.view(np.uint8).reshape(1, 32), point, result)

    yield Case("x25519", (_words(1, 4), _words(2**63, 4)), scalar, x25519)

    # of a client with 60 neighbours
    sealing, n = (_words(1, 60, 4), _words(2**63, 60, 4)), 60
    aads, texts, boxes = (np.full((n, size), 7, np.uint8) for size in (64, 80, 96))

    def seal_and_open(keys: NDArray[Any], _: int) -> object:
        given = keys.view(np.uint8), bytes(12), aads
        _fast.gcm_seal(*given, texts, boxes)
        return _fast.gcm_open(*given, boxes, texts)

    yield Case("gcm_seal, gcm_open", sealing, np.empty((n, 4), np.uint64), seal_and_open)


def noise() -> Iterator[Case]:
    """Yield the kernels of bounded vectors and of noise."""
    out, signs = np.empty(ELEMENTS), np.arange(ELEMENTS // 64, dtype=np.uint64)
    for dtype, subnormal in ((np.float64, 1e-310), (np.float32, 1e-40)):
        buffer = np.empty(ELEMENTS, dtype)
        for name, scale in (("zeros", 0.0), ("subnormal", subnormal), ("large", 1e30)):
            classes = (_floats(scale), _floats(1.0))
            title = f"widen, {buffer.dtype}: {name}"
            yield Case(title, classes, buffer, lambda x, _: _fast.widen(x, out))
    for name, scale in (("zeros", 0.0), ("small", 2.0**-290)):
        classes = (_floats(scale), _floats(1.0))
        yield Case(f"rotate: {name}", classes, out, lambda x, _: _fast.rotate(x, signs, False))

    law, samples = Share(19_661).law, np.empty(ELEMENTS // 4, np.int64)
    assert law.k == 64

    def proposals() -> tuple[NDArray[Any], int]:
        words = _RNG.integers(0, 2**64, (samples.size, 4), dtype=np.uint64)
        words[:, 2] |= np.uint64(2**63)  # z is 32 or more, so no proposal is -0
        words[:, 3] = 0
        return words.ravel(), 1

    # which proposals are accepted is public: all of both classes are
    classes, words = (_words(1), proposals), np.empty(ELEMENTS, np.uint64)
    assert all(
        _fast.gaussian_shares(draw()[0], samples, *law) == (256, 1024) for draw in classes
    )
    yield Case(
        "gaussian_shares", classes, words, lambda w, _: _fast.gaussian_shares(w, samples, *law)
    )


def controls() -> Iterator[Case]:
    """Yield cases whose time depends on the input, which the test must find."""
    buffer = np.empty(ELEMENTS, np.uint64)
    first, branch = "control: first non-zero word", "control: a branch on the weight"
    yield Case(first, (_words(1), _words(2)), buffer, lambda words, _: any(words.tolist()))
    yield Case(
        branch,
        (_words(9), _words(9, weight=2)),
        buffer,
        lambda words, weight: words if weight == 1 else words * np.uint64(weight),
    )


def _floats(scale: float, weight: int = 1) -> Draw:
    return lambda: (_RNG.uniform(-1, 1, ELEMENTS) * scale, weight)


def _words(most: int, *shape: int, weight: int = 1) -> Draw:
    return lambda: (_RNG.integers(0, most, shape or ELEMENTS, dtype=np.uint64), weight)
