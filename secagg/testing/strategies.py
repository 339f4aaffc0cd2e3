"""Hypothesis strategies for valid parameters, inputs, dropouts and faults.

Rounds are small, so that thousands run in seconds. Everything else varies: the kind of modulus,
weights or none, the encoding, complete and other graphs, and ids up to 2^64 − 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st

from secagg.encoding import Encoding, FixedPoint, Integers, Vector
from secagg.protocol import RoundParams
from secagg.protocol.suites import NAMES
from secagg.simulate import DROPOUT_PHASES
from secagg.testing.network import FAULTS, Schedule
from secagg.testing.rounds import Round, toy_policy

_ONE_ID = st.integers(0, 40) | st.integers(0, (1 << 64) - 1)
_DRAWN = 4  # largest number of different elements, and of weights, in a round
_PRIMES = (257, 65_537, 2_147_483_647, (1 << 61) - 1, 4_611_686_018_427_387_847)


@st.composite
def params(draw: st.DrawFn) -> RoundParams:
    """Draw any valid RoundParams for 2 to 12 clients and up to 9 elements.

    Fixed-point encodings round to nearest, so that a test can predict the sum. No round has
    `count_clipped`.
    """
    n = draw(st.integers(2, 6) | st.integers(2, 12))
    neighbours = draw(st.none() | st.sampled_from([*range(2, n, 2)] or [None]))
    # a lying server would draw the graph, so an active round has none
    active = neighbours is None and draw(st.booleans())
    least = 2 if neighbours else 2 * n // 3 + 1 if active else n // 2 + 1
    bits = draw(st.integers(n.bit_length(), 64) | st.none())
    modulus = None
    if bits is None:
        modulus = draw(st.sampled_from(_PRIMES) | st.integers(n + 1, 1 << 62))
    ring = (1 << bits) if bits is not None else modulus
    # the largest product of weight and element, for each of n clients
    room = min((ring or 0) - 1, (1 << 63) - 1) // n
    max_weight = draw(st.none() | st.integers(1, min(room, 1 << 53)))
    room //= max_weight or 1
    signed = room >= 2 and draw(st.booleans())
    encodings: st.SearchStrategy[Encoding] = (
        _fixed_points(room // 2) if signed else st.integers(1, min(room, 1 << 62)).map(Integers)
    )
    return RoundParams(
        n_clients=n,
        # the least is drawn often: with the most, a single dropout ends the round
        threshold=draw(st.just(least) | st.integers(least, neighbours or n)),
        length=draw(st.integers(1, 9)),
        encoding=draw(encodings),
        modulus_bits=bits,
        modulus=modulus,
        neighbours=neighbours,
        max_weight=max_weight,
        session=draw(st.binary(min_size=int(active), max_size=64)),
        security="active" if active else "semi-honest",
        suite=draw(st.sampled_from(NAMES[::-1])),  # shrinks to the simpler one
        allow_two_clients=n == 2,
    )


@st.composite
def _fixed_points(draw: st.DrawFn, largest: int) -> FixedPoint:
    """Draw a FixedPoint with any clip and encoded elements of at most `largest`."""
    units = float(draw(st.integers(1, min(largest, 1 << 61))))
    if int(units) > largest:  # rounded up on its way to a float
        units = math.nextafter(units, 0.0)
    # one step at least, and no PrecisionWarning: of few steps the clip is 1 or more
    part = draw(st.sampled_from([1.0, 0.7] if units > 1 else [1.0]))
    most = 52 if part * units >= 100 else int(math.log2(part * units))
    fractional_bits = draw(st.integers(0, most))
    return FixedPoint(
        part * units / 2.0**fractional_bits,
        fractional_bits,
        rounding="nearest",
        beyond_clip=draw(st.sampled_from(["clip", "refuse"])),
    )


def vectors(params: RoundParams) -> st.SearchStrategy[Vector]:
    """Draw a client's vector, shape (d,), in a dtype that the encoding accepts."""
    element, dtypes = _elements(params)
    d = params.length
    rows: st.SearchStrategy[list[int | float]] = st.lists(element, min_size=d, max_size=d)
    return st.tuples(rows, st.sampled_from(dtypes)).map(lambda drawn: np.array(*drawn))


