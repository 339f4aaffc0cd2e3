"""The fuzz targets over the kept corpus and inputs drawn here; `make fuzz` goes further."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.targets import KINDS, TARGETS, WORLDS, decoders, seeds, transcripts
from secagg import RemoteProtocolError
from secagg.messages import decode, max_bytes

CORPUS = Path(__file__).parent / "fuzz" / "corpus"


@pytest.mark.parametrize("target", TARGETS)
def test_check26_the_kept_corpus_has_no_other_outcome(target: str) -> None:
    kept = sorted((CORPUS / target).iterdir())
    assert kept
    for data in [*seeds(target), *(path.read_bytes() for path in kept)]:
        TARGETS[target](data)


@given(st.data())
@settings(max_examples=500)
def test_check26_altered_messages_have_no_other_outcome(data: st.DataObject) -> None:
    message = bytearray(data.draw(st.sampled_from(seeds("decoders"))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(message)))
        message[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    decoders(bytes(message))


@given(st.integers(0, len(WORLDS) - 1), st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_check26_altered_transcripts_have_no_other_outcome(world: int, script: bytes) -> None:
    transcripts(bytes([world]) + script)


@pytest.mark.parametrize("world", range(len(WORLDS)))
@pytest.mark.parametrize("kind", KINDS)
def test_check26_memory_is_bounded_by_the_parameters(kind: type, world: int) -> None:
    """Headers that promise 4 GiB of anything, in a message as long as may be and longer."""
    params = WORLDS[world]
    limit = max_bytes(kind, params)
    headers = (b"\xdd", b"\xc6", b"\xdb", b"\xdf", b"\xc9", b"\x95\x01\xc6", b"\x91" * limit)
    tracemalloc.start()
    for header in headers:
        for size in (limit, 100 * limit):
            message = (b"\x01" + header + b"\xff" * size)[:size]
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with pytest.raises(RemoteProtocolError):
                decode(message, kind, params, sender=None, phase="fuzzing")
            assert tracemalloc.get_traced_memory()[1] - before < 4 * limit + (64 << 10)
    tracemalloc.stop()
