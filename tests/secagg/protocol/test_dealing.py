"""Hashes, leaves and trees of dealt shares against plain definitions."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg import Identity, Registry
from secagg.protocol import dealing, keys

SESSION = bytes(range(32))
ZERO = bytes(32)
RNG = np.random.default_rng(5)


def u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def rows(count: int, width: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return RNG.integers(0, 256, (count, width), np.uint8)


def plain_root(leaves: list[bytes]) -> bytes:
    """The root as the document defines it, a level at a time."""
    while len(leaves) > 1:
        leaves = leaves + [ZERO] * (len(leaves) % 2)
        leaves = [
            sha256(b"secagg/4 node" + leaves[i] + leaves[i + 1]).digest()
            for i in range(0, len(leaves), 2)
        ]
    return leaves[0]


def plain_leaf(dealer: int, holder: int, point: int, *rest: bytes) -> bytes:
    head = b"secagg/4 leaf" + SESSION + u64(dealer) + u64(holder) + point.to_bytes(4, "little")
    return sha256(head + b"".join(rest)).digest()


def test_hash_of_a_share_has_kind_session_and_both_ids() -> None:
    shares = rows(3, 40)
    holders = np.array([1, 2, 2**64 - 1], np.uint64)
    kinds = np.array([1, 0, 1], np.uint8)
    assert [bytes(one) for one in dealing.share_hashes(kinds, SESSION, 7, holders, shares)] == [
        sha256(
            b"secagg/4 share" + bytes([kind]) + SESSION + u64(7) + u64(holder) + bytes(share)
        ).digest()
        for kind, holder, share in zip(kinds, holders.tolist(), shares, strict=True)
    ]
    by_dealer = dealing.share_hashes(dealing.S_SHARE, SESSION, holders, 7, shares)
    assert (
        bytes(by_dealer[2])
        == sha256(
            b"secagg/4 share\1" + SESSION + u64(2**64 - 1) + u64(7) + bytes(shares[2])
        ).digest()
    )


@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize("own", [0, 2, 4])
def test_leaves_of_a_dealer_are_as_defined(own: int, hybrid: bool) -> None:
    ids = [3, 4, 9, 2**40, 2**64 - 1]
    hashes, sealed = rows(5, 64), rows(4, 96)
    checks = rows(4, 32) if hybrid else None
    found = dealing.dealt_leaves(
        SESSION, ids[own], np.array(ids, np.uint64), hashes, checks, sealed
    )
    rest = iter(range(4))
    for place, holder in enumerate(ids):
        check, box = ZERO, b""
        if place != own:
            at = next(rest)
            check, box = ZERO if checks is None else bytes(checks[at]), bytes(sealed[at])
        expected = plain_leaf(
            ids[own], holder, place + 1, bytes(hashes[place]), check, sha256(box).digest()
        )
        assert bytes(found[place]) == expected


def test_leaves_of_many_dealers_for_one_holder() -> None:
    dealers, points = np.array([3, 9], np.uint64), np.array([2, 70_000], np.uint64)
    hashes, checks, boxes = rows(2, 64), rows(2, 32), rows(2, 32)
    found = dealing.leaves(SESSION, dealers, 5, points, hashes, checks, boxes)
    for at in range(2):
        parts = bytes(hashes[at]), bytes(checks[at]), bytes(boxes[at])
        assert bytes(found[at]) == plain_leaf(int(dealers[at]), 5, int(points[at]), *parts)


@pytest.mark.parametrize("count", [*range(1, 18), 61, 64, 65, 100])
def test_trees_and_paths_give_the_defined_root(count: int) -> None:
    leaves = rows(count, 32)
    nodes = dealing.tree(leaves)
    root = plain_root([bytes(leaf) for leaf in leaves])
    assert bytes(nodes[-1]) == root
    depth = dealing.depth(count)
    assert 2**depth >= count > 2 ** (depth - 1) or count == 1
    paths = nodes[dealing.siblings(count)]
    assert paths.shape == (count, depth, 32)
    places = np.arange(count, dtype=np.uint64)
    assert {bytes(one) for one in dealing.roots(leaves, places, paths)} == {root}
    for place in range(count):
        alone = dealing.roots(leaves[[place]], place, paths[[place]])
        assert bytes(alone[0]) == root
        other = dealing.roots(leaves[[place]], place ^ 1, paths[[place]])
        assert bytes(other[0]) != root or not depth


def test_deepest_tree_is_of_the_largest_cohort() -> None:
    assert dealing.depth(1 << 20) == dealing.MAX_DEPTH


def test_paths_of_all_dealers_to_one_holder() -> None:
    leaves = [rows(11, 32) for _ in range(3)]
    trees = np.array([dealing.tree(one) for one in leaves])
    theirs = np.array([one[6] for one in leaves])
    paths = trees[:, dealing.siblings(11)[6]]
    assert (dealing.roots(theirs, 6, paths) == trees[:, -1]).all()


@given(st.lists(st.binary(min_size=1, max_size=5).map(lambda b: b.ljust(5)), max_size=5))
def test_digests_are_of_each_row(items: list[bytes]) -> None:
    array = np.frombuffer(b"".join(items), np.uint8).reshape(-1, 5)
    assert [bytes(one) for one in keys.digests(array)] == [
        sha256(one).digest() for one in items
    ]


def test_lists_are_packed_and_signed_through_their_hash() -> None:
    ids, leaves = np.array([2, 5], np.uint64), rows(2, 32)
    complaints = np.array([dealing.ACCEPTED, dealing.UNMASKED], np.uint8)
    listed = dealing.accepted_list(ids, leaves, complaints)
    assert listed == u64(2) + bytes(leaves[0]) + b"\0" + u64(5) + bytes(leaves[1]) + b"\2"
    answers = dealing.answer_list(ids, dealing.S_SHARE, leaves)
    assert answers == u64(2) + b"\1" + bytes(leaves[0]) + u64(5) + b"\1" + bytes(leaves[1])
    signed = {
        b"secagg/4 accepted": dealing.signed_accepted(SESSION, 9, listed),
        b"secagg/4 answer": dealing.signed_answer(SESSION, 9, listed),
    }
    for label, content in signed.items():
        assert content == label + SESSION + u64(9) + sha256(listed).digest()


def test_dealt_has_all_that_a_dealer_publishes() -> None:
    content = dealing.signed_dealt(SESSION, 9, b"c" * 32, b"s" * 32, b"r" * 32)
    assert content == b"secagg/4 dealt" + SESSION + u64(9) + b"c" * 32 + b"s" * 32 + b"r" * 32
    identity = Identity(bytes(32))
    assert Registry({9: identity.public}).verifies(9, content, identity.sign(content))
