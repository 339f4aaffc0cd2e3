"""Sums, differences and products are right, or an error: no plaintext wraps beyond n / 2."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from paillier_keys import keypair
from secagg import Integers, LocalProtocolError, ParameterError
from secagg.paillier import Ciphertexts, Packing

KEY = keypair()
PUBLIC = KEY.public_key
N = int(PUBLIC.n)
MOST = N // 2


def made(*messages: int) -> Ciphertexts:
    return PUBLIC.encrypt(messages)


def received(*messages: int, largest: int | None = None) -> Ciphertexts:
    return PUBLIC.load(made(*messages).to_bytes(), len(messages), largest)


def repeated(start: Ciphertexts, step: Callable[[Ciphertexts], Ciphertexts]) -> Ciphertexts:
    for _ in range(N.bit_length()):
        start = step(start)
    return start


BEYOND = {
    "sum": lambda: made(MOST) + made(1),
    "sum of negatives": lambda: made(-MOST) + made(-1),
    "one of two": lambda: made(0, MOST) + made(5, 1),
    "difference": lambda: made(MOST) - made(-1),
    "product": lambda: made(MOST) * 2,
    "large factor": lambda: made(2) * MOST,
    "negated and doubled": lambda: repeated(made(1), lambda c: -c - c),
    "Python's sum": lambda: sum([made(MOST // 2)] * 3),
    "blinded again": lambda: PUBLIC.rerandomise(made(MOST)) + made(1),
    "received and small": lambda: received(3) * 2,
    "received and products": lambda: repeated(received(1, largest=1), lambda c: c * 3),
    "received with a bound": lambda: received(MOST // 2, largest=MOST // 2) * 3,
    "pickled": lambda: pickle.loads(pickle.dumps(received(MOST))) + made(1),  # noqa: S301
}


@pytest.mark.parametrize("case", BEYOND)
def test_result_that_could_wrap_is_rejected(case: str) -> None:
    with pytest.raises(ParameterError, match="n / 2"):
        BEYOND[case]()


INSIDE = {
    "sum": (lambda: made(MOST - 1) + made(1), [MOST]),
    "nothing": (lambda: made() + made(), []),
    "negative": (lambda: -received(MOST), [-MOST]),
    "half": (lambda: made(MOST // 2) * 2, [2 * (MOST // 2)]),
    "received": (lambda: received(5, largest=5) + received(-6, largest=6), [-1]),
}


@pytest.mark.parametrize("case", INSIDE)
def test_result_that_fits_is_right(case: str) -> None:
    compute, expected = INSIDE[case]
    assert KEY.decrypt(compute()) == expected


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "subtract", "multiply", "negate", "send"]),
        st.integers(-(2**200), 2**200),
    ),
    max_size=12,
)


@given(st.integers(-MOST, MOST), STEPS)
@examples(40)
def test_computation_is_right_or_an_error(start: int, steps: list[tuple[str, int]]) -> None:
    value, found = start, made(start)
    try:
        for step, number in steps:
            if step == "add":
                value, found = value + number, found + made(number)
            elif step == "subtract":
                value, found = value - number, found - made(number)
            elif step == "multiply":
                value, found = value * number, found * number
            elif step == "negate":
                value, found = -value, -found
            else:
                found = PUBLIC.load(found.to_bytes(), 1, found.largest)
    except ParameterError:
        return
    assert KEY.decrypt(found) == [value]


def test_bound_leaves_neither_by_bytes_nor_pickles() -> None:
    """The bound is that of the messages, which only their owner knows."""
    secret = made(123_456_789)
    assert secret.largest == 123_456_789
    assert "123456789" not in repr(secret)
    with pytest.raises(LocalProtocolError):
        pickle.dumps(secret)
    assert PUBLIC.load(secret.to_bytes(), 1).largest is None
    with pytest.raises(ParameterError) as caught:
        _ = secret * MOST
    assert "123456789" not in str(caught.value)


@pytest.mark.parametrize("summands", [1, 3, 2**20])
@pytest.mark.parametrize("top", [1, 63, 2**30])  # 63 fill slots of 7 bits
def test_sum_of_packed_vectors_fits_if_the_packing_has_room(summands: int, top: int) -> None:
    packing = Packing(encoding=Integers(top), length=80, summands=summands)
    x = np.full(80, top)
    sent = PUBLIC.load_vector(PUBLIC.encrypt_vector(x, packing).to_bytes(), packing)
    total = KEY.decrypt_vector(sent * summands)
    assert (total.sum == summands * top).all()
    with pytest.raises(ParameterError):
        _ = sent * summands + sent
