"""Round 1 at the client: share both secrets, and seal the shares for their holders.

In the active variant the client signs hashes of all shares, too. So shares that do not give the
published secrets convict the client.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from secagg import shamir
from secagg.client.checks import reject
from secagg.client.states import Advertised, Peers, Shared
from secagg.encoding import Entropy
from secagg.protocol import Identity, Phase, RoundParams, dealing, kem, keys, sealing
from secagg.protocol import pair_masks as pairs
from secagg.protocol.keys import U8, U64, PublicKeys, rows_of
from secagg.protocol.messages import SHARE_BYTES, ShareKeys, pack_ids

Encapsulate = Callable[[int, bytes], tuple[bytes, bytes]]


class Sources(NamedTuple):
    """Sources of a client's new secrets.

    Attributes
    ----------
    hedged : callable
        Source of random bytes for a purpose: ``Client._hedged``.
    encapsulate : callable
        Function of a peer's id and encapsulation key: ``Client._encapsulate``.
    """

    hedged: Callable[..., Entropy]
    encapsulate: Encapsulate


class _Contents(NamedTuple):
    """Contents of the boxes for each peer, and the key of each box; uint8 arrays.

    Attributes
    ----------
    keys : array, shape (m, 32)
    ciphertexts : array, shape (m, 1088)
        Ciphertexts of ML-KEM; of shape (m, 0) in suite x25519.
    contributed : array, shape (m, 64)
        p and q; of shape (m, 0) in suite x25519.
    checks : bytes
        Checks of the contributions, 32 bytes for each peer; empty in suite x25519.
    """

    keys: U8
    ciphertexts: U8
    contributed: U8
    checks: bytes


def seal_for(
    holders: Mapping[int, PublicKeys],
    own: Advertised,
    me: int,
    session: bytes,
    params: RoundParams,
    due: Phase,
    identity: Identity | None,
    sources: Sources,
) -> tuple[Shared, ShareKeys]:
    """Share b_u and the seed of s_u among the holders (Bonawitz 2017, round 1).

    Parameters
    ----------
    holders : mapping of int to PublicKeys
        Public keys by ascending id, client `me` included. Holder i gets the share at the point
        i + 1.
    own, me, session, params
        State, id, session and parameters of the client.
    due : Phase
        Phase of the new state.
    identity : Identity or None
        Signs the dealing in the active variant.
    sources : Sources

    Returns
    -------
    Shared, ShareKeys
        New state of the client, and the client's message.
    """
    seed, shares = _split(holders, own, session, params.threshold, sources.hedged)
    others = np.array([v != me for v in holders])
    peers = {v: publics for v, publics in holders.items() if v != me}
    ids = np.fromiter(peers, np.uint64, len(peers))
    mine, kept_keys = (me, holders[me]), params.active
    kept, contents = _agree(peers, ids, own, mine, session, sources.encapsulate, kept_keys)
    rows = np.concatenate([shares[others], contents.contributed], axis=1)
    encrypted = sealing.seal(contents.keys, session, me, ids, rows)
    sealed = np.concatenate([contents.ciphertexts, encrypted], axis=1)
    commitment = keys.commitment(seed, session, me)
    hashes = dealt = b""
    if identity is not None:
        all_ids = np.fromiter(holders, np.uint64, len(holders))
        hashed = hash_shares(session, me, all_ids, shares)
        checks = rows_of([contents.checks]) if contents.checks else None
        leaves = dealing.dealt_leaves(session, me, all_ids, hashed, checks, sealed)
        root = dealing.tree(leaves)[-1].tobytes()
        signed = dealing.signed_dealt(session, me, commitment, holders[me].mask, root)
        hashes, dealt = hashed.tobytes(), identity.sign(signed)
    state = Shared(
        phase=due,
        session=session,
        seed=seed,
        own_share=shares[~others, :SHARE_BYTES].tobytes(),
        kem_pair=own.kem_pair,
        peers=kept,
    )
    message = ShareKeys(
        me, session, commitment, sealed.tobytes(), contents.checks, hashes, dealt
    )
    return state, message


def hash_shares(session: bytes, dealers: int | U64, holders: int | U64, shares: U8) -> U8:
    """Return the hashes of the shares of b and of s in each row of `shares`.

    Parameters
    ----------
    session : bytes
    dealers, holders : int, or uint64 array of shape (m,)
    shares : uint8 array, shape (m, 80)

    Returns
    -------
    uint8 array, shape (m, 64)
    """
    kinds = np.tile(np.array([dealing.B_SHARE, dealing.S_SHARE], np.uint8), len(shares))
    dealer, holder = (
        each if isinstance(each, int) else np.repeat(each, 2) for each in (dealers, holders)
    )
    each_share = shares.reshape(-1, SHARE_BYTES)
    hashes = dealing.share_hashes(kinds, session, dealer, holder, each_share)
    return hashes.reshape(-1, 2 * dealing.HASH_BYTES)


def _split(
    holders: Mapping[int, PublicKeys],
    own: Advertised,
    session: bytes,
    threshold: int,
    hedged: Callable[..., Entropy],
) -> tuple[bytes, U8]:
    """Draw b_u; return b_u and the shares of b_u and of the seed of s_u, a row a holder."""
    # b must stay secret when the server rebuilds the masking seed, which cannot hedge b
    seed = hedged(b"b", own.sealing.pair.seed, session)(keys.SEED_BYTES)
    about = struct.pack("<Q", threshold) + pack_ids(tuple(holders))
    coefficients = hedged(b"shares", seed + own.mask_pair.seed, session, about)
    # b comes first: the first half of a share is of b, the second half of s
    limbs = np.concatenate([shamir.to_limbs(seed), shamir.to_limbs(own.mask_pair.seed)])
    points = np.arange(1, len(holders) + 1, dtype=np.uint64)
    shares = shamir.split_limbs(limbs, threshold, points, coefficients)
    return seed, shares.astype("<u8").view(np.uint8)


def _agree(
    peers: Mapping[int, PublicKeys],
    ids: U64,
    own: Advertised,
    mine: tuple[int, PublicKeys],
    session: bytes,
    encapsulate: Encapsulate,
    keeps_keys: bool,
) -> tuple[Peers, _Contents]:
    """Agree with all peers; return the secrets to keep, and what the boxes need.

    The active variant keeps the peers' masking keys.
    """
    me, publics = mine
    half, nothing = keys.KEY_BYTES, np.empty((len(peers), 0), np.uint8)
    # the sealing key comes first in `theirs`, and the secret agreed on with it in `secrets`
    theirs = rows_of((p.seal + p.mask for p in peers.values()), 2 * half)
    secrets = _secrets(peers, own)
    masking_secrets, mask_publics = secrets[:, half:], theirs[:, half:]
    kems = None
    if own.kem_pair is not None:
        digests = keys.digests(rows_of((p.kem for p in peers.values()), kem.KEY_BYTES))
        kems = digests, keys.digests(rows_of([publics.kem], kem.KEY_BYTES))
    sending, opening = sealing.base_keys(
        secrets, session, (me, publics.seal + publics.mask), ids, theirs, kems
    )
    agreed = pairs.agreements(masking_secrets, session, (me, publics.mask), ids, mask_publics)
    kept = mask_publics if keeps_keys else nothing
    if own.kem_pair is None:
        opening = sealing.box_keys(opening, session, ids, me)
        masks = pairs.mask_keys(agreed, session, me, ids)
        contents = _Contents(sealing.box_keys(sending, session, me, ids), nothing, nothing, b"")
        return Peers(ids, kept, opening, masks, nothing, nothing), contents
    encapsulated, ciphertexts = _encapsulate(peers, encapsulate)
    contributed = pairs.contributions(own.mask_pair.seed, session, me, ids)
    contents = _Contents(
        sealing.box_keys(sending, session, me, ids, (encapsulated, keys.digests(ciphertexts))),
        ciphertexts,
        contributed,
        pairs.checks(session, me, ids, contributed).tobytes(),
    )
    own_p, own_q = contributed[:, :half], contributed[:, half:]
    return Peers(ids, kept, opening, agreed, own_p, own_q), contents


def _secrets(peers: Mapping[int, PublicKeys], own: Advertised) -> U8:
    """Return the X25519 secrets with each peer: of the sealing keys, then of the masking keys.

    A peer's unusable key raises RemoteProtocolError.
    """
    for v, publics in peers.items():
        for which, public in (("sealing", publics.seal), ("masking", publics.mask)):
            if not keys.is_usable(public):
                why = f"client {v}'s {which} key is of low order or not canonical"
                reject(Phase.SHARE_KEYS, "public key", why)
    of_seal = own.sealing.agree({v: p.seal for v, p in peers.items()})
    of_mask = own.mask_pair.agree(rows_of(p.mask for p in peers.values()))
    return np.concatenate([of_seal, of_mask], axis=1)


def _encapsulate(peers: Mapping[int, PublicKeys], encapsulate: Encapsulate) -> tuple[U8, U8]:
    """Return a secret K and a ciphertext for each peer; raise for an invalid key."""
    secrets, ciphertexts = list[bytes](), list[bytes]()
    for v, publics in peers.items():
        try:
            secret, ciphertext = encapsulate(v, publics.kem)
        except ValueError:
            why = f"client {v}'s encapsulation key has a coefficient of 3,329 or more"
            reject(Phase.SHARE_KEYS, "public key", why)
        secrets.append(secret)
        ciphertexts.append(ciphertext)
    return rows_of(secrets), rows_of(ciphertexts, kem.CIPHERTEXT_BYTES)
