"""What the dealer makes, and what cannot be made: keys and shares for threshold decryption."""

from __future__ import annotations

import math
from dataclasses import replace

import gmpy2
import pytest

from paillier_keys import Stream
from secagg import ParameterError
from secagg.combination import lagrange_at_zero
from secagg.key_share import KeyShare
from secagg.threshold import ThresholdKey, deal, deal_insecure
from threshold_keys import GROUPS, SAFE, dealing

KEY, SHARES = dealing(5, 3)
PUBLIC = KEY.public_key
N = int(PUBLIC.n)


@pytest.mark.parametrize(("trustees", "threshold"), GROUPS)
def test_the_dealer_shares_what_the_paper_says(trustees: int, threshold: int) -> None:
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


def test_a_dealt_key_is_of_safe_primes_and_works_from_end_to_end() -> None:
    key, shares = deal_insecure(3, 2, bits=512, entropy=Stream("deal"))
    again, _ = deal_insecure(3, 2, bits=512, entropy=Stream("deal"))
    assert key.to_bytes() == again.to_bytes()
    assert key.key_id != deal_insecure(3, 2, bits=512, entropy=Stream("other"))[0].key_id
    assert key.public_key.bits == 512
    ciphertexts = key.public_key.encrypt([5, -6])
    partials = [shares[i].decrypt_partially(ciphertexts) for i in (2, 0)]
    assert key.combine(ciphertexts, partials) == [5, -6]


def test_what_cannot_be_dealt_is_refused_before_anything_is_drawn() -> None:
    def never(size: int) -> bytes:
        raise AssertionError(f"{size} bytes were drawn")

    for bits in (1024, 2047, 2056, 8256):
        with pytest.raises(ParameterError, match="bits"):
            deal(5, 3, bits=bits, entropy=never)
    for bits in (448, 520, 2048):
        with pytest.raises(ParameterError, match="bits"):
            deal_insecure(5, 3, bits=bits, entropy=never)
    for trustees, threshold in ((0, 0), (5, 6), (5, 0), (101, 3), (5.0, 3), (5, True)):
        with pytest.raises(ParameterError, match=r"trustees|threshold"):
            deal_insecure(trustees, threshold, entropy=never)


def test_a_key_cannot_be_built_of_the_wrong_parts() -> None:
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


def test_a_share_cannot_be_built_of_another_secret() -> None:
    for index, secret in ((1, SHARES[1]._secret), (2, SHARES[1]._secret + 1), (1, -1)):
        with pytest.raises(ParameterError, match="is not that of trustee") as caught:
            KeyShare(KEY, index, secret)
        assert str(secret) not in str(caught.value)
    order = N * (SAFE[0] // 2) * (SAFE[1] // 2)
    for times in (-1, 4 * N):  # the same power, out of range
        with pytest.raises(ParameterError, match="is not that of trustee"):
            KeyShare(KEY, 1, SHARES[0]._secret + order * times)
    for index in (0, 6, True):
        with pytest.raises(ParameterError, match="index"):
            KeyShare(KEY, index, SHARES[0]._secret)
    with pytest.raises(ParameterError, match="ThresholdKey"):
        KeyShare(PUBLIC, 1, SHARES[0]._secret)


def test_a_key_is_the_same_for_whoever_holds_it() -> None:
    assert isinstance(KEY, ThresholdKey)
    assert dealing(5, 3)[0].key_id != dealing(5, 2)[0].key_id
    assert replace(KEY, threshold=2).key_id != KEY.key_id
    assert replace(KEY, base=KEY.images[0]).key_id != KEY.key_id
    swapped = (KEY.images[1], KEY.images[0], *KEY.images[2:])
    assert replace(KEY, images=swapped).key_id != KEY.key_id
