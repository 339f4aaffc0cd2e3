"""Noise of one-shot sums: equal at all holders, repeated by retries, secret, and of full σ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from independent_oneshot_params import Parameters
from oneshot_parties import Parties, parties, rejects
from secagg import FixedPoint, Integers, ParameterError
from secagg._fast import reference
from secagg.encoding import Ring
from secagg.oneshot import Noise, OneShotResult, result
from secagg.oneshot.noise import adder
from secagg.server.result import decode_sum

CLIENTS = range(1, 6)


def derived(made: Parties, clients: Sequence[int], index: int, batch: int = 0) -> np.ndarray:
    """Return the noise on one mask sum by the independent parties, from the clients' seeds."""
    p = Parameters.decode(made.params.to_bytes())
    holder = next(j for j, held in p.held.items() if index in held)
    place = p.held[holder].index(index)
    kept = {u: made.helpers[holder - 1]._checked[u] for u in sorted(clients)}
    D = p.list_digest(batch, {u: row[:32] for u, row in kept.items()})
    seeds = [row[32 + 16 * place : 48 + 16 * place] for row in kept.values()]
    return np.array(p.noises(index, seeds, D))


def opened(made: Parties, clients: Sequence[int] = CLIENTS) -> OneShotResult:
    accumulator = made.accumulator(clients)
    assert not made.check(accumulator)
    return made.open(accumulator)


@pytest.mark.parametrize(
    "changes",
    [
        {"helpers": 3, "threshold": 2, "max_weight": 5},
        {"helpers": 3, "threshold": 1, "modulus": (1 << 61) - 1},
        {"helpers": 4, "threshold": 3, "modulus_bits": 20, "security": "semi-honest"},
        {"noise": Noise(500), "max_weight": 1, "length": 200},  # without the sign, beyond R
    ],
    ids=str,
)
def test_sum_is_the_exact_one_and_the_noise_of_every_seed(changes: dict[str, object]) -> None:
    with parties(**{"noise": Noise(95.5)} | changes) as made:  # type: ignore[arg-type]
        found = opened(made)
        noise = sum(derived(made, CLIENTS, i) for i in range(1, made.params.seeds + 1))
        exact = np.array(made.expected(CLIENTS))
        length = made.params.length
        assert (found.sum == found.integers).all()
        assert (found.integers == exact - noise[:length]).all()  # type: ignore[index]
        assert (found.integers != exact).any()
        assert length < 200 or (found.integers < 0).any()
        if made.params.max_weight is not None:
            weights = sum(made.weights[u] or 0 for u in CLIENTS)
            assert found.weight == weights - noise[length]  # type: ignore[index]


def test_check30_attack_noise_averaged_over_retries_or_holders() -> None:
    """All that a lying aggregator gets has the noise of a single answer."""
    with parties(3, 2, noise=Noise(40), length=50) as made:
        accumulator = made.accumulator(CLIENTS)
        request, answers = made.answers(accumulator)
        assert [h.open(request) for h in made.helpers] == answers
        made.restart()
        made.check(accumulator)
        assert [h.open(request) for h in made.helpers] == answers
        first = accumulator.result(answers)
        for pair in ([0, 1], [1, 2], [0, 2]):
            some = accumulator.result(answers[j] for j in pair)
            assert (some.integers == first.integers).all()
            assert not some.outvoted


@pytest.mark.parametrize(("helpers", "threshold"), [(3, 2), (3, 3)])
def test_check30_attack_all_but_one_noise_subtracted(helpers: int, threshold: int) -> None:
    """An aggregator with t − 1 helpers subtracts all noise but that of one seed: full σ²."""
    with parties(helpers, threshold, noise=Noise(64), length=1000) as made:
        found = opened(made)
        known = {i for j in range(1, threshold) for i in made.params.held_by(j)}
        assert len(known) == made.params.seeds - 1
        left = found.integers + sum(derived_all(made, i) for i in known)  # type: ignore[operator]
        error = left - np.array(made.expected(CLIENTS))
        assert abs(deviate(error, 64**2)) < 6


def test_check30_one_clients_seed_changes_all_noise() -> None:
    """The list and all seeds but one client's give nothing of the noise away."""
    with parties(noise=Noise(2**20), length=60, encoding=Integers(1)) as made:
        found = opened(made).integers - np.array(made.expected(CLIENTS))
        left = -(found + derived_all(made, 2))  # helper 1 has no seed of index 1
        assert (derived_all(made, 1) == left).all()
        kept = made.helpers[1]._checked
        for u in CLIENTS:
            right = kept[u]
            kept[u] = right[:32] + bytes(16)
            assert np.abs(derived_all(made, 1) - left).max() > 2**18
            kept[u] = right


@examples(30)
@given(
    sigma=st.integers(1, 1 << 48),
    modulus=st.sampled_from([1 << 32, 1 << 20, 1 << 64, 1 << 40, (1 << 61) - 1, 1000]),
    size=st.integers(1, 70),
)
def test_noise_is_added_modulo_r(sigma: int, modulus: int, size: int) -> None:
    noise, ring, key = Noise(Fraction(sigma, 256)), Ring(modulus), b"k" * 16
    wide = np.zeros(size, np.uint64)
    adder(noise, Ring(1 << 64), key, wide.size)(wide)
    values = ring.zeros(size)
    values[:] = 5
    adder(noise, ring, key, values.size)(values)
    ring.reduce(values)
    exact = wide.view(np.int64).tolist()
    assert values.tolist() == [(5 + y) % modulus for y in exact]