def _elements(
    params: RoundParams,
) -> tuple[st.SearchStrategy[int] | st.SearchStrategy[float], list[type[np.generic]]]:
    """Return a strategy for an element of a vector, and the dtypes that a vector may have."""
    encoding = params.encoding
    if not isinstance(encoding, FixedPoint):
        top = encoding.max_encoded
        return st.integers(0, top) | st.sampled_from([0, 1, top]), [np.int64, np.uint64]
    clip, half = encoding.clip, 0.5 / encoding.scale
    ties = [max(-clip, min(clip, odd * half)) for odd in range(-9, 10)]
    number = st.floats(-clip, clip) | st.sampled_from([0.0, -0.0, clip, -clip, *ties])
    if encoding.beyond_clip == "refuse":
        return number, [np.float64]
    # a float32 rounds some numbers to others, which are just as good
    beyond = number | st.floats(-2 * clip, 2 * clip) | st.floats(-1e30, 1e30)
    return beyond, [np.float64, np.float32]


def weights(params: RoundParams) -> st.SearchStrategy[int]:
    """Draw a client's weight, 0 to ``params.max_weight``."""
    top = params.max_weight or 0
    return st.sampled_from([0, 1, top]) | st.integers(0, top)


def client_ids(count: int) -> st.SearchStrategy[list[int]]:
    """Draw a list of `count` different ids from 0 to 2^64 − 1, in any order."""
    return st.lists(_ONE_ID, min_size=count, max_size=count, unique=True)


def dropouts(ids: Sequence[int], at_most: int) -> st.SearchStrategy[dict[int, str]]:
    """Draw up to `at_most` clients of `ids` that drop out, each before a phase's message."""
    # Hypothesis shrinks to the first item: a dropout late in the round
    phases = st.sampled_from(DROPOUT_PHASES[::-1])
    return st.dictionaries(st.sampled_from(ids), phases, max_size=at_most)


@st.composite
def rounds(draw: st.DrawFn) -> Round:
    """Draw a round: parameters, vectors, weights, dropouts and seed."""
    agreed = draw(params())
    n = agreed.n_clients
    enough = st.integers(min(n, agreed.min_survivors), n)
    count = draw(st.just(n) | enough | st.integers(2, n))
    ids = draw(st.just([*range(count)]) | client_ids(count))
    spare = max(0, count - agreed.min_survivors)
    leaving = draw(dropouts(ids, spare) | dropouts(ids, count))
    seed = draw(st.integers(0, (1 << 32) - 1))
    vectors, weights = inputs(draw, agreed, ids)
    return Round(
        params=agreed,
        vectors=vectors,
        weights=weights,
        dropouts=leaving,
        policy=toy_policy(agreed),
        seed=seed,
    )


@st.composite
def twin_rounds(draw: st.DrawFn) -> tuple[Round, Round]:
    """Draw two rounds that differ only in their vectors and weights."""
    first = draw(rounds())
    vectors, weights = inputs(draw, first.params, first.vectors)
    return first, dataclasses.replace(first, vectors=vectors, weights=weights)


def schedules() -> st.SearchStrategy[Schedule]:
    """Draw the faults of a network: none, or up to 12 of the first 401 packets."""
    number = st.integers(0, 40) | st.integers(0, 400)
    faults = st.dictionaries(number, st.sampled_from([*FAULTS]), max_size=12)
    return faults.map(lambda drawn: Schedule(dict(sorted(drawn.items()))))


def inputs(
    draw: st.DrawFn, params: RoundParams, ids: Iterable[int]
) -> tuple[dict[int, Vector], dict[int, int] | None]:
    """Draw vectors and weights of clients; without a `max_weight` the weights are None.

    The clients share a few elements and weights. A number for each client has the digits that
    choose among them. Hypothesis thus shrinks few choices, instead of a choice for each
    element.
    """
    strategy, dtypes = _elements(params)
    elements = draw(st.lists(strategy, min_size=1, max_size=_DRAWN))
    heaviness = draw(st.lists(weights(params), min_size=1, max_size=_DRAWN))
    vectors: dict[int, Vector] = {}
    of_client: dict[int, int] = {}
    for u in ids:
        number = draw(st.integers(0, _DRAWN ** (params.length + 2) - 1))
        digits = [number // _DRAWN**i % _DRAWN for i in range(params.length + 2)]
        row = [elements[digit % len(elements)] for digit in digits[2:]]
        vectors[u] = np.array(row, dtypes[digits[0] % len(dtypes)])
        of_client[u] = heaviness[digits[1] % len(heaviness)]
    return vectors, None if params.max_weight is None else of_client
