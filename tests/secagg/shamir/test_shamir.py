from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import ReplayedEntropy
from secagg import Field, ParameterError, shamir
from secagg.shamir.field import M61


def test_check10_t_minus_one_shares_reveal_nothing() -> None:
    """For each candidate secret there is one polynomial through the t − 1 shares."""
    shares = shamir.split(b"\x07", 3, 5)
    with pytest.raises(ParameterError):
        shamir.combine(shares[:2])
    seen = set()
    for other in range(200):
        forged = dataclasses.replace(shares[2], limbs=((shares[2].limbs[0] + other) % M61,))
        points = np.array([1, 2, 3], dtype=np.uint64)
        values = np.array([s.limbs for s in (*shares[:2], forged)], dtype=np.uint64)
        seen.add(int(shamir.combine_limbs(points, values)[0]))
    assert len(seen) == 200


def test_check10_coefficients_are_the_generators_and_uniform() -> None:
    """Coefficients come from the generator and are uniform."""
    entropy = ReplayedEntropy("coefficients")
    points = np.arange(1, 8, dtype=np.uint64)
    shamir.split_limbs(shamir.to_limbs(bytes(32)), 4, points, entropy)
    assert sum(map(len, entropy.drawn)) == 3 * 5 * 8
    draws = iter([b"\xff" * 8, (5).to_bytes(8, "little")])
    (limb,) = shamir.split_limbs(
        np.array([9], dtype=np.uint64), 2, np.array([1], dtype=np.uint64), lambda _: next(draws)
    ).tolist()
    assert limb == [9 + 5], "61 one bits are p itself and must be drawn again"


@pytest.mark.parametrize(
    "change",
    [
        {"x": 0},
        {"x": 2},
        {"x": M61},
        {"x": 1.5},
        {"length": 31},
        {"threshold": 2},
        {"limbs": (1, 2, 3, 4)},
        {"limbs": (1, 2, 3, 4, M61)},
        {"limbs": (1, 2, 3, 4, 5.0)},
        {"limbs": (1, 2, 3, 4, 5)},
    ],
)
def test_check10_wrong_share_is_rejected(change: dict[str, object]) -> None:
    shares = shamir.split(os.urandom(32), 3, 5)
    shares[0] = dataclasses.replace(shares[0], **change)
    with pytest.raises(ParameterError):
        shamir.combine(shares)


@pytest.mark.parametrize(
    "arguments", [(b"", 1, 1), ("text", 1, 1), (b"s", 0, 3), (b"s", 4, 3), (b"s", 1, 0)]
)
def test_check10_impossible_sharings_are_rejected(arguments: tuple) -> None:
    with pytest.raises(ParameterError):
        shamir.split(*arguments)
    with pytest.raises(ParameterError):
        shamir.combine([])


def test_check29_share_does_not_print_its_value() -> None:
    share = shamir.split(b"secret", 2, 3)[0]
    assert str(share.limbs[0]) not in repr(share)


@given(st.integers(1, 6), st.integers(0, 6), st.integers(1, 4), st.data())
def test_check40_find_wrong_finds_up_to_half_the_surplus(
    t: int, surplus: int, secrets: int, data: st.DataObject
) -> None:
    """Each secret has wrong shares of its own."""
    n = t + surplus
    points = np.arange(1, n + 1, dtype=np.uint64)
    limbs = np.arange(2 * secrets, dtype=np.uint64)
    values = shamir.split_limbs(limbs, t, points, os.urandom).reshape(n, secrets, 2)
    wrong = [
        sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=surplus // 2)))
        for _ in range(secrets)
    ]
    for secret, rows in enumerate(wrong):
        values[rows, secret, secret % 2] ^= np.uint64(1)
    found = shamir.find_wrong(points, values, t, os.urandom)
    assert {place: rows.tolist() for place, rows in found.items()} == dict(enumerate(wrong))


def test_check40_find_wrong_with_too_many_wrong_returns_none() -> None:
    points = np.arange(1, 8, dtype=np.uint64)
    values = shamir.split_limbs(np.arange(3, dtype=np.uint64), 5, points, os.urandom)
    values[[0, 3], 1] = 12345
    found = shamir.find_wrong(points, values.reshape(7, 3, 1), 5, os.urandom)
    assert [found[0].tolist(), found[1], found[2].tolist()] == [[], None, []]


@pytest.mark.parametrize("t", [1, 2, 5])
def test_leave_one_out_gives_the_secret_without_the_wrong_share(t: int) -> None:
    points = np.arange(3, t + 4, dtype=np.uint64)
    values = shamir.split_limbs(np.arange(4, dtype=np.uint64), t, points, os.urandom)
    values[t // 2] = 9
    for row, secrets in enumerate(shamir.leave_one_out(points, values)):
        rest = np.arange(points.size) != row
        expected = shamir.combine_limbs(points[rest], values[rest])
        assert secrets.tolist() == expected.tolist()
        assert (row == t // 2) == (secrets.tolist() == [0, 1, 2, 3])


P61 = (1 << 61) - 1
PRIMES = st.sampled_from([2, 5, 65_537, P61, 9_223_372_036_854_775_783, (1 << 127) - 1])


@given(PRIMES, st.data())
def test_every_operation_agrees_with_plain_integers(p: int, data: st.DataObject) -> None:
    field = Field(p)
    element = st.integers(0, p - 1) | st.sampled_from([0, 1, p - 1])
    rows = st.lists(element, min_size=4, max_size=4)
    a, b = data.draw(rows), data.draw(rows)
    fa, fb = field.array(a), field.array(b)
    pairs = list(zip(a, b, strict=True))
    assert field.add(fa, fb).tolist() == [(x + y) % p for x, y in pairs]
    assert field.sub(fa, fb).tolist() == [(x - y) % p for x, y in pairs]
    assert field.mul(fa, fb).tolist() == [x * y % p for x, y in pairs]
    assert field.dot(fa, fb) == sum(x * y for x, y in pairs) % p
    exponent = data.draw(st.integers(0, 1 << 70))
    assert field.pow(fa, exponent).tolist() == [pow(x, exponent, p) for x in a]
    square = field.array([a[:2], a[2:]])
    assert field.matmul(square, square).tolist() == [
        [sum(a[2 * i + k] * a[2 * k + j] for k in range(2)) % p for j in range(2)]
        for i in range(2)
    ]
    assert field.evaluate(field.array([[x] for x in a]), fb).tolist() == [
        [sum(c * y**i for i, c in enumerate(a)) % p] for y in b
    ]
    nonzero = [x or 1 for x in a]
    assert field.inv(field.array(nonzero)).tolist() == [pow(x, -1, p) for x in nonzero]


def test_values_outside_the_field_are_rejected() -> None:
    field, own = Field(97), Field()
    for call in (
        lambda: Field(96),
        lambda: Field("97"),
        lambda: field.array([97]),
        lambda: field.array([-1]),
        lambda: field.array([0.5]),
        lambda: field.add(field.array([1]), field.array([1, 2])),
        lambda: field.inv(field.array([1, 0])),
        lambda: field.pow(field.array([1]), -1),
        lambda: field.matmul(field.array([[1, 2]]), field.array([[1, 2]])),
        lambda: field.lagrange_at_zero(field.array([1, 1])),
        lambda: field.lagrange_at_zero(field.array([0, 1])),
        lambda: own.inv(np.array([0], dtype=np.uint64)),
        lambda: own.inv(field.array([[1]])),
        lambda: own.evaluate(field.array([1]), field.array([1])),
        lambda: own.lagrange_at_zero(field.array([[1]])),
    ):
        with pytest.raises(ParameterError):
            call()
