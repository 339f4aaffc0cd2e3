"""The fuzz targets over the kept corpus and inputs drawn here; `make fuzz` goes further."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blamed_round import POLICY, cut, joined
from effort import examples
from fuzz.paillier_targets import PACKINGS, paillier
from fuzz.targets import KINDS, TARGETS, WORLDS, seeds, transcripts
from fuzz.verdict_targets import registry
from paillier_keys import keypair
from secagg import ParameterError, RemoteProtocolError, blame
from secagg.paillier import PrivateKey, PublicKey
from secagg.protocol.messages import decode, max_bytes

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"


@pytest.mark.parametrize(
    "target",
    [pytest.param(t, marks=pytest.mark.large) if t == "transcripts" else t for t in TARGETS],
)
def test_check26_corpus_has_no_other_outcome(target: str) -> None:
    kept = sorted((CORPUS / target).iterdir())
    assert kept
    for data in [*seeds(target), *(path.read_bytes() for path in kept)]:
        TARGETS[target](data)


ALTERED = ["decoders", "parameters", "paillier", "threshold", "oneshot", "states", "verdicts"]


@pytest.mark.parametrize("target", ALTERED)
@given(data=st.data())
@examples(400)
def test_check26_altered_bytes_have_no_other_outcome(target: str, data: st.DataObject) -> None:
    altered = bytearray(data.draw(st.sampled_from(seeds(target))))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(altered)))
        altered[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    TARGETS[target](bytes(altered))


@given(st.integers(0, 255), st.binary(max_size=300))
@examples(300)
def test_check26_any_paillier_bytes_have_no_other_outcome(first: int, data: bytes) -> None:
    paillier(bytes([first]) + data)


@given(st.integers(0, len(WORLDS) - 1), st.binary(max_size=300))
@examples(60)
def test_check26_altered_transcripts_have_no_other_outcome(world: int, script: bytes) -> None:
    transcripts(bytes([world]) + script)


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Check that a block takes at most these bytes of memory, and 64 KiB."""
    tracemalloc.start()
    yield
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < size + (64 << 10)


@pytest.mark.parametrize("world", range(len(WORLDS)))
@pytest.mark.parametrize("kind", KINDS)
def test_check26_memory_is_bounded_by_the_parameters(kind: type, world: int) -> None:
    """Headers that promise 4 GiB of anything, in a message as long as may be and longer."""
    params = WORLDS[world]
    limit = max_bytes(kind, params)
    headers = (b"\xdd", b"\xc6", b"\xdb", b"\xdf", b"\xc9", b"\x95\x01\xc6", b"\x91" * limit)
    for header in headers:
        for size in (limit, 100 * limit):
            message = (b"\x02" + header + b"\xff" * size)[:size]
            with at_most(4 * limit), pytest.raises(RemoteProtocolError):
                decode(message, kind, params, sender=None, phase="fuzzing")


def test_check26_one_shot_memory_is_bounded_by_the_input() -> None:
    """Counts of 2^64 - 1 before too few bytes, or before many."""
    starts = [seed[:1] for seed in seeds("oneshot")]
    TARGETS["oneshot"](starts[0])  # so that the parties are there
    for start in starts:
        for size in (64, 20_000):
            data = start + b"\xff" * size
            with at_most(4 * size):
                TARGETS["oneshot"](data)


def test_check26_verdict_memory_is_bounded_by_the_input() -> None:
    """Lengths of 4 GiB, one part of all bytes, and parts without end."""
    for seed in seeds("verdicts"):
        TARGETS["verdicts"](seed)  # so that the registry is there
        head, parts = cut(seed[1:])
        for size in (1 << 10, 1 << 20):
            for rest in (b"\xff" * size, size.to_bytes(4, "little") + bytes(size), bytes(size)):
                for data in (head + rest, joined(head, parts[:1]) + rest, seed[1:] + rest):
                    with at_most(2 * len(data)), pytest.raises(RemoteProtocolError):
                        blame.check(data, registry("hybrid"), POLICY)


def test_check26_paillier_memory_is_bounded_by_the_input() -> None:
    """Headers of the longest key and the most summands, before too few bytes and too many."""
    key, packing = keypair(), PACKINGS[0]
    public = key.public_key
    vector = public.encrypt_vector(np.zeros(packing.length), packing).to_bytes()
    longest = b"\1" + b"\xff" * 4
    headers = (
        b"",
        vector[:69],
        vector[:69] + b"\xff" * 16,
        b"SAPK" + longest,
        b"SASK" + longest,
    )
    for header in headers:
        for size in (len(header), len(vector), 100 * len(vector)):
            data = header.ljust(size, b"\xff")[:size]
            sealed = data[:-32] + hashlib.sha256(data[:-32]).digest()
            for decode_it, error in (
                (lambda d=data: public.load_vector(d, packing), RemoteProtocolError),
                (lambda d=data: public.load(d, 1 << 40), RemoteProtocolError),
                (lambda d=data: PublicKey.from_bytes(d), RemoteProtocolError),
                (lambda d=sealed: PrivateKey.from_bytes(d), ParameterError),
            ):
                with at_most(2 * size), pytest.raises(error):
                    decode_it()
