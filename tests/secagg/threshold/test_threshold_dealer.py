"""The dealer's keys and shares for threshold decryption, and those it rejects."""

from __future__ import annotations

import copy
import inspect
import math
import os
from collections.abc import Sequence
from dataclasses import replace

import gmpy2
import pytest

from harness import ReplayedEntropy
from paillier_keys import Stream
from secagg import ParameterError
from secagg.paillier.primes import StructuredPrime, random_prime
from secagg.threshold import KeyShare, deal, deal_insecure
from secagg.threshold.combination import lagrange_at_zero
from secagg.threshold.dealing import _share
from threshold_keys import GROUPS, SAFE, dealing

KEY, SHARES = dealing(5, 3)
PUBLIC = KEY.public_key
N = int(PUBLIC.n)


@pytest.mark.parametrize(("trustees", "threshold"), GROUPS)
def test_dealer_shares_the_secret_of_the_paper(trustees: int, threshold: int) -> None:
    key, shares = dealing(trustees, threshold)
    p, q = SAFE[:2]
    m = (p // 2) * (q // 2)
    assert key.public_key.n == p * q
    assert (key.trustees, key.threshold) == (trustees, threshold)
    assert [share.index for share in shares] == list(range(1, trustees + 1))
    points = list(range(trustees - threshold + 1, trustees + 1))
    delta = math.factorial(trustees)

    def at_zero(points: list[int]) -> int:
        return sum(lagrange_at_zero(i, points, delta) * shares[i - 1]._secret for i in points)

    assert at_zero(points) % m == 0
    assert (at_zero(points) - delta) % N == 0
    if threshold > 1:
        assert at_zero(points[1:]) % m != 0
    assert all(0 <= share._secret < m * N for share in shares)
    assert len({share._secret for share in shares}) == (trustees if threshold > 1 else 1)
    # h is minus a square (Damgård, Jurik and Nielsen 2010)
    assert all(gmpy2.legendre(key.public_key.h, prime) == -1 for prime in (p, q))
    # v is a square that generates them all: no power by n m / f is 1
    v, order = key.base, N * m
    assert all(pow(v, (prime - 1) // 2, prime) == 1 for prime in (p, q))
    assert pow(v, order, N * N) == 1
    assert all(pow(v, order // f, N * N) != 1 for f in (p, q, p // 2, q // 2))


def numbers(entropy: ReplayedEntropy, below: int) -> list[int]:
    """Return the uniform numbers below a bound that the drawn bytes stand for, in order."""
    bits = (below - 1).bit_length()
    whole = [x for x in entropy.drawn if len(x) == -(-bits // 8)]
    masked = [int.from_bytes(x, "little") % (1 << bits) for x in whole]
    return [x for x in masked if x < below]


def safe(*primes: int) -> list[StructuredPrime]:
    return [StructuredPrime(1, p // 2) for p in primes]


def order_of(p: int, q: int) -> int:
    """Return n p' q', which only the dealer knows."""
    return p * q * (p // 2) * (q // 2)


def secret_of(p: int, q: int) -> int:
    """Return d: 0 modulo p' q' and 1 modulo n."""
    m = (p // 2) * (q // 2)
    return m * pow(m, -1, p * q)


def interpolated(points: Sequence[tuple[int, int]], order: int) -> list[int]:
    """Return the coefficients of the polynomial through the points, modulo n p' q'."""
    total = [0] * len(points)
    for i, value in points:
        basis = [1]
        for j in (j for j, _ in points if j != i):  # times (x − j) / (i − j)
            shifted, scaled = [0, *basis], [*(-j * a for a in basis), 0]
            inverse = pow(i - j, -1, order)
            basis = [(a + b) * inverse % order for a, b in zip(shifted, scaled, strict=True)]
        total = [(a + value * b) % order for a, b in zip(total, basis, strict=True)]
    return total


def test_secret_coefficients_are_fresh_and_of_full_size() -> None:
    """Every coefficient of the secret polynomial is drawn afresh and in full size."""
    p, q = SAFE[:2]
    order = order_of(p, q)
    for seed in ("a", "b", "c"):
        entropy = ReplayedEntropy(seed)
        _, shares = _share(*safe(p, q), 7, 5, entropy)
        points = [(share.index, share._secret) for share in shares]
        constant, *others = interpolated(points[:5], order)
        assert constant == secret_of(p, q)
        assert interpolated(points[2:], order) == [constant, *others]
        # one draw each, in order, of the whole range
        drawn = numbers(entropy, order)
        assert others == drawn[: len(others)]
        assert len(set(others)) == len(others) == 4
        assert all(a.bit_length() > order.bit_length() - 40 for a in others)


def test_fewer_shares_than_the_threshold_are_those_of_any_key() -> None:
    """Two keys give the same two shares, so these reveal nothing of d."""
    given = [(1, 1), (2, order_of(*SAFE[:2]) // 3)]
    keys = []
    for p, q in (SAFE[:2], SAFE[2:]):
        order = order_of(p, q)
        _, *wanted = interpolated([(0, secret_of(p, q)), *given], order)
        size, stream = -(-(order - 1).bit_length() // 8), Stream(f"{p}")
        left = [number.to_bytes(size, "little") for number in wanted]
        key, shares = _share(
            *safe(p, q),
            5,
            3,
            lambda n, at=stream, of=left: of.pop(0) if of and n == len(of[0]) else at(n),
        )
        assert [(share.index, share._secret) for share in shares[:2]] == given
        keys.append(key)
    assert keys[0].public_key.n != keys[1].public_key.n


def test_bases_are_squares_of_draws_from_the_whole_group() -> None:
    """The bases are squares of draws from the whole group."""
    for seed in ("a", "b"):
        entropy = ReplayedEntropy(seed)
        key, _ = _share(*safe(*SAFE[:2]), 3, 1, entropy)
        x, y = numbers(entropy, N)[0], numbers(entropy, N * N)[-1]
        assert key.public_key.h == -(x**2) % N
        assert key.base == y**2 % N**2
        assert x.bit_length() > 512 - 40
        assert y.bit_length() > 1024 - 40


def test_primes_of_a_key_are_never_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = safe(*SAFE[:2])
    found = iter([p, p, p, q])
    monkeypatch.setattr("secagg.threshold.dealing.random_safe_prime", lambda *_: next(found))
    assert deal_insecure(3, 2, bits=512)[0].public_key.n == p.p * q.p


@pytest.mark.large
def test_dealt_key_has_safe_primes_and_works() -> None:
    key, shares = deal_insecure(3, 2, bits=512, entropy=Stream("deal"))
    again, _ = deal_insecure(3, 2, bits=512, entropy=Stream("deal"))
    assert key.to_bytes() == again.to_bytes()
    assert key.key_id != deal_insecure(3, 2, bits=512, entropy=Stream("other"))[0].key_id
    assert key.public_key.bits == 512
    ciphertexts = key.public_key.encrypt([5, -6])
    partials = [shares[i].decrypt_partially(ciphertexts) for i in (2, 0)]
    assert key.combine(ciphertexts, partials) == [5, -6]


def test_key_of_wrong_parts_raises() -> None:
    p = SAFE[0]
    for field, value in (
        ("threshold", 0),
        ("threshold", 6),
        ("images", ()),
        ("images", KEY.images * 21),
        ("base", 0),
        ("base", 1),
        ("base", N * N),
        ("base", 7 * p),
        ("images", (*KEY.images[:4], 7 * p)),
        ("public_key", N),
    ):
        with pytest.raises(ParameterError):
            replace(KEY, **{field: value})


def test_n_sharing_a_factor_with_the_factorial_makes_no_key() -> None:
    """A liar's n; combining would divide by Δ² modulo n."""
    for factor in (3, 5):
        public = copy.copy(PUBLIC)
        public.n = gmpy2.mpz(N // factor * factor)
        with pytest.raises(ParameterError):
            replace(KEY, public_key=public)


def test_exponents_of_a_dealt_key_have_half_the_length_of_n() -> None:
    """Half the length is as secure as the whole, at any size (Goldreich and Rosen 2003)."""
    stream = Stream("1024")
    key, _ = _share(random_prime(512, stream), random_prime(512, stream), 3, 2, stream)
    assert (key.public_key.bits, key.public_key.exponent_bits) == (1024, 512)


def test_check38_dealt_key_has_3072_bits_or_is_insecure() -> None:
    """A dealt key has 3072 bits and less has an insecure name."""
    assert inspect.signature(deal).parameters["bits"].default == 3072
    for draws in (deal, deal_insecure, KeyShare.decrypt_partially):
        assert inspect.signature(draws).parameters["entropy"].default is os.urandom


def test_undealable_settings_are_rejected_before_any_draw() -> None:
    """Impossible keys are rejected before anything is drawn."""

    def never(size: int) -> bytes:
        raise AssertionError(f"{size} bytes were drawn")

    for make, trustees, needed, bits in (
        *((deal, 5, 3, bits) for bits in (1984, 2056, 8256)),
        *((deal_insecure, 5, 3, bits) for bits in (448, 520, 2048)),
        *((deal_insecure, 0, 0, 512), (deal_insecure, 5, 6, 512), (deal_insecure, 5, 0, 512)),
        *((deal_insecure, 101, 3, 512), (deal_insecure, 5.0, 3, 512)),
    ):
        with pytest.raises(ParameterError):
            make(trustees, needed, bits=bits, entropy=never)  # type: ignore[operator]


def test_share_of_another_secret_raises() -> None:
    secret, other = SHARES[0]._secret, SHARES[1]._secret
    order = N * (SAFE[0] // 2) * (SAFE[1] // 2)
    for key, index, wrong in (
        *((KEY, 1, other), (KEY, 2, other + 1), (KEY, 1, -1)),
        *((KEY, 1, secret + order * k) for k in (-1, 4 * N)),  # the same power, out of range
        *((KEY, index, secret) for index in (0, 6, True)),
        (PUBLIC, 1, secret),
    ):
        with pytest.raises(ParameterError) as caught:
            KeyShare(key, index, wrong)  # type: ignore[arg-type]
        assert wrong == -1 or str(wrong) not in str(caught.value)
