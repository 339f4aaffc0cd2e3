"""Sharing over primes of 2 to 300 bits, checked by a few lines of plain integers."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import ReplayedEntropy
from secagg import Field, ParameterError, shamir
from secagg.shamir import field as fields
from secagg.shamir import primality, sharing
from secagg.shamir.field import M61

LARGE = (1 << 127) - 1


@st.composite
def primes(draw: st.DrawFn, least: int = 2, most: int = 300) -> int:
    """A prime of a random number of bits."""
    bits = draw(st.integers(least, most) | st.sampled_from([least, 61, 62, 63, 64, most]))
    rng = random.Random(draw(st.integers(0, 2**32)))
    while not primality.is_prime(p := rng.randrange(1 << (bits - 1), 1 << bits)):
        pass
    return p


def interpolated(shares: list[tuple[int, int]], p: int) -> int:
    """The value at zero of the polynomial through some points, by Lagrange's formula."""
    total = 0
    for x, y in shares:
        above = below = 1
        for other, _ in shares:
            if other != x:
                above, below = above * other % p, below * (other - x) % p
        total += y * above * pow(below, -1, p)
    return total % p


@examples(60)
@given(primes() | st.just(M61), st.data())
def test_check10_any_t_of_n_shares_give_an_element(p: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, min(6, p - 1)))
    t = data.draw(st.sampled_from([1, n]) | st.integers(1, n))
    secret = data.draw(st.sampled_from([0, 1, p - 1]) | st.integers(0, p - 1))
    shares = shamir.split(secret, t, n, field=Field(p))
    assert [s.x for s in shares] == list(range(1, n + 1))
    assert all(type(limb) is int and 0 <= limb < p for s in shares for limb in s.limbs)
    for quorum in combinations(shares, t):
        assert interpolated([(s.x, *s.limbs) for s in quorum], p) == secret
        assert shamir.combine(quorum) == secret
    assert shamir.combine(shares[::-1]) == secret


