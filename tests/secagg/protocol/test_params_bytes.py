"""RoundParams as bytes: canonical, strictly decoded, and compared field by field."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import make_params, with_count
from secagg import (
    FixedPoint,
    Integers,
    Noise,
    ParameterError,
    RemoteProtocolError,
    RoundParams,
    testing,
)
from secagg.encoding import Lanes, Ring
from secagg.protocol.params_bytes import MAX_PARAMS_BYTES, Fields, compare

LOCAL = FixedPoint(clip=8.0, rounding="nearest", beyond_clip="refuse")


def with_noise(params: RoundParams) -> RoundParams:
    """The same parameters with noise and as many survivors as can be, if there is room."""
    with contextlib.suppress(ParameterError):
        return dataclasses.replace(params, noise=Noise(64), min_survivors=params.n_clients)
    return params


ANY = testing.params().flatmap(
    lambda params: st.sampled_from([params, with_count(params), with_noise(params)])
)
"""Bytes before the encoding."""


class Halves:
    """Encoding of an application's own: each element is 0 or 1, and read as 0 or a half."""

    max_encoded, signed = 1, False

    def __init__(self, name: bytes = b"halves") -> None:
        self.name = name

    def canonical(self) -> bytes:
        return self.name

    def encode(self, vector, ring: Ring, weight: int, entropy: object) -> tuple[Lanes, int]:
        return (np.asarray(vector) * weight).astype(ring.dtype), 0

    def decode(self, total: Lanes, ring: Ring) -> tuple[np.ndarray, np.ndarray]:
        return total / 2, total.astype(np.int64)


def reads(data: bytes, check: str, **how: object) -> None:
    """Assert that the bytes are rejected by this check."""
    with pytest.raises(RemoteProtocolError) as caught:
        RoundParams.from_bytes(data, **how)
    found = (caught.value.sender, caught.value.phase, caught.value.check)
    assert found == (None, "parameters", check)
    assert len(str(caught.value)) < 400


@given(ANY)
def test_check26_any_parameters_come_back_with_their_digest(params: RoundParams) -> None:
    data = params.to_bytes()
    assert len(data) <= MAX_PARAMS_BYTES
    again = RoundParams.from_bytes(data, encoding=params.encoding)
    assert again == params
    assert hash(again) == hash(params)
    assert again.digest == params.digest
    assert again.to_bytes() == data
    bare = RoundParams.from_bytes(data)
    assert bare.to_bytes() == data
    assert bare.encoding.canonical() == params.encoding.canonical()
    assert params.digest == hashlib.sha256(b"secagg/4 parameters" + data).digest()


def test_local_choices_stay_outside_the_bytes() -> None:
    plain = make_params(encoding=FixedPoint(clip=8.0))
    strict = make_params(encoding=LOCAL)
    assert plain.to_bytes() == strict.to_bytes()
    assert RoundParams.from_bytes(plain.to_bytes()).encoding == FixedPoint(clip=8.0)
    assert RoundParams.from_bytes(plain.to_bytes(), LOCAL).encoding is LOCAL


def test_parameters_are_equal_whatever_names_their_modulus() -> None:
    spelled = [make_params(), make_params(modulus_bits=32), make_params(modulus=1 << 32)]
    assert len(set(spelled)) == 1
    assert make_params(modulus_bits=33) not in spelled
    assert make_params(encoding=LOCAL) != make_params(encoding=FixedPoint(clip=8.0))
    assert make_params() != make_params().to_bytes()


def test_own_encoding_is_read_only_with_its_object() -> None:
    params = make_params(encoding=Halves())
    data = params.to_bytes()
    assert RoundParams.from_bytes(data, encoding=Halves()).digest == params.digest
    reads(data, "parameters")
    reads(data, "parameters", encoding=Halves(b"thirds"))
    reads(make_params().to_bytes(), "parameters", encoding=Integers(8))


def test_name_of_an_encoding_is_bytes_of_a_bounded_length() -> None:
    assert make_params(encoding=Halves(b"x" * 255)).to_bytes()
    for wrong in (b"x" * 256, "halves"):
        with pytest.raises(ParameterError):
            make_params(encoding=Halves(wrong))


def test_check14_largest_element_of_an_encoding_is_an_int_of_python() -> None:
    """np.int64(2^40) times a weight of 2^53 is 0, for which any modulus has room."""
    encoding = Halves()
    encoding.max_encoded = np.int64(1 << 40)
    with pytest.raises(ParameterError):
        make_params(encoding=encoding, max_weight=1 << 53, modulus_bits=64)


def test_wrong_arguments_are_the_callers_mistake() -> None:
    data = make_params().to_bytes()
    assert RoundParams.from_bytes(bytearray(data)).to_bytes() == data
    for wrong in ("text", None, 5):
        with pytest.raises(ParameterError):
            RoundParams.from_bytes(wrong)
    for encoding in (FixedPoint, "fixed point"):
        with pytest.raises(ParameterError):
            RoundParams.from_bytes(data, encoding=encoding)


@given(ANY, st.data())
def test_check26_altered_bytes_are_rejected_or_other_parameters(params, data):
    """Altered bytes are rejected, or they are exactly the bytes of other parameters."""
    altered = bytearray(params.to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(altered)))
        altered[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        read = RoundParams.from_bytes(bytes(altered))
    except RemoteProtocolError as error:
        assert error.check in ("version", "length", "parameters")
    else:
        assert read.to_bytes() == altered


CHANGES: dict[str, object] = {
    "n_clients": 7,
    "threshold": 5,
    "length": 5,
    "encoding": Integers(8),
    "modulus_bits": 33,
    "max_weight": 3,
    "allow_two_clients": True,
    "count_clipped": True,
    "session": b"other",
    "noise": Noise(64),
    "min_survivors": 6,
}


@given(st.sets(st.sampled_from([*CHANGES]), min_size=1))
@examples(60)
def test_exactly_the_parameters_that_differ_are_named(names: set[str]) -> None:
    own = make_params(6, 4, session=b"round 1")
    other = dataclasses.replace(own, **{name: CHANGES[name] for name in names})
    why = compare(own.to_bytes(), other.to_bytes(), "there")[1]
    expected = {"modulus" if name == "modulus_bits" else name for name in names}
    assert named_in(why) == expected


def named_in(why: str) -> set[str]:
    """The parameters that a text names."""
    return {name for name in Fields._fields if re.search(rf"\b{name}\b", why)}
