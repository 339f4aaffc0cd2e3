"""Numbers of all kinds: each is right, or an error that names its type."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest

from paillier_keys import keypair
from secagg import Integers, ParameterError, SecAggError
from secagg.paillier import Ciphertexts, EncryptedVector, Packing, PublicKey

KEY = keypair()
PUBLIC = KEY.public_key
N = int(PUBLIC.n)
PACKING = Packing(encoding=Integers(9), length=2, summands=5)
CIPHERTEXTS = PUBLIC.encrypt([3])

WHOLE = (
    3, -3, np.int8(3), np.uint64(3), gmpy2.mpz(3), gmpy2.mpz(-3), gmpy2.mpz(2**200), 2**200,
)  # fmt: skip
OTHERS: tuple[object, ...] = (
    np.timedelta64(3, "s"), np.datetime64(3, "s"), Decimal(3), Fraction(3), True, np.True_, 3j,
    3.0, np.float32(3), gmpy2.mpfr(3), gmpy2.mpq(3), "3", None, [3], np.array([3]), np.array(3),
)  # fmt: skip


@pytest.mark.parametrize("number", WHOLE)
def test_whole_numbers_are_encrypted_and_multiply(number: int) -> None:
    assert KEY.decrypt(PUBLIC.encrypt([number])) == [int(number)]
    assert KEY.decrypt(CIPHERTEXTS * number) == [3 * int(number)]
    assert KEY.decrypt(number * CIPHERTEXTS) == [3 * int(number)]
    if number > 0:
        loaded = PUBLIC.load_ints(CIPHERTEXTS.to_ints(), number)
        assert (loaded.largest, type(loaded.largest)) == (int(number), int)
    if abs(number) < 6:
        for product in (vector() * number, number * vector()):
            assert KEY.decrypt_vector(product).integers.tolist() == [0, int(number)]


def vector() -> EncryptedVector:
    return PUBLIC.encrypt_vector(np.arange(2), PACKING)


TAKES: dict[str, Callable[[Any], object]] = {
    "encrypt": lambda x: PUBLIC.encrypt([1, x]),
    "load_ints": lambda x: PUBLIC.load_ints([1, x]),
    "largest": lambda x: PUBLIC.load_ints(CIPHERTEXTS.to_ints(), x),
    "count": lambda x: PUBLIC.load(CIPHERTEXTS.to_bytes(), x),
    "factor": lambda x: CIPHERTEXTS * x,
    "factor of a vector on the left": lambda x: x * vector(),
}


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("value", OTHERS, ids=lambda x: type(x).__name__)
def test_other_numbers_are_errors_that_name_the_type(value: object, take: str) -> None:
    if take == "largest" and value is None:
        return
    with pytest.raises(ParameterError) as caught:
        TAKES[take](value)
    named = type(value).__name__ in str(caught.value)
    assert named or (take in ("largest", "count") and repr(value) in str(caught.value))


HUGE = 10**5000  # more digits than Python prints
TEXT = "x" * 2000
LONG: dict[str, Callable[[Any], object]] = {
    "largest": lambda x: PUBLIC.load(CIPHERTEXTS.to_bytes(), 1, x),
    "count": lambda x: PUBLIC.load(b"", x),
    "message": lambda x: PUBLIC.encrypt([x]),
    "ciphertext": lambda x: PUBLIC.load_ints([x]),
    "factor": lambda x: CIPHERTEXTS * x,
    "summands of load_vector": lambda x: PUBLIC.load_vector(b"", PACKING, x),
    "n": PublicKey,
    "h": lambda x: PublicKey(N, x, 256, allow_insecure=True),
    "weight of a packing": lambda x: replace(PACKING, max_weight=9).encode(np.arange(2), x),
    **{
        name: lambda x, name=name: replace(PACKING, **{name: x})
        for name in ("encoding", "length", "summands", "max_weight", "session")
    },
}


@pytest.mark.parametrize("name", LONG)
def test_long_values_are_not_in_messages(name: str) -> None:
    for value in (HUGE, -HUGE, TEXT, [TEXT]):
        with pytest.raises(SecAggError) as caught:
            LONG[name](value)
        assert len(str(caught.value)) < 400


THREE = Packing(encoding=Integers(9), length=3, summands=5)


@pytest.mark.parametrize(
    "messages",
    [
        5, True, None, np.float32(1.5), np.array(7), Fraction(1, 2), "5", bytearray(b"12"),
        {1, 2}, {0: 5}, int, [1.5], np.array([1.5]), np.array([[1, 2]]), [None], ["1"],
        np.array([True]),
    ],
)  # fmt: skip
def test_messages_that_are_no_list_of_integers_are_rejected(messages: object) -> None:
    for take in (PUBLIC.encrypt, PUBLIC.load_ints):
        with pytest.raises(ParameterError):
            take(messages)  # type: ignore[arg-type]


@pytest.mark.parametrize("messages", [(5, -6), np.array([3], np.uint8), range(3), []])
def test_integers_in_an_order_are_encrypted(messages: object) -> None:
    assert KEY.decrypt(PUBLIC.encrypt(iter(messages))) == list(messages)  # type: ignore[arg-type]
    assert KEY.decrypt(PUBLIC.encrypt(messages)) == list(messages)  # type: ignore[arg-type]


def ciphertexts() -> Ciphertexts:
    return PUBLIC.encrypt([1, 2, 3])


def three_packed() -> EncryptedVector:
    return PUBLIC.encrypt_vector(np.array([1, 2, 3]), THREE)


@pytest.mark.parametrize("make", [ciphertexts, three_packed])
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
)
def test_operator_without_a_result_is_rejected(name: str, make: Callable[[], object]) -> None:
    operate, value = getattr(operator, name), make()
    for other in (2, 1.5, True, None, np.int64(2), np.ones(3), np.array(2), Fraction(1, 2)):
        for pair in ((value, other), (other, value)):
            if name == "mul" and isinstance(other, int | np.int64) and other is not True:
                continue
            with pytest.raises(ParameterError):
                operate(*pair)
    if name not in ("add", "sub"):
        with pytest.raises(ParameterError):
            operate(value, value)
    for zero in (0, np.int64(0)) if name == "add" else ():
        with pytest.raises(ParameterError):
            operate(value, zero)


def test_sum_of_ciphertexts_is_that_of_their_messages() -> None:
    assert KEY.decrypt(sum([ciphertexts(), ciphertexts(), ciphertexts()])) == [3, 6, 9]
    assert KEY.decrypt(np.int64(0) + ciphertexts()) == [1, 2, 3]
    assert KEY.decrypt(np.int64(2) * ciphertexts()) == [2, 4, 6]
