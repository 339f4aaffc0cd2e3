"""Round 2 at the client: all that follows from the boxes of the other clients.

A bad box ends a client of the semi-honest variant. In the active variant the client complains
of the sender instead; see `complaints`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secagg.client import complaints
from secagg.client.boxes import Opened, open_boxes
from secagg.client.checks import check_columns, reject
from secagg.client.states import Shared
from secagg.protocol import Identity, Phase, Registry, RoundParams, dealing
from secagg.protocol import pair_masks as pairs
from secagg.protocol.keys import U8, U64, rows_of
from secagg.protocol.messages import SEALED_BYTES, SHARE_BYTES, MaskedInput, Shares


@dataclass(frozen=True, eq=False, repr=False)
class Received:
    """What follows from the boxes of the senders.

    Attributes
    ----------
    message : MaskedInput
        The client's message, without its values.
    ids : uint64 array, shape (m,)
        Clients that the client masks its input with.
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
    word, said = np.zeros(len(senders), np.uint8), (b"", b"", b"")
    if identity is None or registry is None:
        opened = open_boxes(peers, sealed, message.checks, own, me)
        _require(opened, senders)
    else:
        place = int(own.peers.ids.searchsorted(np.uint64(me)))
        holder = complaints.Holder(me, place, session)
        leaves = complaints.check_dealt(message, sealed, peers, holder, registry)
        opened = open_boxes(peers, sealed, message.checks, own, me)
        word = complaints.judge(opened, message.hashes, peers, holder, params)
        listed = dealing.accepted_list(peers.ids, leaves, word)
        accepted = identity.sign(dealing.signed_accepted(session, me, listed))
        packed = complaints.pack_complaints(peers, word)
        said = packed, complaints.pack_disclosed(peers, word), accepted
    is_masked, contributed, deposits = word != dealing.UNMASKED, None, b""
    if own.kem_pair is not None:
        contributed = pairs.Contributed(peers.own_p[is_masked], opened.p[is_masked])
        left = pairs.deposits(opened.q, session, me, peers.ids, peers.own_p)
        left[~is_masked] = 0
        deposits = left.tobytes()
    ids, mask_keys = peers.ids[is_masked], peers.masking[is_masked]
    if contributed is not None:
        mask_keys = pairs.mask_keys(mask_keys, session, me, ids, contributed)
    shares = opened.shares
    shares[word != dealing.ACCEPTED] = np.tile(np.frombuffer(dealing.NO_SHARE, np.uint8), 2)
    self_shares, mask_shares = (
        dict(zip(senders, map(bytes, half), strict=True))
        for half in (shares[:, :SHARE_BYTES], shares[:, SHARE_BYTES:])
    )
    own_share = {me: own.own_share}
    fields = MaskedInput(me, session, deposits, *said, b"")
    return Received(fields, ids, mask_keys, own_share | self_shares, mask_shares)


def _require(opened: Opened, senders: tuple[int, ...]) -> None:
    """Raise for the first sender whose box or share is bad (semi-honest variant)."""
    for at in np.flatnonzero(~opened.is_whole)[:1].tolist():
        why = f"client {senders[at]}'s sealed share is not what the client sealed"
        reject(Phase.MASKED_INPUT, "sealed share", why)
    for at in np.flatnonzero(~opened.is_field)[:1].tolist():
        why = f"client {senders[at]}'s share is not a field element"
        reject(Phase.MASKED_INPUT, "share", why)
