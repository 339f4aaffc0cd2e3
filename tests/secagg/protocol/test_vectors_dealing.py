"""Signed hashes of shares against vectors that were made from docs/protocol.md alone."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import independent_dealing as independent
from secagg import Identity, Registry
from secagg.protocol import dealing
from vectors_reader import Vector, b, load

VECTORS = load("dealing")
SESSION = b(VECTORS["session"])


def rows(items: list[Vector], field: str) -> np.ndarray:
    joined = b"".join(b(one[field]) for one in items)
    return np.frombuffer(joined, np.uint8).reshape(len(items), -1)


def ids(items: list[Vector], field: str) -> np.ndarray:
    return np.array([int(one[field]) for one in items], np.uint64)


def is_signed(vector: Vector, content: bytes) -> bool:
    """The content is signed as in the vector, by the same identity."""
    assert content == b(vector["signed"])
    identity = Identity(b(vector["identity_seed"]))
    assert identity.public == b(vector["identity_key"])
    assert identity.sign(content) == b(vector["signature"])
    return Registry({1: identity.public}).verifies(1, content, b(vector["signature"]))


@pytest.mark.parametrize("tree", VECTORS["trees"], ids=lambda one: f"{len(one['leaves'])}")
def test_leaves_paths_and_root_of_a_dealer(tree: Vector) -> None:
    dealer, found = int(tree["dealer"]), tree["leaves"]
    holders, points = ids(found, "holder"), ids(found, "x")
    shares, hashes = rows(found, "share"), rows(found, "hashes")
    for kind in (dealing.B_SHARE, dealing.S_SHARE):
        own = shares[:, 40 * kind : 40 * kind + 40]
        made = dealing.share_hashes(kind, SESSION, dealer, holders, own)
        assert (made == hashes[:, 32 * kind : 32 * kind + 32]).all()
    columns = hashes, rows(found, "check"), rows(found, "box_digest")
    leaves = dealing.leaves(SESSION, dealer, holders, points, *columns)
    assert (leaves == rows(found, "leaf")).all()
    assert points.tolist() == [*range(1, len(found) + 1)]
    nodes = dealing.tree(leaves)
    assert nodes[-1].tobytes() == b(tree["root"])
    paths = nodes[dealing.siblings(len(found))].reshape(len(found), -1)
    assert (paths == rows(found, "path")).all()
    values = b(tree["commitment"]), b(tree["mask_key"]), b(tree["root"])
    assert is_signed(tree, dealing.signed_dealt(SESSION, dealer, *values))


@pytest.mark.parametrize("vector", VECTORS["accepted"])
def test_list_of_a_holder(vector: Vector) -> None:
    found = vector["leaves"]
    said = ids(found, "complaint").astype(np.uint8)
    listed = dealing.accepted_list(ids(found, "dealer"), rows(found, "leaf"), said)
    assert listed == b(vector["list"])
    assert is_signed(vector, dealing.signed_accepted(SESSION, int(vector["holder"]), listed))


@pytest.mark.parametrize("vector", VECTORS["answers"])
def test_answers_of_a_holder(vector: Vector) -> None:
    found = vector["shares"]
    dealers, kinds = ids(found, "dealer"), ids(found, "kind").astype(np.uint8)
    holder, shares = int(vector["holder"]), rows(found, "share")
    hashes = dealing.share_hashes(kinds, SESSION, dealers, holder, shares)
    answers = dealing.answer_list(dealers, kinds, hashes)
    assert answers == b(vector["answers"])
    assert is_signed(vector, dealing.signed_answer(SESSION, holder, answers))


@pytest.mark.parametrize("count", range(1, 34))
def test_two_implementations_make_the_same_tree(count: int) -> None:
    leaves = [hashlib.sha256(bytes([i])).digest() for i in range(count)]
    rows_ = np.frombuffer(b"".join(leaves), np.uint8).reshape(-1, 32)
    nodes, places = dealing.tree(rows_), np.arange(count, dtype=np.uint64)
    paths = nodes[dealing.siblings(count)]
    assert nodes[-1].tobytes() == independent.root(leaves)
    assert [p.tobytes() for p in paths] == [independent.path(leaves, at) for at in range(count)]
    assert {root.tobytes() for root in dealing.roots(rows_, places, paths)} == {
        independent.root(leaves)
    }