@examples(40)
@given(primes(9) | st.just(M61), st.binary(min_size=1, max_size=80), st.data())
def test_check10_t_of_n_shares_give_bytes(p: int, secret: bytes, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    t = data.draw(st.sampled_from([1, n]) | st.integers(1, n))
    shares = shamir.split(secret, t, n, field=Field(p))
    width = (p.bit_length() - 1) // 8
    limbs = [secret[i : i + width] for i in range(0, len(secret), width)]
    for c, limb in enumerate(limbs):
        given = [(s.x, s.limbs[c]) for s in shares[-t:]]
        assert interpolated(given, p) == int.from_bytes(limb, "little")
    assert shamir.limb_count(len(secret), Field(p)) == len(shares[0].limbs) == len(limbs)
    assert shamir.combine(shares[-t:]) == shamir.combine(shares) == secret


@examples(30)
@given(primes(4), st.integers(1, 6), st.data())
def test_check10_batch_has_polynomials_of_its_own(p: int, t: int, data: st.DataObject) -> None:
    field = Field(p)
    elements = field.array(data.draw(st.lists(st.integers(0, p - 1), min_size=1, max_size=4)))
    points = field.array([p - 1, 1, 3, 2, 5, 4])
    values = shamir.split_limbs(elements, t, points, os.urandom, field=field)
    assert values.shape == (6, elements.size)
    assert values.dtype == elements.dtype
    for column, element in zip(values.T.tolist(), elements.tolist(), strict=True):
        pairs = list(zip(points.tolist(), column, strict=True))
        assert interpolated(pairs[-t:], p) == interpolated(pairs, p) == element
    rebuilt = shamir.combine_limbs(points[:t], values[:t], field=field)
    assert rebuilt.tolist() == elements.tolist()


@pytest.mark.parametrize("p", [M61, 2**62 - 57, LARGE])
@pytest.mark.parametrize("t", [1, 2, 5])
def test_check10_polynomials_of_any_field_have_degree_t_minus_one(p: int, t: int) -> None:
    field, points = Field(p), np.arange(1, 9, dtype=np.uint64)
    limbs = field.array([7, 0])
    values = shamir.split_limbs(limbs, t, points, os.urandom, field=field)
    for column, limb in zip(values.T.tolist(), (7, 0), strict=True):
        pairs = list(zip(points.tolist(), column, strict=True))
        assert {interpolated(pairs[i : i + t], p) for i in range(9 - t)} == {limb}
        found = {interpolated(pairs[i : i + t - 1], p) for i in range(10 - t)}
        assert t == 1 or len(found) == 10 - t


@pytest.mark.parametrize("p", [2, 3, 257, 2**62 + 135, 2**64 + 13, LARGE])
def test_check10_coefficients_of_any_field_are_uniform(p: int) -> None:
    """As many bits as p − 1 has; a number of p or more is drawn again."""
    bits = (p - 1).bit_length()
    size = 8 if p < 2**63 else -(-bits // 8)
    wide = [0, p - 1, p, 2**bits - 1, p - 1 + 2**bits]  # two or three are p or more
    draws = b"".join((w % 2 ** (8 * size)).to_bytes(size, "little") for w in wide)
    too_large = sum(w % 2 ** (8 * size) % 2**bits >= p for w in wide)
    asked = []

    def entropy(count: int, /) -> bytes:
        asked.append(count)
        return draws if len(asked) == 1 else bytes(count)

    drawn = sharing.uniform(5, entropy, p).tolist()
    assert drawn == [v if (v := w % 2 ** (8 * size) % 2**bits) < p else 0 for w in wide]
    assert asked == [5 * size, *([size * too_large] if too_large else [])]
    with pytest.raises(ParameterError):  # repeated, one element would show the secrets
        sharing.uniform(5, lambda _: bytes(size), p)


def test_check10_a_field_has_a_point_for_each_holder() -> None:
    assert shamir.combine(shamir.split(1, 6, 6, field=Field(7))) == 1
    for n in (7, 8):
        with pytest.raises(ParameterError):
            shamir.split(1, 2, n, field=Field(7))


@pytest.mark.parametrize("p", [2, M61, LARGE])
def test_check10_a_secret_outside_the_field_is_rejected(p: int) -> None:
    field, one = Field(p), np.ones(1, np.uint64)
    for secret in (-1, p, p + 1, 0.5, None, True, "7", [1]):
        with pytest.raises(ParameterError):
            shamir.split(secret, 1, 1, field=field)
    assert shamir.split(np.int64(1), 1, 1, field=field)[0].limbs == (1,)
    for limbs in ([p], [-1], [0.5]):
        with pytest.raises(ParameterError):
            shamir.split_limbs(np.array(limbs, object), 1, one, os.urandom, field=field)


@pytest.mark.parametrize("p", [2, 97, 251])
def test_check10_bytes_need_a_field_of_more_than_256_elements(p: int) -> None:
    share = shamir.Share(1, 1, 1, (0,), Field(p))
    for call in (
        lambda: shamir.split(b"s", 1, 1, field=Field(p)),
        lambda: shamir.combine([share]),
    ):
        with pytest.raises(ParameterError):
            call()
    assert shamir.combine(shamir.split(b"\xff", 1, 1, field=Field(257))) == b"\xff"


@pytest.mark.parametrize(
    "change",
    [
        {"field": Field(101)},
        {"field": Field()},
        {"limbs": (97,)},
        {"limbs": (-1,)},
        {"limbs": ()},
        {"x": 97},
        {"x": 98},
        {"length": 1},
    ],
)
def test_check10_share_of_another_field_or_shape_is_rejected(change: dict[str, object]) -> None:
    shares = shamir.split(5, 2, 3, field=Field(97))
    shares[1] = dataclasses.replace(shares[1], **change)
    with pytest.raises(ParameterError):
        shamir.combine(shares[:2])


@pytest.mark.parametrize("p", [97, 2**62 - 57, LARGE])
def test_shares_may_have_integers_of_numpy(p: int) -> None:
    shares = [
        shamir.Share(np.int64(x), 3, None, (np.int64(x**2),), Field(p)) for x in (7, 8, 9)
    ]
    assert shamir.combine(shares) == 0


@pytest.mark.parametrize("p", [97, M61, LARGE])
def test_check10_wrong_share_of_any_field_is_detected(p: int) -> None:
    """At any place: every share is in one of the quorums that are compared."""
    shares = shamir.split(5, 2, 4, field=Field(p))
    for i, share in enumerate(shares):
        wrong = dataclasses.replace(share, limbs=((share.limbs[0] + 1) % p,))
        with pytest.raises(ParameterError):
            shamir.combine([*shares[:i], wrong, *shares[i + 1 :]])


@pytest.mark.parametrize(("p", "width"), [(M61, 7), (LARGE, 15)])
def test_check10_limbs_that_encode_no_secret_are_none(p: int, width: int) -> None:
    field = Field(p)
    limbs = shamir.to_limbs(bytes(range(1, width + 2)), field)
    assert shamir.from_limbs(limbs, width + 1, field) == bytes(range(1, width + 2))
    assert shamir.from_limbs(limbs, width, field) is None
    assert shamir.from_limbs(field.array([1 << 8 * width]), width, field) is None


def test_check45_coefficients_are_hedged_with_the_field_and_secret() -> None:
    """A source that repeats itself gives other polynomials for any other statement."""

    def slope(secret: bytes | int, p: int, t: int = 2, n: int = 3) -> int:
        entropy = ReplayedEntropy("the same")
        a, b, *_ = shamir.split(secret, t, n, field=Field(p), entropy=entropy)
        return (b.limbs[0] - a.limbs[0]) % p

    first = slope(5, 2**62 - 57)
    assert first == slope(5, 2**62 - 57)
    others = [
        slope(6, 2**62 - 57),
        slope(5, 2**62 - 87),
        slope(b"\5", 2**62 - 57),
        slope(b"\5\0", 2**62 - 57),
        slope(5, 2**62 - 57, n=4),
        slope(5, M61),
        slope(b"\5", M61),
    ]
    assert len({first, *others}) == 8


def test_shares_over_the_default_field_are_those_of_earlier_versions() -> None:
    """The bytes of entropy, the statement and the limbs have not changed."""
    for field in ({}, {"field": Field()}, {"field": Field(M61)}):
        shares = shamir.split(b"a secret", 2, 3, entropy=lambda size: bytes(size), **field)
        assert [s.limbs for s in shares] == KNOWN


KNOWN = [
    (1179253249467844787, 430122086762224900),
    (24108745844846854, 860244173524449684),
    (1174807251435542872, 1290366260286674468),
]


@pytest.mark.parametrize("integers", ["gmpy2", "python"])
@examples(25)
@given(p=primes(64) | st.just(2), data=st.data())
def test_integers_of_both_kinds_agree(integers: str, p: int, data: st.DataObject) -> None:
    if integers == "gmpy2":
        pytest.importorskip("gmpy2")
    field, rows = Field(p), st.lists(st.integers(0, p - 1), min_size=3, max_size=3)
    coefficients, points = data.draw(rows), data.draw(rows)
    distinct = sorted({x or 1 for x in points})
    with pytest.MonkeyPatch.context() as patch:
        if integers == "python":
            patch.setattr(fields, "_number", lambda: int)
        column = field.array([[c] for c in coefficients])
        values = field.evaluate(column, field.array(points))[:, 0]
        weights = field.lagrange_at_zero(field.array(distinct))
        assert all(type(v) is int for v in (*values.tolist(), *weights.tolist()))
    assert values.tolist() == [
        sum(c * x**i for i, c in enumerate(coefficients)) % p for x in points
    ]
    unit = [[(x, int(x == y)) for x in distinct] for y in distinct]
    assert weights.tolist() == [interpolated(pairs, p) for pairs in unit]


@pytest.mark.parametrize("gmpy2", [True, False])
def test_primality_of_known_numbers(gmpy2: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Primes, products of primes, Carmichael numbers and strong pseudoprimes."""
    if not gmpy2:
        monkeypatch.setitem(sys.modules, "gmpy2", None)
    for p in (2, M61, 2**63 - 25, 2**64 - 59, 2**64 + 13, LARGE, 2**521 - 1):
        assert primality.is_prime(p)
        assert fields._has_kernel(p) == (p in (M61, 2**63 - 25))
    for n in (
        -7, 0, 1, 4, 561, 3215031751, 3825123056546413051, 318665857834031151167461,
        2**64 + 1, (2**61 - 1) ** 2, LARGE * M61, 2**67 - 1, 10**5000, -(10**5000),
    ):  # fmt: skip
        assert not primality.is_prime(n)
        with pytest.raises(ParameterError):
            Field(n)


@pytest.mark.parametrize("p", [2, M61, LARGE])
def test_check10_points_of_a_batch_and_shapes_that_do_not_match_are_rejected(p: int) -> None:
    field = Field(p)
    zero, one, rows = field.array([0]), field.array([1]), field.array([[1], [1]])
    beyond, twice = np.array([p], object), field.array([1, 1])
    for points, values in (
        (one, rows), (one, one), (rows, rows), (zero, rows[:1]), (twice, rows),
        (one, beyond[:, None]),
    ):  # fmt: skip
        with pytest.raises(ParameterError):
            shamir.combine_limbs(points, values, field=field)
    for limbs, t, points in (
        (rows, 1, one), (one, 1, rows), (one, 0, one), (one, -1, one), (one, 1, zero),
        (one, 1, beyond),
    ):  # fmt: skip
        with pytest.raises(ParameterError):
            shamir.split_limbs(limbs, t, points, os.urandom, field=field)
    assert shamir.split_limbs(one[:0], 2, one, os.urandom, field=field).shape == (1, 0)
