"""Boxes of shares from the other clients, opened in round 2."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg.client.states import Peers, Shared
from secagg.protocol import kem, sealing
from secagg.protocol import pair_masks as pairs
from secagg.protocol.keys import KEY_BYTES, U8, digests, rows_of
from secagg.protocol.messages import CHECK_BYTES, SHARE_BYTES
from secagg.shamir.field import M61


class Opened(NamedTuple):
    """Contents of the boxes of m senders, a row each.

    Attributes
    ----------
    shares : uint8 array, shape (m, 80)
        Share of b, then of s.
    p, q : uint8 arrays, shape (m, 32)
        Contributions of the senders; of shape (m, 0) in suite x25519.
    is_whole : bool array, shape (m,)
        The box is authentic, and in suite hybrid p and q fit the sender's check.
    is_field : bool array, shape (m,)
        All integers of both shares are field elements.
    """

    shares: U8
    p: U8
    q: U8
    is_whole: NDArray[np.bool_]
    is_field: NDArray[np.bool_]


def open_boxes(peers: Peers, sealed: U8, checks: bytes, own: Shared, me: int) -> Opened:
    """Open the boxes of some senders.

    Parameters
    ----------
    peers : Peers
        The senders' part of ``own.peers``.
    sealed : uint8 array, shape (m, w)
        Box of each sender.
    checks : bytes
        Checks of the senders for this client, 32 bytes each; empty in suite x25519.
    own : Shared
    me : int
        Id of the client.
    """
    ids, session, keys = peers.ids, own.session, peers.opening
    if own.kem_pair is not None:
        ciphertexts = sealed[:, : kem.CIPHERTEXT_BYTES]
        secrets = rows_of(map(own.kem_pair.decapsulate, map(bytes, ciphertexts)))
        encapsulated = secrets, digests(ciphertexts)
        keys = sealing.box_keys(keys, session, ids, me, encapsulated)
        sealed = np.ascontiguousarray(sealed[:, kem.CIPHERTEXT_BYTES :])
    contents, is_whole = sealing.open_sealed(keys, session, ids, me, sealed)
    shares, both = contents[:, : 2 * SHARE_BYTES], contents[:, 2 * SHARE_BYTES :]
    if own.kem_pair is not None:
        promised = rows_of([checks], CHECK_BYTES)
        is_whole &= (pairs.checks(session, ids, me, both) == promised).all(axis=1)
    # a peer can seal any bytes, so an authentic share may still be outside the field
    is_field = np.ascontiguousarray(shares).view("<u8").max(axis=1) < M61
    return Opened(shares, both[:, :KEY_BYTES], both[:, KEY_BYTES:], is_whole, is_field)
