"""Signed hashes of shares, by which a wrong share convicts a client (docs/protocol.md, §5.15).

A dealer v hashes both shares of every holder w into a leaf, the leaves of all holders into a
tree, and signs the root: `signed_dealt`. A holder signs the list of all leaves that the server
hands over, each accepted or complained of (`signed_accepted`), and later the hashes of the
revealed shares (`signed_answer`). The tree has the holders of the roster in order: the place of
a holder, counted from 1, is the point X of the shares.

All functions are pure. They take ids and rows of bytes, as arrays, for many pairs at once.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

from secagg.protocol.keys import U8, U64, beside, digests, id_rows

B_SHARE, S_SHARE = 0, 1
"""Kinds of a share: of the self mask's seed b, and of the masking seed s."""
ACCEPTED, COMPLAINT, UNMASKED = 0, 1, 2
"""A holder's word on a leaf; `UNMASKED` is a complaint without a mask with the dealer."""
NO_SHARE = b"\xff" * 40
"""Bytes that a holder keeps and reveals as each share of a dealer after a complaint."""
HASH_BYTES = 32
MAX_DEPTH = 20
"""Depth of the tree over 2^20 holders, the largest cohort."""
LIST_ITEM = np.dtype([("dealer", "<u8"), ("leaf", "u1", HASH_BYTES), ("complaint", "u1")])
"""An entry of `accepted_list`, 41 bytes."""
ANSWER_ITEM = np.dtype([("dealer", "<u8"), ("kind", "u1"), ("hash", "u1", HASH_BYTES)])
"""An entry of `answer_list`, 41 bytes."""
COMPLAINT_ITEM = np.dtype([("dealer", "<u8"), ("kind", "u1")])
"""A complaint in MaskedInput, 9 bytes: the dealer and a word, `COMPLAINT` or `UNMASKED`."""

_NODE = b"secagg/4 node"


def share_hashes(
    kinds: int | U8, session: bytes, dealers: int | U64, holders: int | U64, shares: U8
) -> U8:
    """Return the hash of each share.

    Five limbs have enough entropy, so a hash says nothing about the share.

    Parameters
    ----------
    kinds : int, or uint8 array of shape (m,)
        `B_SHARE` or `S_SHARE`.
    session : bytes
    dealers, holders : int, or uint64 array of shape (m,)
        Ids of the dealer and of the holder.
    shares : uint8 array, shape (m, 40)

    Returns
    -------
    uint8 array, shape (m, 32)
    """
    kind = np.array(kinds, np.uint8).reshape(-1, 1)
    pair = id_rows(dealers), id_rows(holders)
    return digests(beside(b"secagg/4 share", kind, session, *pair, shares))


def leaves(
    session: bytes,
    dealers: int | U64,
    holders: int | U64,
    points: int | U64,
    hashes: U8,
    checks: U8,
    boxes: U8,
) -> U8:
    """Return the leaf of each pair of a dealer and a holder; one of the two can be a single id.

    Parameters
    ----------
    session : bytes
    dealers, holders, points : int, or uint64 array of shape (m,)
        Ids of the dealer and of the holder, and the point X of the holder's shares.
    hashes : uint8 array, shape (m, 64)
        Hash of the share of b, then of s.
    checks : uint8 array, shape (m, 32)
        The dealer's check for the holder; zeros in suite x25519 and for the dealer itself.
    boxes : uint8 array, shape (m, 32)
        SHA-256 of the sealed shares; of no bytes for the dealer itself.

    Returns
    -------
    uint8 array, shape (m, 32)
    """
    point = np.array(points, "<u4").reshape(-1, 1).view(np.uint8)
    columns = id_rows(dealers), id_rows(holders), point, hashes, checks, boxes
    return digests(beside(b"secagg/4 leaf", session, *columns))


def dealt_leaves(
    session: bytes, dealer: int, holders: U64, hashes: U8, checks: U8 | None, sealed: U8
) -> U8:
    """Return the leaves of a dealer and all holders, from the fields of ShareKeys.

    Parameters
    ----------
    session : bytes
    dealer : int
    holders : uint64 array, shape (h,)
        The roster's ids, ascending; the dealer is one of them.
    hashes : uint8 array, shape (h, 64)
        Hashes for each holder, the dealer included.
    checks : uint8 array, shape (h − 1, 32), or None
        Checks for each holder but the dealer; None in suite x25519.
    sealed : uint8 array, shape (h − 1, w)
        Sealed shares for each holder but the dealer.

    Returns
    -------
    uint8 array, shape (h, 32)
    """
    columns = with_own(dealer, holders, checks, sealed)
    points = np.arange(1, holders.size + 1, dtype=np.uint64)
    return leaves(session, dealer, holders, points, hashes, *columns)


