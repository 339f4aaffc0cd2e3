"""Signed dealings that a client is given in round 2, and complaints of them (active variant).

The client first verifies that each sender has signed for the shares that the server sent. So a
box that the server altered ends the client, and is never the dealer's fault. Then the client
opens the boxes. A bad box is answered by a complaint, which is signed, too: a client that
accepted a share must reveal that share (docs/protocol.md, §5.15).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from secagg.client.boxes import Opened
from secagg.client.checks import reject
from secagg.client.sharing import hash_shares
from secagg.client.states import Peers
from secagg.protocol import Phase, Registry, RoundParams, dealing
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.protocol.keys import U8, digests, rows_of
from secagg.protocol.messages import CHECK_BYTES, SHARE_BYTES, Shares

_PHASE = Phase.MASKED_INPUT


class Holder(NamedTuple):
    """The client as a holder of shares.

    Attributes
    ----------
    me : int
    place : int
        Place of the client in the roster, counted from 0.
    session : bytes
    """

    me: int
    place: int
    session: bytes


def check_dealt(
    message: Shares, sealed: U8, peers: Peers, holder: Holder, registry: Registry
) -> U8:
    """Validate what the senders signed for this client, and return the senders' leaves.

    Parameters
    ----------
    message : Shares
        Its columns have one item for each sender.
    sealed : uint8 array, shape (m, w)
        ``message.sealed``, a row for each sender.
    peers : Peers
        The senders.
    holder : Holder
    registry : Registry

    Returns
    -------
    uint8 array, shape (m, 32)

    Raises
    ------
    RemoteProtocolError
        "dealt": a sender has not signed this box, these hashes, this check and this commitment
        for the client's own place.
    """
    me, place, session = holder
    ids, count = peers.ids, len(sealed)
    points = np.frombuffer(message.points, "<u4")
    for v in ids[points != place + 1][:1].tolist():
        reject(_PHASE, "dealt", f"client {v}'s share is for another point than {place + 1}")
    hashes = rows_of([message.hashes], 2 * dealing.HASH_BYTES)
    checks = (
        rows_of([message.checks], CHECK_BYTES)
        if message.checks
        else np.zeros((count, CHECK_BYTES), np.uint8)
    )
    boxes = digests(sealed)
    leaves = dealing.leaves(session, ids, me, place + 1, hashes, checks, boxes)
    paths = np.frombuffer(message.paths, np.uint8).reshape(count, -1, dealing.HASH_BYTES)
    columns = (
        rows_of([message.commitments]),
        peers.mask_publics,
        dealing.roots(leaves, place, paths),
        rows_of([message.dealt], SIGNATURE_BYTES),
    )
    for v, *row in zip(ids.tolist(), *columns, strict=True):
        commitment, mask_public, root, signature = map(bytes, row)
        signed = dealing.signed_dealt(session, v, commitment, mask_public, root)
        if not registry.verifies(v, signed, signature):
            reject(_PHASE, "dealt", f"client {v} did not sign for the shares that came from it")
    return leaves


def judge(
    opened: Opened, hashes: bytes, peers: Peers, holder: Holder, params: RoundParams
) -> U8:
    """Return the client's word on each sender's box: accepted, or a kind of complaint.

    `dealing` has the values. A dealer whose contributions are missing is left out of
    the mask: `UNMASKED`. In suite x25519 the mask needs none, so each complaint is a
    `COMPLAINT`.

    Parameters
    ----------
    opened : Opened
    hashes : bytes
        Hashes that the senders signed, 64 bytes each.
    peers, holder
        As in `check_dealt`.
    params : RoundParams

    Returns
    -------
    uint8 array, shape (m,)

    Raises
    ------
    RemoteProtocolError
        "dealer": there are complaints of more dealers than can be at fault.
    """
    hashed = hash_shares(holder.session, peers.ids, holder.me, opened.shares)
    fits = (hashed == rows_of([hashes], 2 * dealing.HASH_BYTES)).all(axis=1)
    accepted = opened.is_whole & opened.is_field & fits
    word = np.where(accepted, dealing.ACCEPTED, dealing.COMPLAINT).astype(np.uint8)
    if params.suite == "hybrid":
        word[~opened.is_whole] = dealing.UNMASKED
    bad, most = np.count_nonzero(word), params.most_liars
    if bad > most:
        why = f"the shares of {bad} clients are bad, and at most {most} clients may collude"
        reject(_PHASE, "dealer", why)
    return word


def pack_complaints(peers: Peers, word: U8) -> bytes:
    """Return the field `complaints` of MaskedInput: dealer and kind of each complaint."""
    bad = word != dealing.ACCEPTED
    items = np.empty(np.count_nonzero(bad), dealing.COMPLAINT_ITEM)
    items["dealer"], items["kind"] = peers.ids[bad], word[bad]
    return items.tobytes()


def pack_disclosed(peers: Peers, word: U8) -> bytes:
    """Return the field `disclosed`: A, p and q of the client for each dealer left out.

    The server removes the dealer's mask by these secrets. They are of this pair alone.
    """
    out = word == dealing.UNMASKED
    return np.concatenate(
        [rows[out] for rows in (peers.masking, peers.own_p, peers.own_q)], axis=1
    ).tobytes()


def signed_answer(
    session: bytes,
    me: int,
    survivors: tuple[int, ...],
    dropped: tuple[int, ...],
    shares: bytes,
) -> bytes:
    """Return the bytes that client `me` signs over the shares revealed in round 4.

    `shares` are the shares of b of the survivors, then of s of the dropped-out clients.
    """
    kinds = [dealing.B_SHARE] * len(survivors) + [dealing.S_SHARE] * len(dropped)
    dealers, each = np.array(survivors + dropped, np.uint64), np.array(kinds, np.uint8)
    hashes = dealing.share_hashes(each, session, dealers, me, rows_of([shares], SHARE_BYTES))
    return dealing.signed_answer(session, me, dealing.answer_list(dealers, each, hashes))
