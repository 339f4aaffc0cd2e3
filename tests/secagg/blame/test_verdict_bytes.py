"""Verdicts of any bytes: altered in each byte, cut, joined of others' parts, or at random."""

from __future__ import annotations

import struct
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blamed_round import CASES, IDS, POLICY, SignedRound, convicts_nobody, cut, guilty, joined
from fuzz.verdict_targets import named, named_apart
from raised import rejects
from secagg import Registry, blame


@cache
def verdict_of(suite: str, kind: str) -> tuple[bytes, Registry, int]:
    round_ = SignedRound(suite, IDS[:4])
    verdict = guilty(round_, kind)
    return verdict.data, round_.registry, verdict.client


@pytest.mark.parametrize(("suite", "kind"), CASES)
def test_check58_no_byte_can_be_altered(suite: str, kind: str) -> None:
    data, registry, client = verdict_of(suite, kind)
    assert named(data, registry) == client
    for at in range(len(data)):
        altered = bytearray(data)
        altered[at] ^= 1 << at % 8
        assert named(bytes(altered), registry) is None, at
        if at % 5 == 0:
            assert named_apart(bytes(altered), registry) is None, at


@pytest.mark.parametrize(("suite", "kind"), CASES)
def test_no_byte_can_be_missing_or_added(suite: str, kind: str) -> None:
    data, registry, _ = verdict_of(suite, kind)
    for end in [*range(200), *range(200, len(data), 31), len(data) - 1]:
        rejects("length", lambda end=end: blame.check(data[:end], registry, POLICY))
    for more in (b"\0", bytes(4), data):
        rejects("length", lambda more=more: blame.check(data + more, registry, POLICY))


@pytest.mark.parametrize("kind", [0, 6, 255])
def test_unknown_kinds_and_versions(kind: int) -> None:
    round_ = SignedRound()
    data = guilty(round_, "shares").data
    convicts_nobody("kind", data[:1] + bytes([kind]) + data[2:], round_)
    convicts_nobody("version", bytes([kind]) + data[1:], round_)
    convicts_nobody("length", b"", round_)


@pytest.mark.parametrize("length", [0, 1, 160, 161, 2**31, 2**32 - 1])
def test_announced_lengths_take_no_memory(length: int) -> None:
    round_ = SignedRound()
    head, _ = cut(guilty(round_, "shares").data)
    convicts_nobody("length", head + struct.pack("<I", length) + bytes(100), round_)


def test_many_empty_parts_are_not_read() -> None:
    round_ = SignedRound()
    for kind in ("shares", "complaints", "complainer", "answer"):
        head, parts = cut(guilty(round_, kind).data)
        convicts_nobody("length", joined(head, parts) + bytes(4 << 16), round_)
        convicts_nobody("length", head + bytes(4 << 16), round_)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    _, registry, _ = verdict_of("hybrid", "shares")
    assert named(data, registry) is None


@given(data=st.data())
def test_parts_of_any_length_and_order(data: st.DataObject) -> None:
    """Parts of true verdicts of one round, mixed, cut and altered."""
    suite = data.draw(st.sampled_from(["hybrid", "x25519"]))
    kinds = st.sampled_from([kind for one, kind in CASES if one == suite])
    whole, registry, _ = verdict_of(suite, data.draw(kinds))
    head, parts = cut(whole)
    _, others = cut(verdict_of(suite, data.draw(kinds))[0])
    pool = st.sampled_from(parts + others)
    changed = st.one_of(
        pool,
        st.binary(max_size=200),
        st.tuples(pool, st.integers(0, 300)).map(lambda both: both[0][: both[1]]),
        st.tuples(pool, st.binary(max_size=64)).map(b"".join),
    )
    head = bytes([4, data.draw(st.integers(1, 5))]) + head[2:]
    drawn = data.draw(st.lists(changed, max_size=8))
    keep = data.draw(st.integers(0, len(parts)))
    forged = joined(head, parts[:keep] + drawn)
    # such as a part that the judge takes from a second verdict on the same client
    assert named(forged, registry) == named_apart(forged, registry)
