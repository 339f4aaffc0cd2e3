from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg import Field, ParameterError

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


@given(st.sampled_from([65_537, P61, (1 << 127) - 1]), st.data())
def test_lagrange_weights_give_the_constant_term(p: int, data: st.DataObject) -> None:
    field = Field(p)
    element = st.integers(1, p - 1)
    points = data.draw(st.lists(element, min_size=1, max_size=6, unique=True))
    poly = data.draw(st.lists(element, min_size=len(points), max_size=len(points)))
    values = field.evaluate(field.array([[c] for c in poly]), field.array(points))
    weights = field.lagrange_at_zero(field.array(points))
    assert field.dot(weights, field.array(values[:, 0])) == poly[0]


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
