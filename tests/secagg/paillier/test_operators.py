"""Expressions of users of python-paillier work, or are errors with a remedy."""

from __future__ import annotations

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
        5,
        1.5,
        True,
        None,
        np.int64(7),
        np.float32(1.5),
        np.array(7),
        np.array(1.5),
        2 + 1j,
        Fraction(1, 2),
        "5",
        b"5",
        bytearray(b"12"),
        {1, 2},
        {0: 5},
        object(),
        int,
        [1.5],
        np.array([1.5]),
        np.array([[1, 2]]),
        [None],
        ["1"],
        [True],
        np.array([True]),
    ],
)
def test_messages_that_are_no_list_of_integers_are_rejected(messages: object) -> None:
    with pytest.raises(ParameterError, match="encrypt_vector"):
        PUBLIC.encrypt(messages)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="ciphertext"):
        PUBLIC.load_ints(messages)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "messages",
    [[5], (5, -6), np.array([1, 2]), np.array([3], np.uint8), range(3), iter([1, 2]), []],
)
def test_integers_in_an_order_are_encrypted(messages: object) -> None:
    expected = list(messages) if not hasattr(messages, "__next__") else [1, 2]
    assert KEY.decrypt(PUBLIC.encrypt(messages)) == expected  # type: ignore[arg-type]


def ciphertexts() -> Ciphertexts:
    return PUBLIC.encrypt([1, 2, 3])


def vector() -> EncryptedVector:
    return PUBLIC.encrypt_vector(np.array([1, 2, 3]), PACKING)


WRONG: dict[str, Callable[[object], object]] = {
    "3 + c": lambda c: 3 + c,
    "c + 3": lambda c: c + 3,
    "1.5 + c": lambda c: 1.5 + c,
    "array + c": lambda c: np.array([1, 2, 3]) + c,
    "np.int64 + c": lambda c: np.int64(3) + c,
    "c + array": lambda c: c + np.array([1, 2, 3]),
    "8 - c": lambda c: 8 - c,
    "0 - c": lambda c: 0 - c,
    "c - 8": lambda c: c - 8,
    "array - c": lambda c: np.ones(3) - c,
    "None - c": lambda c: None - c,
    "c / 2": lambda c: c / 2,
    "2 / c": lambda c: 2 / c,
    "array / c": lambda c: np.ones(3) / c,
    "c // 2": lambda c: c // 2,
    "c % 2": lambda c: c % 2,
    "c ** 2": lambda c: c**2,
    "2 ** c": lambda c: 2**c,
    "c * c": lambda c: c * c,
    "c * 1.5": lambda c: c * 1.5,
    "1.5 * c": lambda c: 1.5 * c,
    "array * c": lambda c: np.array([1, 2, 3]) * c,
    "c @ c": lambda c: c @ c,
    "array @ c": lambda c: np.ones(3) @ c,
    "sum from 1": lambda c: sum([c, c], 1),
}


@pytest.mark.parametrize("make", [ciphertexts, vector])
@pytest.mark.parametrize("case", WRONG)
def test_operator_without_an_encrypted_result_is_rejected(
    case: str, make: Callable[[], object]
) -> None:
    with pytest.raises(ParameterError):
        WRONG[case](make())


def test_sum_of_ciphertexts_is_that_of_their_messages() -> None:
    assert KEY.decrypt(sum([ciphertexts(), ciphertexts(), ciphertexts()])) == [3, 6, 9]
    assert KEY.decrypt(sum([ciphertexts()])) == [1, 2, 3]
    assert KEY.decrypt(np.int64(2) * ciphertexts()) == [2, 4, 6]