def test_long_noise_is_one_stream() -> None:
    """Blocks of the stream end within samples."""
    long, short = np.zeros(9000, np.uint64), np.zeros(3000, np.uint64)
    for values in (long, short):
        adder(Noise(3), Ring(1 << 64), b"k" * 16, values.size)(values)
    words = np.frombuffer(reference.keystream(b"k" * 16, 1 << 19), "<u8").astype(np.uint64)
    out = np.empty(9000, np.int64)
    drawn, _ = reference.discrete_gaussian(words, out, 3 * 256)
    assert 3000 < drawn < 9000
    assert (long.view(np.int64)[:drawn] == out[:drawn]).all()
    assert (long[:3000] == short).all()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Fraction(1, 3), Fraction(86, 256)),
        (3.3, Fraction(845, 256)),
        (np.float32(2.5), Fraction(5, 2)),
        (np.int64(7), Fraction(7)),
        (2**40, Fraction(2**40)),
    ],
)
def test_sigma_is_rounded_up(given: object, kept: Fraction) -> None:
    noise = Noise(given)  # type: ignore[arg-type]
    assert noise.sigma == kept
    assert isinstance(noise.sigma, Fraction)
    assert noise == Noise(kept)
    assert hash(noise) == hash(Noise(kept))


@pytest.mark.parametrize(
    "sigma", [0, -1, 2**40 + 1, math.nan, math.inf, True, "1", None, 1j, Fraction(-1, 2)]
)
def test_sigma_out_of_range_raises(sigma: object) -> None:
    with pytest.raises(ParameterError):
        Noise(sigma)  # type: ignore[arg-type]


@given(sigma=st.integers(1, 1 << 48), summands=st.integers(1, 256))
def test_check14_bound_is_the_least_of_ten_deviations(sigma: int, summands: int) -> None:
    noise = Noise(Fraction(sigma, 256))
    bound = noise.bound(summands)
    assert bound**2 >= 100 * summands * noise.sigma**2 > (bound - 1) ** 2


@pytest.fixture(scope="module")
def three() -> Iterator[Parties]:
    with parties(3, 2) as made:
        yield made


def test_check14_headroom_counts_the_noise(three: Parties) -> None:
    """10 clients of elements up to 100; noise of 3 seeds up to ⌈10 · 8 · √3⌉ = 139."""
    noise = Noise(8)
    assert three.make_params(noise=noise, modulus=1001 + 2 * 139).noise_bound == 139
    with pytest.raises(ParameterError):
        three.make_params(noise=noise, modulus=1000 + 2 * 139)
    signed = FixedPoint(100.0, 0)
    three.make_params(noise=noise, encoding=signed, modulus=2001 + 2 * 139)
    with pytest.raises(ParameterError):
        three.make_params(noise=noise, encoding=signed, modulus=2000 + 2 * 139)
    with pytest.raises(ParameterError):
        three.make_params(noise=Noise(2**40), modulus_bits=32)
    assert three.make_params(noise=Noise(2**40)).ring.bits == 46
    assert three.params.noise_bound == 0
    with pytest.raises(ParameterError):
        three.make_params(noise=8)


@pytest.mark.parametrize("encoding", [Integers(100), FixedPoint(100.0, 0)])
def test_check42_sum_beyond_the_noise_is_rejected(three: Parties, encoding: object) -> None:
    params = three.make_params(encoding=encoding, noise=Noise(8), max_weight=2)
    most = 3 * 2 * 100 + params.noise_bound
    least = -params.noise_bound if isinstance(encoding, Integers) else -most

    def decoded(element: int, weight: int) -> OneShotResult:
        total = params.ring.zeros(5)
        total[:] = [element % (1 << 32)] * 4 + [weight % (1 << 32)]
        return result.decode(total, (1, 2, 3), (), params)

    for element in (most, least, 0):
        assert decoded(element, 1).integers.tolist() == [element] * 4
        assert decoded(element, 1).sum.tolist() == [element] * 4
    for element in (most + 1, least - 1, 1 << 31):
        rejects("sum", lambda e=element: decoded(e, 1))  # type: ignore[misc]
    for weight in (6 + params.noise_bound, -params.noise_bound, -1):
        assert decoded(0, weight).weight == weight
    for weight in (7 + params.noise_bound, -1 - params.noise_bound):
        rejects("weight", lambda w=weight: decoded(0, w))  # type: ignore[misc]
    with pytest.raises(ParameterError):
        decoded(0, -1).mean  # noqa: B018
    exact = three.make_params(encoding=encoding, max_weight=2)
    rejects("weight", lambda: decode_sum(exact.ring.zeros(5) - 1, (1, 2, 3), (), exact))


def derived_all(made: Parties, index: int) -> np.ndarray:
    return derived(made, CLIENTS, index)[: made.params.length]


def deviate(error: np.ndarray, variance: float) -> float:
    """Return how many standard deviations the mean square of Gaussian errors is off."""
    return float((np.mean(error**2) / variance - 1) / math.sqrt(2 / error.size))
