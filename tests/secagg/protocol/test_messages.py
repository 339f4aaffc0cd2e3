"""Any bytes are one message of the kind that is due, or RemoteProtocolError; nothing else."""

from __future__ import annotations

import tracemalloc

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from effort import examples
from fuzz.targets import KINDS
from harness import Cohort, make_params
from secagg import RemoteProtocolError
from secagg.protocol import messages
from secagg.protocol.messages import AdvertiseKeys, Roster, ShareKeys, decode

PARAMS = make_params(6, security="active")


def transcript() -> dict[type, bytes]:
    """One real message of each kind."""
    cohort = Cohort(PARAMS)
    seen = []
    for _ in range(5):
        seen.append(next(iter(cohort.step().values())))
        answers = cohort.deliver(cohort.sent[-1])
        seen += list(answers.values())[:1]
    return dict(zip(KINDS, seen, strict=True))


REAL = transcript()


def attempt(data: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct | None:
    try:
        return decode(data, kind, PARAMS, sender=3, phase="share_keys")
    except RemoteProtocolError as error:
        assert (error.sender, error.phase) == (3, "share_keys")
        assert error.check in ("version", "size", "encoding")
        return None


@given(st.sampled_from(KINDS), st.binary(max_size=200))
@example(AdvertiseKeys, b"\x04\xdd\xff\xff\xff\xff")
@example(AdvertiseKeys, b"\x04" + b"\x91" * 199)
@example(ShareKeys, b"\x04\x94\x03\xcf" + b"\xff" * 8)
def test_check26_any_bytes_give_a_value_or_the_one_error(kind: type, data: bytes) -> None:
    attempt(data, kind)


@given(st.sampled_from(KINDS), st.data())
@examples(500)
def test_check26_mutated_messages_give_a_value_or_the_one_error(kind, data):
    message = bytearray(REAL[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(message), 60)))
        cut = data.draw(st.integers(0, 3))
        message[at : at + cut] = data.draw(st.binary(max_size=4))
    value = attempt(bytes(message), kind)
    if value is not None:
        assert type(value) is kind


def test_check26_message_that_is_not_bytes_is_rejected() -> None:
    for data in (None, "text", 5, bytearray(REAL[Roster])):
        assert attempt(data, Roster) is None


def test_check26_decoding_allocates_at_most_the_message_size() -> None:
    """A header that promises 4 GiB costs nothing."""
    promises = [b"\x04\xdd\xff\xff\xff\xff", b"\x04\x94\x03\x00\xc6\xff\xff\xff\xff"]
    tracemalloc.start()
    try:
        for data in promises:
            for kind in KINDS:
                attempt(data, kind)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_ids_not_strictly_ascending_are_none() -> None:
    ids = [0, 7, (1 << 64) - 1]
    assert messages.unpack_ids(messages.pack_ids(ids)) == tuple(ids)
    assert messages.unpack_ids(b"") == ()
    assert messages.unpack_ids(messages.pack_ids([7, 7])) is None
    assert messages.unpack_ids(messages.pack_ids([7, 0])) is None
    assert messages.unpack_ids(bytes(9)) is None


@pytest.mark.parametrize("weights", [None, 50])
def test_check17_sizes_do_not_depend_on_inputs(weights: int | None) -> None:
    """Zero, dense and huge vectors, with any weight, make messages of one size each."""
    sizes = set()
    for fill in (0.0, 1e-9, 3.7, 1e9):
        cohort = Cohort(make_params(5, max_weight=weights, modulus_bits=40))
        cohort.vectors = {u: np.full(4, fill * (u % 2)) for u in cohort.ids}
        cohort.advance(4)
        sizes.add(tuple(frozenset(len(data) for data in sent.values()) for sent in cohort.sent))
    assert len(sizes) == 1


def test_check29_decoder_errors_are_not_shown() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode(b"\x04\x93\x01\xc4\x06secret\x00", AdvertiseKeys, PARAMS, sender=1, phase="x")
    assert caught.value.__context__ is None
    assert "secret" not in str(caught.value)
