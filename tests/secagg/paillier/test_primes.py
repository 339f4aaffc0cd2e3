from __future__ import annotations

import os
from collections.abc import Callable

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg.encoding import Entropy
from secagg.errors import ParameterError
from secagg.paillier import primes
from secagg.paillier.primes import (
    StructuredPrime,
    random_prime,
    random_safe_prime,
    recover,
    uniform_below,
)
from secagg.testing import InsecureReplayedEntropy

SIZES = (64, 129, 512)
Maker = Callable[[int, Entropy], StructuredPrime]
MAKERS = (random_prime, random_safe_prime)
SAFE_LATER = (random_prime, pytest.param(random_safe_prime, marks=pytest.mark.large))


def factors_of(n: int) -> set[int]:
    """Return the prime factors below 2^16 of n, and what is left if it is not 1."""
    found = set()
    for q in range(2, 1 << 16):
        while n % q == 0:
            found.add(q)
            n //= q
    return found | ({n} if n > 1 else set())


@pytest.mark.parametrize(
    ("bits", "make"),
    [
        *((bits, random_prime) for bits in SIZES),
        (64, random_safe_prime),
        *(pytest.param(b, random_safe_prime, marks=pytest.mark.large) for b in SIZES[1:]),
    ],
)
def test_check37_prime_follows_from_its_factors(make: Maker, bits: int) -> None:
    for seed in range(2):
        prime = make(bits, InsecureReplayedEntropy(seed))
        assert prime.p >> (bits - 2) == 3  # so that the product has exactly twice the bits
        assert prime.p == 2 * prime.r * prime.p_prime + 1
        assert recover(prime.p) == prime
        assert gmpy2.is_prime(prime.p, 64)
        assert gmpy2.is_prime(prime.p_prime, 64)
        assert prime.r % 2 == 1
        assert prime.r < 1 << 16
        assert make is random_prime or prime.r == 1
        assert prime.p % 4 == 3


@pytest.mark.parametrize("make", SAFE_LATER)
@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_windows_at_the_ends_of_the_range_give_the_right_size(make: Maker, byte: bytes) -> None:
    later = InsecureReplayedEntropy(0)
    drawn: list[int] = []

    def entropy(size: int) -> bytes:
        drawn.append(size)
        return byte * size if len(drawn) == 1 else later(size)

    assert make(128, entropy).p >> 126 == 3
    assert len(drawn) >= 2


def test_prime_from_the_smallest_r_is_within_the_range() -> None:
    """With these seeds one just below would be found if the smallest r were rounded down."""
    for seed in (251, 259, 267):
        random = InsecureReplayedEntropy(seed)

        def entropy(size: int, random: InsecureReplayedEntropy = random) -> bytes:
            # two draws for p', and an order of the candidates for p that is ascending
            return random(size) if len(random.drawn) < 2 else bytes(size)

        assert random_prime(64, entropy).p >> 62 == 3


