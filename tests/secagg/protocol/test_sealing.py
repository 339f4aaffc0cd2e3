"""Boxes of shares: every input changes their key, and a box opens under its own key alone."""

from __future__ import annotations

import numpy as np
import pytest

from secagg.protocol import sealing
from secagg.protocol.keys import U8, rows_of

SESSION = bytes(range(32))
PEERS = np.array([9, 200, 1 << 63], np.uint64)
ME = 50


def rows(seed: int, count: int, width: int = 32) -> U8:
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


def with_other(array: U8, at: tuple[int, int]) -> U8:
    """A copy with another byte."""
    changed = array.copy()
    changed[at] ^= 1
    return changed


def bases_of(changes: dict[str, object], *, hybrid: bool) -> tuple[U8, U8]:
    given: dict[str, object] = {
        "shared": rows(1, 3, 64),
        "session": SESSION,
        "mine": (ME, bytes(rows(2, 1, 64))),
        "ids": PEERS,
        "publics": rows(3, 3, 64),
        "kems": (rows(4, 3), rows(5, 1)) if hybrid else None,
    }
    return sealing.base_keys(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("hybrid", [True, False])
def test_check08_every_input_changes_the_base_keys_it_should(hybrid: bool) -> None:
    first = bases_of({}, hybrid=hybrid)
    assert len({bytes(key) for both in first for key in both}) == 6, "a key for each direction"
    shared, publics, own = rows(1, 3, 64), rows(3, 3, 64), bytes(rows(2, 1, 64))
    of_one: list[dict[str, object]] = [
        {"shared": with_other(shared, (1, 0))},
        {"shared": with_other(shared, (1, 63))},
        {"publics": with_other(publics, (1, 0))},
        {"publics": with_other(publics, (1, 63))},
        {"ids": np.array([9, 201, 1 << 63], np.uint64)},
    ]
    of_all: list[dict[str, object]] = [
        {"session": bytes(32)},
        {"mine": (ME + 1, own)},
        {"mine": (ME, own[:-1] + b"\0")},
    ]
    for change in [*of_one, *of_all]:
        for before, after in zip(first, bases_of(change, hybrid=hybrid), strict=True):
            differ = (before != after).any(axis=1).tolist()
            assert differ == ([True] * 3 if change in of_all else [False, True, False])
    if hybrid:
        theirs, ours = rows(4, 3), rows(5, 1)
        peer = bases_of({"kems": (with_other(theirs, (1, 0)), ours)}, hybrid=True)
        mine = bases_of({"kems": (theirs, with_other(ours, (0, 0)))}, hybrid=True)
        # each box is under the key of its receiver
        assert [(a != b).any(axis=1).tolist() for a, b in zip(first, peer, strict=True)] == [
            [False, True, False],
            [False] * 3,
        ]
        assert [(a != b).any() for a, b in zip(first, mine, strict=True)] == [False, True]


def test_check08_both_ends_have_the_same_base_keys() -> None:
    """With equal secrets, of the lower and of the higher id."""
    keys, kems = rows(3, 2, 64), rows(4, 2)
    secret, ids = rows(1, 1, 64), [9, 50]
    ends = [
        sealing.base_keys(
            secret,
            SESSION,
            (ids[i], bytes(keys[i])),
            np.array([ids[1 - i]], np.uint64),
            keys[1 - i : 2 - i],
            (kems[1 - i : 2 - i], kems[i : i + 1]),
        )
        for i in range(2)
    ]
    (sending, opening), (theirs, ours) = ends
    assert (sending == ours).all()
    assert (opening == theirs).all()
    assert (sending != opening).any()


def test_check08_every_input_changes_the_box_keys() -> None:
    bases, secrets, digests = rows(1, 3), rows(2, 3), rows(3, 3)
    made = [
        sealing.box_keys(bases, SESSION, ME, PEERS),
        sealing.box_keys(bases, SESSION, PEERS, ME),
        sealing.box_keys(bases, bytes(32), ME, PEERS),
        sealing.box_keys(bases, SESSION, ME + 1, PEERS),
        sealing.box_keys(rows(9, 3), SESSION, ME, PEERS),
        sealing.box_keys(bases, SESSION, ME, PEERS, (secrets, digests)),
        sealing.box_keys(rows(9, 3), SESSION, ME, PEERS, (secrets, digests)),
        sealing.box_keys(bases, bytes(32), ME, PEERS, (secrets, digests)),
        sealing.box_keys(bases, SESSION, PEERS, ME, (secrets, digests)),
        sealing.box_keys(bases, SESSION, ME, PEERS, (rows(9, 3), digests)),
        sealing.box_keys(bases, SESSION, ME, PEERS, (secrets, rows(9, 3))),
    ]
    keys = {bytes(key) for each in made for key in each}
    assert len(keys) == 3 * len(made)
    assert not keys & set(map(bytes, bases))


@pytest.mark.parametrize("bad", [[], [0], [2], [4], [1, 2], [0, 2, 4], [0, 1, 2, 3, 4]])
def test_check09_each_box_that_is_not_authentic_is_told_apart(bad: list[int]) -> None:
    """Also behind another one; and nothing of a bad box is in the contents."""
    peers = np.arange(1, 6, dtype=np.uint64)
    keys, contents = rows(1, 5), rows(2, 5, 144)
    sealed = np.concatenate(
        [
            sealing.seal(keys[i : i + 1], SESSION, i + 1, np.array([ME]), contents[i : i + 1])
            for i in range(5)
        ]
    )
    assert sealed.shape == (5, 160)
    for i in bad:
        sealed[i, -1 - i] ^= 1
    opened, authentic = sealing.open_sealed(keys, SESSION, peers, ME, sealed)
    assert np.flatnonzero(~authentic).tolist() == bad
    assert (opened[authentic] == contents[authentic]).all()
    assert not opened[~authentic].any()


def test_check09_boxes_are_bound_to_session_and_both_ids() -> None:
    key, peer = rows(1, 1), np.array([9], np.uint64)
    box = sealing.seal(key, SESSION, ME, peer, rows(2, 1, 80))
    for session, sender, receiver, opens in (
        (SESSION, ME, 9, True),
        (bytes(32), ME, 9, False),
        (SESSION, ME + 1, 9, False),
        (SESSION, ME, 8, False),
    ):
        ids = np.array([sender], np.uint64)
        _, authentic = sealing.open_sealed(key, session, ids, receiver, box)
        assert authentic.tolist() == [opens]
    assert rows_of([bytes(box)], 96).shape == (1, 96)