def with_own(dealer: int, holders: U64, checks: U8 | None, sealed: U8) -> tuple[U8, U8]:
    """Return the checks, and the SHA-256 of the boxes, with rows for the dealer's own leaf.

    See `dealt_leaves` for the parameters.

    Returns
    -------
    checks, boxes : uint8 arrays, shape (h, 32)
        As `leaves` takes them.
    """
    others = holders != np.uint64(dealer)
    all_checks = np.zeros((holders.size, HASH_BYTES), np.uint8)
    if checks is not None:
        all_checks[others] = checks
    boxes = np.empty((holders.size, HASH_BYTES), np.uint8)
    boxes[~others] = np.frombuffer(hashlib.sha256().digest(), np.uint8)
    boxes[others] = digests(sealed)
    return all_checks, boxes


def depth(count: int) -> int:
    """Return the number of nodes in a path of a tree: ⌈log2 count⌉ for `count` ≥ 1 leaves."""
    return (count - 1).bit_length()


def tree(leaves: U8) -> U8:
    """Return all nodes of the tree over some leaves, level by level, with the root as last row.

    An odd last node of a level is paired with zeros, which have a row, too. The number of rows
    depends on the number of leaves alone.

    Parameters
    ----------
    leaves : uint8 array, shape (h, 32)
        At least one row.

    Returns
    -------
    uint8 array, shape (N, 32)
    """
    levels = []
    level = leaves
    while len(level) > 1:
        if len(level) % 2:
            level = np.concatenate([level, np.zeros((1, HASH_BYTES), np.uint8)])
        levels.append(level)
        level = _parents(level.reshape(-1, 2 * HASH_BYTES))
    return np.concatenate([*levels, level])


def siblings(count: int) -> NDArray[np.intp]:
    """Return the rows of `tree` that are the path of each leaf, from the leaf's own level up.

    ``tree(leaves)[siblings(h)]`` are the paths of all holders of a dealer. From an array of the
    trees of m dealers, ``trees[:, siblings(h)[place]]`` are all paths of a holder.

    Returns
    -------
    intp array, shape (count, depth(count))
    """
    paths = np.empty((count, depth(count)), np.intp)
    places, above = np.arange(count), 0  # the first row of the level
    for at, column in enumerate(paths.T):
        column[:] = above + (places >> at ^ 1)
        width = -(-count // (1 << at))
        above += width + width % 2
    return paths


def roots(leaves: U8, places: int | U64, paths: U8) -> U8:
    """Return the roots that leaves at some places have with their paths.

    Parameters
    ----------
    leaves : uint8 array, shape (m, 32)
    places : int, or uint64 array of shape (m,)
        Place of the leaf in the tree, X − 1, in [0, 2^L).
    paths : uint8 array, shape (m, L, 32)

    Returns
    -------
    uint8 array, shape (m, 32)
    """
    nodes = leaves
    at = np.broadcast_to(np.array(places, np.uint64), len(leaves))[:, np.newaxis]
    for level in range(paths.shape[1]):
        is_right = (at >> np.uint64(level)) & np.uint64(1) == 1
        other = paths[:, level]
        sides = np.where(is_right, other, nodes), np.where(is_right, nodes, other)
        nodes = _parents(np.concatenate(sides, axis=1))
    return nodes


def accepted_list(dealers: U64, leaves: U8, complaints: U8) -> bytes:
    """Return a `LIST_ITEM` for each sender of shares, ids ascending. See `signed_accepted`."""
    items = np.empty(dealers.size, LIST_ITEM)
    items["dealer"], items["leaf"], items["complaint"] = dealers, leaves, complaints
    return items.tobytes()


def answer_list(dealers: U64, kinds: int | U8, hashes: U8) -> bytes:
    """Return an `ANSWER_ITEM` for each share, in the shares' order. See `signed_answer`."""
    items = np.empty(dealers.size, ANSWER_ITEM)
    items["dealer"], items["kind"], items["hash"] = dealers, kinds, hashes
    return items.tobytes()


def signed_dealt(
    session: bytes, dealer: int, commitment: bytes, mask_key: bytes, root: bytes
) -> bytes:
    """Return the bytes that a dealer signs: the published values and the root."""
    return (
        b"secagg/4 dealt" + session + struct.pack("<Q", dealer) + commitment + mask_key + root
    )


def signed_accepted(session: bytes, holder: int, listed: bytes) -> bytes:
    """Return the bytes that a holder signs in round 2; `listed` is an `accepted_list`."""
    return _signed(b"secagg/4 accepted", session, holder, listed)


def signed_answer(session: bytes, holder: int, answers: bytes) -> bytes:
    """Return the bytes that a holder signs in round 4; `answers` is an `answer_list`."""
    return _signed(b"secagg/4 answer", session, holder, answers)


def _signed(label: bytes, session: bytes, signer: int, content: bytes) -> bytes:
    return label + session + struct.pack("<Q", signer) + hashlib.sha256(content).digest()


def _parents(pairs: U8) -> U8:
    """Return the nodes above pairs of nodes, which stand side by side in rows of 64 bytes."""
    return digests(beside(_NODE, pairs))
