"""Numbers of all kinds: each is right, or an error that names its type."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import gmpy2
import numpy as np
import pytest

from paillier_keys import keypair
from secagg import FixedPoint, Integers, Packing, ParameterError, RoundParams, SecAggError
from secagg.encoding import Ring
from secagg.paillier import Ciphertexts, PublicKey

KEY = keypair()
PUBLIC = KEY.public_key
N = int(PUBLIC.n)
PACKING = Packing(encoding=Integers(9), length=2, summands=5)
CIPHERTEXTS = PUBLIC.encrypt([3])

WHOLE = {
    "int": 3,
    "negative": -3,
    "int8": np.int8(3),
    "uint8": np.uint8(3),
    "int64": np.int64(-3),
    "uint64": np.uint64(3),
    "mpz": gmpy2.mpz(3),
    "negative mpz": gmpy2.mpz(-3),
    "large mpz": gmpy2.mpz(2**200),
    "large": 2**200,
}
OTHERS: dict[str, object] = {
    "timedelta64": np.timedelta64(3),
    "datetime64": np.datetime64(3, "s"),
    "Decimal": Decimal(3),
    "Fraction": Fraction(3),
    "bool": True,
    "bool_": np.True_,
    "complex": 3j,
    "complex128": np.complex128(3),
    "float": 3.0,
    "float32": np.float32(3),
    "mpfr": gmpy2.mpfr(3),
    "mpq": gmpy2.mpq(3),
    "str": "3",
    "bytes": b"3",
    "None": None,
    "list": [3],
    "array": np.array([3]),
    "array of no dimension": np.array(3),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_encrypted_and_multiply(name: str) -> None:
    number = WHOLE[name]
    assert KEY.decrypt(PUBLIC.encrypt([number])) == [int(number)]
    assert KEY.decrypt(CIPHERTEXTS * number) == [3 * int(number)]
    assert KEY.decrypt(number * CIPHERTEXTS) == [3 * int(number)]
    if number > 0:
        loaded = PUBLIC.load_ints(CIPHERTEXTS.to_ints(), number)
        assert (loaded.largest, type(loaded.largest)) == (int(number), int)


@pytest.mark.parametrize("name", [name for name in WHOLE if "large" not in name])
def test_whole_numbers_multiply_vectors(name: str) -> None:
    number = WHOLE[name]
    for product in (
        PUBLIC.encrypt_vector(np.arange(2), PACKING) * number,
        number * PUBLIC.encrypt_vector(np.arange(2), PACKING),
    ):
        assert KEY.decrypt_vector(product).integers.tolist() == [0, int(number)]


TAKES: dict[str, Callable[[object], object]] = {
    "encrypt": lambda x: PUBLIC.encrypt([1, x]),  # type: ignore[list-item]
    "load_ints": lambda x: PUBLIC.load_ints([1, x]),  # type: ignore[list-item]
    "largest": lambda x: PUBLIC.load_ints(CIPHERTEXTS.to_ints(), x),  # type: ignore[arg-type]
    "count": lambda x: PUBLIC.load(CIPHERTEXTS.to_bytes(), x),  # type: ignore[arg-type]
    "factor": lambda x: CIPHERTEXTS * x,  # type: ignore[operator]
    "factor on the left": lambda x: x * CIPHERTEXTS,  # type: ignore[operator]
    "summand": lambda x: CIPHERTEXTS + x,  # type: ignore[operator]
    "summand on the left": lambda x: x + CIPHERTEXTS,  # type: ignore[operator]
    "factor of a vector": lambda x: vector() * x,  # type: ignore[operator]
    "factor of a vector on the left": lambda x: x * vector(),  # type: ignore[operator]
}


def vector() -> object:
    return PUBLIC.encrypt_vector(np.arange(2), PACKING)


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("name", OTHERS)
def test_other_numbers_are_errors_that_name_the_type(name: str, take: str) -> None:
    value = OTHERS[name]
    if take == "largest" and value is None:
        return
    with pytest.raises(ParameterError) as caught:
        TAKES[take](value)
    named = type(value).__name__ in str(caught.value)
    assert named or (take in ("largest", "count") and repr(value) in str(caught.value))


def test_n_of_a_key_is_an_int_that_makes_a_key() -> None:
    assert type(PUBLIC.n) is int
    assert PublicKey(PUBLIC.n, allow_insecure=True).n == N


HUGE = 10**5000  # more digits than Python prints
TEXT = "x" * 2000


def fixed_point(**changes: object) -> object:
    return FixedPoint(**{"clip": 8.0, **changes})  # type: ignore[arg-type]


def packing(**changes: object) -> object:
    fields = {"encoding": Integers(9), "length": 2, "summands": 5}
    return Packing(**{**fields, **changes})  # type: ignore[arg-type]


def params(**changes: object) -> object:
    fields = {"n_clients": 5, "threshold": 3, "length": 2, "encoding": Integers(9)}
    return RoundParams(**{**fields, **changes})  # type: ignore[arg-type]


def loaded(largest: object) -> Ciphertexts:
    return PUBLIC.load(CIPHERTEXTS.to_bytes(), 1, largest)  # type: ignore[arg-type]


LONG: dict[str, Callable[[object], object]] = {
    "largest": loaded,
    "count": lambda x: PUBLIC.load(b"", x),  # type: ignore[arg-type]
    "message": lambda x: PUBLIC.encrypt([x]),  # type: ignore[list-item]
    "ciphertext": lambda x: PUBLIC.load_ints([x]),  # type: ignore[list-item]
    "factor": lambda x: CIPHERTEXTS * x,  # type: ignore[operator]
    "factor of a vector": lambda x: vector() * x,  # type: ignore[operator]
    "summand": lambda x: CIPHERTEXTS + x,  # type: ignore[operator]
    "summands of load_vector": lambda x: PUBLIC.load_vector(b"", PACKING, x),  # type: ignore[arg-type]
    "n": lambda x: PublicKey(x),  # type: ignore[arg-type]
    "exponent_bits": lambda x: PublicKey(N, 5, x, allow_insecure=True),  # type: ignore[arg-type]
    "h": lambda x: PublicKey(N, x, 256, allow_insecure=True),  # type: ignore[arg-type]
    "clip": lambda x: fixed_point(clip=x),
    "fractional_bits": lambda x: fixed_point(fractional_bits=x),
    "rounding": lambda x: fixed_point(rounding=x),
    "beyond_clip": lambda x: fixed_point(beyond_clip=x),
    "max": Integers,  # type: ignore[dict-item]
    "modulus": Ring,  # type: ignore[dict-item]
    "weight": lambda x: Integers(9).encode(np.arange(2), Ring(64), x),  # type: ignore[arg-type]
    "summands": lambda x: packing(summands=x),
    "length": lambda x: packing(length=x),
    "max_weight": lambda x: packing(max_weight=x),
    "session": lambda x: packing(session=x),
    "encoding": lambda x: packing(encoding=x),
    "weight of a packing": lambda x: packing(max_weight=9).encode(np.arange(2), x),  # type: ignore[attr-defined]
    "summands of suggest": lambda x: FixedPoint.suggest(np.ones(3), x),  # type: ignore[arg-type]
    "quantile": lambda x: FixedPoint.suggest(np.ones(3), 5, quantile=x),  # type: ignore[arg-type]
    "modulus_bits": lambda x: FixedPoint.suggest(np.ones(3), 5, modulus_bits=x),  # type: ignore[arg-type]
    "sample": lambda x: FixedPoint.suggest(x, 5),  # type: ignore[arg-type]
    "modulus of a round": lambda x: params(modulus=x),
    "clients of a round": lambda x: params(n_clients=x),
    "threshold of a round": lambda x: params(threshold=x),
}


@pytest.mark.parametrize(
    "value", [HUGE, -HUGE, TEXT, [TEXT]], ids=["huge", "low", "text", "list"]
)
@pytest.mark.parametrize("name", LONG)
def test_long_values_are_not_in_messages(name: str, value: object) -> None:
    with pytest.raises(SecAggError) as caught:
        LONG[name](value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "largest", [-1, N // 2 + 1, N, N * N, -N, HUGE], ids=lambda x: f"{x.bit_length()} bits"
)
def test_bounds_of_a_key_are_not_printed_digit_by_digit(largest: int) -> None:
    large = keypair(1024).public_key
    with pytest.raises(ParameterError, match="largest is") as caught:
        large.load(
            large.encrypt([1]).to_bytes(), 1, largest if largest < 0 else large.n + largest
        )
    assert len(str(caught.value)) < 200
