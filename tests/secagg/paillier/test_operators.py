"""Expressions of users of python-paillier work, or are errors with a remedy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from paillier_keys import keypair
from secagg import Integers, ParameterError
from secagg.paillier import Ciphertexts, EncryptedVector, Packing

KEY = keypair()
PUBLIC = KEY.public_key
PACKING = Packing(encoding=Integers(9), length=3, summands=5)


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


def vector() -> EncryptedVector:
    return PUBLIC.encrypt_vector(np.array([1, 2, 3]), PACKING)


@pytest.mark.parametrize("make", [ciphertexts, vector])
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
)
def test_operator_without_an_encrypted_result_is_rejected(
    name: str, make: Callable[[], object]
) -> None:
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
