"""Round 2 at the client: all that follows from the boxes of the other clients.

A bad box ends a client of the semi-honest variant. In the active variant the client complains
of the sender instead; see `complaints`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from secagg.client import complaints
from secagg.client.boxes import Opened, open_boxes
from secagg.client.checks import check_columns, reject
from secagg.client.states import Shared
from secagg.protocol import Identity, Phase, Registry, RoundParams, dealing
from secagg.protocol import pair_masks as pairs
from secagg.protocol.keys import U8, U64, rows_of
from secagg.protocol.messages import SEALED_BYTES, SHARE_BYTES, MaskedInput, Shares

_NO_SHARES = np.frombuffer(2 * dealing.NO_SHARE, np.uint8)
"""Both shares of a dealer that the client complained of."""


@dataclass(frozen=True, eq=False, repr=False)
class Received:
    """Result of round 2 at the client, but for the masked input.

    Attributes
    ----------
    message : MaskedInput
        The client's message, without the values.
    ids : uint64 array, shape (m,)
        Clients with a mask in the input.
    mask_keys : uint8 array, shape (m, 16)
        Keys of these masks.
    self_shares, mask_shares : dict of id to bytes
        Shares of b, this client's own share included, and shares of s, by the owner's id.
    """

    message: MaskedInput
    ids: U64
    mask_keys: U8
    self_shares: dict[int, bytes]
    mask_shares: dict[int, bytes]


class _Said(NamedTuple):
    """The client's word on each box, a value of `dealing`, and the fields that say so."""

    word: U8
    complaints: bytes = b""
    disclosed: bytes = b""
    accepted: bytes = b""


def receive(
    senders: tuple[int, ...],
    message: Shares,
    own: Shared,
    me: int,
    params: RoundParams,
    identity: Identity | None,
    registry: Registry | None,
) -> Received:
    """Open the boxes that the other clients of U2 sealed for this client, `me`.

    Parameters
    ----------
    senders : tuple of int
        Ascending ids of the senders, which are peers of the client.
    message : Shares
    own, me, params
        State, id and parameters of the client.
    identity, registry
        The client's own; None in the semi-honest variant.

    Raises
    ------
    RemoteProtocolError
        "length": a column has not one item for each sender. In the semi-honest variant "sealed
        share" or "share": a box or a share is bad. In the active variant "dealt" or "dealer";
        see `complaints`.
    """
    session = own.session
    check_columns(message, len(senders), len(own.peers.ids) + 1, params)
    peers = own.peers.of(np.array(senders, np.uint64))
    sealed = rows_of([message.sealed], SEALED_BYTES[params.suite])
    if identity is None or registry is None:
        opened = open_boxes(peers, sealed, message.checks, own, me)
        _require(opened, senders)
        said = _Said(np.zeros(len(senders), np.uint8))
    else:
        place = int(own.peers.ids.searchsorted(np.uint64(me)))
        holder = complaints.Holder(me, place, session)
        leaves = complaints.check_dealt(message, sealed, peers, holder, registry)
        opened = open_boxes(peers, sealed, message.checks, own, me)
        word = complaints.judge(opened, message.hashes, peers, holder, params)
        listed = dealing.accepted_list(peers.ids, leaves, word)
        said = _Said(
            word,
            complaints.pack_complaints(peers, word),
            complaints.pack_disclosed(peers, word),
            identity.sign(dealing.signed_accepted(session, me, listed)),
        )
    is_masked = said.word != dealing.UNMASKED
    ids, mask_keys, deposits = peers.ids[is_masked], peers.masking[is_masked], b""
    if own.kem_pair is not None:
        contributed = pairs.Contributed(peers.own_p[is_masked], opened.p[is_masked])
        mask_keys = pairs.mask_keys(mask_keys, session, me, ids, contributed)
        left = pairs.deposits(opened.q, session, me, peers.ids, peers.own_p)
        left[~is_masked] = 0
        deposits = left.tobytes()
    shares = opened.shares
    shares[said.word != dealing.ACCEPTED] = _NO_SHARES
    self_shares, mask_shares = (
        dict(zip(senders, map(bytes, half), strict=True))
        for half in (shares[:, :SHARE_BYTES], shares[:, SHARE_BYTES:])
    )
    return Received(
        MaskedInput(me, session, deposits, said.complaints, said.disclosed, said.accepted, b""),
        ids,
        mask_keys,
        {me: own.own_share} | self_shares,
        mask_shares,
    )


def _require(opened: Opened, senders: tuple[int, ...]) -> None:
    """Raise for the first sender whose box or share is bad (semi-honest variant)."""
    for at in np.flatnonzero(~opened.is_whole)[:1].tolist():
        why = f"client {senders[at]}'s sealed share is not what the client sealed"
        reject(Phase.MASKED_INPUT, "sealed share", why)
    for at in np.flatnonzero(~opened.is_field)[:1].tolist():
        why = f"client {senders[at]}'s share is not a field element"
        reject(Phase.MASKED_INPUT, "share", why)
