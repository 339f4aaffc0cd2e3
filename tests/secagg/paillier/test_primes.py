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
def test_prime_follows_from_its_factors(make: Maker, bits: int) -> None:
    for seed in range(3):
        prime = make(bits, InsecureReplayedEntropy(seed))
        assert prime.p == 2 * prime.r * prime.p_prime + 1
        assert gmpy2.is_prime(prime.p, 64)
        assert gmpy2.is_prime(prime.p_prime, 64)
        assert prime.r % 2 == 1
        assert prime.r < 1 << 16
        assert make is random_prime or prime.r == 1
        assert prime.p % 4 == 3


@pytest.mark.large
def test_check37_primes_of_equal_size_make_twice_the_bits() -> None:
    """Primes have equal size and the product exactly twice that."""
    for make in MAKERS:
        for bits in SIZES:
            made = [make(bits, InsecureReplayedEntropy((bits, i))).p for i in range(3)]
            assert all(p >> (bits - 2) == 3 for p in made)
            assert len(set(made)) == len(made)
            for p in made:
                for q in made:
                    assert (p * q).bit_length() == 2 * bits
                    if p != q:  # Paillier 1999: n is a unit modulo φ(n)
                        assert gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1


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
    for seed in range(4):
        prime = make(128, InsecureReplayedEntropy(seed))
        orders = [(prime.p - 1) // f for f in factors_of(prime.p - 1)]

        def generates(g: int, p: int = prime.p, orders: list[int] = orders) -> bool:
            return all(pow(g, e, p) != 1 for e in orders)

        assert generates(prime.generator)
        assert not any(generates(g) for g in range(2, prime.generator))


@pytest.mark.large
def test_generator_of_a_small_group_reaches_all_elements() -> None:
    r = next(r for r in range(3, 1 << 10, 6) if gmpy2.is_prime(2 * r * 65539 + 1))
    prime = StructuredPrime(r, 65539)
    reached, x = set(), 1
    for _ in range(prime.p - 1):
        x = x * prime.generator % prime.p
        reached.add(x)
    assert len(reached) == prime.p - 1


def test_element_of_small_order_is_no_generator() -> None:
    """2 has order 2 r here, which only the factor p' reveals."""
    prime = StructuredPrime(635, 111427)
    assert pow(2, 2 * 635, prime.p) == 1
    assert prime.generator == 6


@pytest.mark.parametrize("make", SAFE_LATER)
def test_prime_depends_on_the_given_entropy_only(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert make(192, first) == make(192, second)
    assert first.drawn == second.drawn
    assert make(192, third) != make(192, InsecureReplayedEntropy(1))


@pytest.mark.parametrize("make", SAFE_LATER)
def test_structure_of_a_made_prime_is_recovered(make: Maker) -> None:
    for bits in SIZES:
        prime = make(bits, InsecureReplayedEntropy(bits))
        assert recover(prime.p) == prime


def test_larger_smooth_part_is_recovered_too() -> None:
    p_prime = random_prime(128, InsecureReplayedEntropy(0)).p
    r = next(
        r for i in range(1, 1 << 16, 2) if gmpy2.is_prime(2 * (r := 3**30 * i) * p_prime + 1)
    )
    assert recover(2 * r * p_prime + 1) == StructuredPrime(r, p_prime)


def test_primes_of_another_kind_have_no_structure_to_recover() -> None:
    p_prime = random_prime(128, InsecureReplayedEntropy(0)).p_prime
    other = random_prime(128, InsecureReplayedEntropy(1)).p_prime
    two_large = next(
        p for r in range(1, 1 << 16, 2) if gmpy2.is_prime(p := 2 * r * p_prime * other + 1, 30)
    )
    one_mod_four = next(
        p for r in range(2, 1 << 16, 2) if gmpy2.is_prime(p := 2 * r * p_prime + 1, 30)
    )
    composite = next(
        p for r in range(1, 1 << 16, 2) if not gmpy2.is_prime(p := 2 * r * p_prime + 1, 30)
    )
    smooth = 2 * 3 * 5 * 7 * 11 + 1
    assert gmpy2.is_prime(smooth)
    foreign = int(gmpy2.next_prime(3 << 510))
    for p in (two_large, one_mod_four, composite, smooth, foreign, 0, 1, 2, 3, 5, 13, -1, -5):
        assert recover(p) is None


def test_prime_of_wrong_parts_raises() -> None:
    prime = random_prime(128, InsecureReplayedEntropy(0))
    wrong_r = next(
        r for r in range(1, 1 << 16, 2) if not gmpy2.is_prime(2 * r * prime.p_prime + 1, 30)
    )
    even_r = next(
        r for r in range(2, 1 << 16, 2) if gmpy2.is_prime(2 * r * prime.p_prime + 1, 30)
    )
    rough_r = next(
        r
        for f in range(65537, 1 << 20)
        if gmpy2.is_prime(f) and gmpy2.is_prime(2 * (r := f) * prime.p_prime + 1, 30)
    )
    composite = prime.p_prime * 3
    for r, p_prime in (
        (wrong_r, prime.p_prime),
        (even_r, prime.p_prime),
        (-3, prime.p_prime),
        (rough_r, prime.p_prime),
        (0, prime.p_prime),
        (-1, prime.p_prime),
        (prime.r, composite),
        (1, 11),
    ):
        with pytest.raises(ParameterError) as caught:
            StructuredPrime(r, p_prime)
        assert str(prime.p_prime) not in str(caught.value)


@pytest.mark.parametrize("make", MAKERS)
def test_size_out_of_range_is_rejected(make: Maker) -> None:
    for bits in (63, 16385, -1, 0, True, "512", 128.0):
        with pytest.raises(ParameterError, match="bits"):
            make(bits)
    assert make(np.int64(128)).p.bit_length() == 128


def test_neither_a_prime_nor_its_factors_are_in_the_repr() -> None:
    prime = random_prime(128, InsecureReplayedEntropy(0))
    for secret in (prime.p, prime.p_prime, prime.r):
        assert str(secret) not in repr(prime)
        assert hex(secret)[2:] not in repr(prime)
    assert repr(prime) == "StructuredPrime(<128 bits>)"


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
def test_draw_beyond_the_bound_is_repeated_not_folded(
    bound: int, draws: list[int], number: int
) -> None:
    left = list(draws)
    assert uniform_below(bound, lambda size: left.pop(0).to_bytes(size, "little")) == number
    assert left == []
