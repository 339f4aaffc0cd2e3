"""Signed hashes of shares in an active round: docs/protocol.md §5.15.

v is the dealer, w the holder, X the point of its share. Kind 0 of a secret is b, kind 1 the
masking seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from independent_primitives import cut, ids, integers, require, sha256, split, u8, u32le, u64le

FORGOTTEN = b"\xff" * 40
"""Stands for each share of a dealer that the holder complained of."""


def share_hash(session: bytes, kind: int, v: int, w: int, share: bytes) -> bytes:
    """The hash of one share of 40 bytes."""
    return sha256(b"secagg/4 share", u8(kind), session, ids([v, w]), share)


def share_hashes(session: bytes, v: int, w: int, share: bytes) -> bytes:
    """Both hashes, of the two shares of 40 bytes."""
    b, s = split(share, 40)
    return share_hash(session, 0, v, w, b) + share_hash(session, 1, v, w, s)


@dataclass(frozen=True)
class Opening:
    """All that a leaf is the hash of, but for dealer and holder."""

    x: int
    hashes: bytes
    check: bytes
    sealed: bytes
    """SHA-256 of the box, or of nothing where the holder is the dealer."""

    def leaf(self, session: bytes, v: int, w: int) -> bytes:
        parts = ids([v, w]), u32le(self.x), self.hashes, self.check, self.sealed
        return sha256(b"secagg/4 leaf", session, *parts)


def levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """The tree from its leaves to its root; an odd last node is paired with zeros."""
    tree = [[*leaves]]
    while len(tree[-1]) > 1:
        if len(tree[-1]) % 2:
            tree[-1].append(bytes(32))
        tree.append([sha256(b"secagg/4 node", pair) for pair in cut(b"".join(tree[-1]), 64)])
    return tree


def depth(holders: int) -> int:
    """L: the nodes of a path."""
    return (holders - 1).bit_length()


def root(leaves: Sequence[bytes]) -> bytes:
    return levels(leaves)[-1][0]


def path(leaves: Sequence[bytes], index: int) -> bytes:
    """The nodes beside the way from a leaf to the root."""
    return b"".join(level[(index >> i) ^ 1] for i, level in enumerate(levels(leaves)[:-1]))


def climb(leaf: bytes, index: int, way: bytes) -> bytes:
    """The root that a leaf has with this path."""
    node = leaf
    for i, beside in enumerate(cut(way, 32)):
        pair = beside + node if index >> i & 1 else node + beside
        node = sha256(b"secagg/4 node", pair)
    return node


def dealt(session: bytes, v: int, commitment: bytes, s: bytes, of: bytes) -> bytes:
    """Return the bytes that a dealer signs."""
    return b"secagg/4 dealt" + session + u64le(v) + commitment + s + of


def accepted(session: bytes, w: int, listed: bytes) -> bytes:
    """Return the bytes that a holder signs for the leaves of its shares."""
    return b"secagg/4 accepted" + session + u64le(w) + sha256(listed)


def answer(session: bytes, w: int, answers: bytes) -> bytes:
    """Return the bytes that a holder signs for its revealed shares."""
    return b"secagg/4 answer" + session + u64le(w) + sha256(answers)


def leaves_list(of: Iterable[tuple[int, bytes, int]]) -> bytes:
    """LIST: of each sender the leaf, and 0 or the complaint."""
    return b"".join(u64le(v) + leaf + u8(complaint) for v, leaf, complaint in of)


def read_list(data: bytes) -> list[tuple[int, bytes, int]]:
    require(len(data) % 41 == 0, "length")
    return [(*integers(row[:8]), row[8:40], row[40]) for row in cut(data, 41)]


def answers_list(session: bytes, w: int, of: Iterable[tuple[int, int, bytes]]) -> bytes:
    """ANSWERS: of each share that w reveals its dealer, its kind and its hash."""
    return b"".join(
        u64le(v) + u8(kind) + share_hash(session, kind, v, w, share) for v, kind, share in of
    )


def read_answers(data: bytes) -> list[tuple[int, int, bytes]]:
    require(len(data) % 41 == 0, "length")
    return [(*integers(row[:8]), row[8], row[9:]) for row in cut(data, 41)]