@pytest.mark.parametrize("make", SAFE_LATER)
def test_generator_has_full_order_and_is_the_smallest(make: Maker) -> None:
    for seed in range(2):
        prime = make(128, InsecureReplayedEntropy(seed))
        orders = [(prime.p - 1) // f for f in factors_of(prime.p - 1)]

        def generates(g: int, p: int = prime.p, orders: list[int] = orders) -> bool:
            return all(pow(g, e, p) != 1 for e in orders)

        assert generates(prime.generator)
        assert not any(generates(g) for g in range(2, prime.generator))


def test_element_of_small_order_is_no_generator() -> None:
    """2 has order 2 r here, which only the factor p' reveals."""
    prime = StructuredPrime(635, 111427)
    assert pow(2, 2 * 635, prime.p) == 1
    assert prime.generator == 6


@pytest.mark.parametrize("make", SAFE_LATER)
def test_prime_depends_on_entropy_only(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same entropy gives the same prime, and no other source is used."""

    def fails(*_: object) -> bytes:
        raise AssertionError("another source of randomness was used")

    for module, name in (
        (os, "urandom"),
        (os, "getrandom"),
        (np.random, "default_rng"),
        (gmpy2, "random_state"),
    ):
        monkeypatch.setattr(module, name, fails)
    first, second, third = (InsecureReplayedEntropy(seed) for seed in (1, 1, 2))
    assert make(128, first) == make(128, second)
    assert first.drawn == second.drawn
    assert make(128, third) != make(128, InsecureReplayedEntropy(1))


def test_larger_smooth_part_is_recovered_too() -> None:
    p_prime = random_prime(128, InsecureReplayedEntropy(0)).p
    r = next(
        r for i in range(1, 1 << 16, 2) if gmpy2.is_prime(2 * (r := 3**30 * i) * p_prime + 1)
    )
    assert recover(2 * r * p_prime + 1) == StructuredPrime(r, p_prime)


def made(p_prime: int, *, prime: bool, first: int = 1) -> int:
    """Return the least r = first, first + 2 … that makes 2 r p' + 1 prime, or composite."""
    return next(
        r for r in range(first, 1 << 20, 2) if gmpy2.is_prime(2 * r * p_prime + 1, 30) == prime
    )


def test_primes_of_another_kind_have_no_structure_to_recover() -> None:
    p_prime, other = (random_prime(128, InsecureReplayedEntropy(i)).p_prime for i in (0, 1))
    smooth, foreign = 2 * 3 * 5 * 7 * 11 + 1, int(gmpy2.next_prime(3 << 510))
    for p in (
        2 * made(p_prime * other, prime=True) * p_prime * other + 1,
        2 * made(p_prime, prime=True, first=2) * p_prime + 1,
        2 * made(p_prime, prime=False) * p_prime + 1,
        *(smooth, foreign, 0, 1, 2, 3, 13, -5),
    ):
        assert recover(p) is None


def test_prime_of_wrong_parts_raises() -> None:
    prime = random_prime(128, InsecureReplayedEntropy(0))
    rough = 65537
    while not gmpy2.is_prime(rough) or not gmpy2.is_prime(2 * rough * prime.p_prime + 1):
        rough += 2
    for r, p_prime in (
        (made(prime.p_prime, prime=False), prime.p_prime),
        (made(prime.p_prime, prime=True, first=2), prime.p_prime),
        *((r, prime.p_prime) for r in (-3, rough, 0, -1)),
        (prime.r, prime.p_prime * 3),
        (1, 11),
    ):
        with pytest.raises(ParameterError) as caught:
            StructuredPrime(r, p_prime)
        assert str(prime.p_prime) not in str(caught.value)


@pytest.mark.parametrize("make", MAKERS)
def test_size_out_of_range_is_rejected(make: Maker) -> None:
    for bits in (63, 16385, True, "512", 128.0):
        with pytest.raises(ParameterError):
            make(bits)
    assert make(np.int64(128)).p.bit_length() == 128


def test_neither_a_prime_nor_its_factors_are_in_the_repr() -> None:
    prime = random_prime(128, InsecureReplayedEntropy(0))
    for secret in (prime.p, prime.p_prime, prime.r):
        assert str(secret) not in repr(prime)
        assert hex(secret)[2:] not in repr(prime)


@given(
    st.integers(min_value=1 << 20, max_value=1 << 200),
    st.sampled_from([2, 4, 4 * 1000003]),
    st.integers(min_value=0, max_value=400),
)
def test_sieve_leaves_numbers_without_small_factors(start: int, step: int, count: int) -> None:
    window = range(start | 1, (start | 1) + step * count, step)
    small = [q for q in range(3, 1000) if all(q % f for f in range(2, q))]
    expected = [all(n % q for q in small) for n in window]
    assert primes._sieve(window, 1000).tolist() == expected


@pytest.mark.parametrize(
    ("bound", "draws", "number"),
    [
        (200, [255, 200, 7], 7),
        (200, [199], 199),
        (5, [0b11111101, 0b11110110, 0b00001100], 4),  # of three bits of each byte
    ],
)
def test_draw_beyond_the_bound_is_repeated(bound: int, draws: list[int], number: int) -> None:
    left = list(draws)
    assert uniform_below(bound, lambda size: left.pop(0).to_bytes(size, "little")) == number
    assert left == []
