"""Seconds of a client and of the server in a round, estimated for ``secagg params``.

Single operations are timed on this machine, and the times are multiplied by their counts. Only
work that grows with clients or elements is counted; see docs/parameters.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from secagg import _fast, shamir
from secagg.kit.timing import mean_seconds
from secagg.protocol import (
    Identity,
    Registry,
    RoundParams,
    dealing,
    kem,
    keys,
    pair_masks,
    sealing,
)
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import SEALED_BYTES, SHARE_BYTES, SHARE_LIMBS
from secagg.server.recovery import Recovery

# most elements and shares that are timed; larger times are scaled
_ELEMENTS, _SHARES = 1 << 18, 512
# a round expands so many masks together, so they are timed together
_MASKS = 8
# likewise, the keys, boxes and hashes of so many peers
_PEERS = 64


def estimate(params: RoundParams, dropped: int) -> tuple[float, float]:
    """Estimate the seconds of a client and of the server in a whole round.

    The seconds are of one core of this machine, from timings of the round's operations, which
    take less than a second. `dropped` clients drop out after sharing their keys, when dropouts
    cost the server most.
    """
    n, others = params.n_clients, params.holders - 1
    agree, make_pair, check, seal = _keys()
    mask, take = _vectors(params)
    share, rebuild = _shares(params, dropped)
    lattice = Lattice() if params.suite == "x25519" else _lattice()
    blame = Blame() if not params.active else _blame(params)
    client = 2 * make_pair + lattice.pair + mask + take + share
    client += others * (2 * agree + 2 * seal + mask)
    client += others * (lattice.encapsulate + lattice.decapsulate + lattice.secrets)
    client += others * (blame.deal + blame.hold + blame.answer + 3 * blame.verify)
    survivors = n - dropped
    # no input has masks between two dropped-out clients
    pairs = dropped * others * survivors / max(1, n - 1)
    server = (
        n * (2 * check + lattice.check + others * blame.deal + 5 * blame.verify)
        + survivors * (take + rebuild + mask + others * blame.answer)
        + dropped * (rebuild + make_pair)
        + pairs * (agree + lattice.secrets + mask)
    )
    return client, server


class Lattice(NamedTuple):
    """Seconds that suite hybrid adds.

    Attributes
    ----------
    pair, check : float
        A key pair of ML-KEM, and the check of a public key.
    encapsulate, decapsulate : float
        For a box, at the sender and at the receiver.
    secrets : float
        Contributions of a pair to its mask: derivation, both checks, a deposit.
    """

    pair: float = 0.0
    check: float = 0.0
    encapsulate: float = 0.0
    decapsulate: float = 0.0
    secrets: float = 0.0


class Blame(NamedTuple):
    """Seconds that the signed hashes of the active variant add, but for `verify` for a pair.

    Attributes
    ----------
    deal : float
        Hashes and leaf of a dealer for a holder, and the tree above.
    hold : float
        The holder's hashes of the same shares, and the path to the root.
    answer : float
        Hash of a revealed share.
    verify : float
        Verification of a signature.
    """

    deal: float = 0.0
    hold: float = 0.0
    answer: float = 0.0
    verify: float = 0.0


def _keys() -> tuple[float, float, float, float]:
    """Return the seconds of work with keys.

    The work is the agreement with a peer on the key of a mask, which takes the server as long
    with a revealed masking seed; a new key pair, a check of a key, and a sealing.
    """
    mine, theirs = (keys.KeyPair(os.urandom(keys.SEED_BYTES)) for _ in range(2))
    session = os.urandom(keys.SEED_BYTES)

    def agree() -> None:
        agreed = pair_masks.revealed_agreements(mine, session, 0, *peers)
        pair_masks.mask_keys(agreed, session, 0, peers[0])

    make_pair = mean_seconds(lambda: keys.KeyPair.masking(os.urandom(keys.SEED_BYTES)))
    check = mean_seconds(lambda: keys.is_usable(mine.public))
    peers = np.ones(_PEERS, np.uint64), keys.rows_of([theirs.public] * _PEERS)
    shares = np.zeros((_PEERS, 2 * SHARE_BYTES), np.uint8)

    def seal() -> None:
        sealing.seal(peers[1], session, 0, peers[0], shares)

    return _each(agree), make_pair, check, _each(seal)


def _lattice() -> Lattice:
    pair = kem.KemPair(os.urandom(kem.SEED_BYTES))
    _, ciphertext = kem.encapsulate(pair.public)
    seed, session = os.urandom(keys.SEED_BYTES), os.urandom(keys.SEED_BYTES)
    ids = np.arange(1, _PEERS + 1, dtype=np.uint64)

    def contribute() -> None:
        both = pair_masks.contributions(seed, session, 0, ids)
        p, q = both[:, : keys.KEY_BYTES], both[:, keys.KEY_BYTES :]
        pair_masks.checks(session, 0, ids, both)
        pair_masks.checks(session, ids, 0, both)
        pair_masks.deposits(q, session, 0, ids, p)

    return Lattice(
        mean_seconds(lambda: kem.KemPair(os.urandom(kem.SEED_BYTES))),
        mean_seconds(lambda: kem.is_valid(pair.public)),
        mean_seconds(lambda: kem.encapsulate(pair.public)),
        mean_seconds(lambda: pair.decapsulate(ciphertext)),
        _each(contribute),
    )


def _blame(params: RoundParams) -> Blame:
    session, identity = os.urandom(keys.SEED_BYTES), Identity.generate()
    ids = np.arange(_PEERS + 1, dtype=np.uint64)
    peers, shares = ids[1:], np.zeros((2 * _PEERS, SHARE_BYTES), np.uint8)
    sealed = np.zeros((_PEERS, SEALED_BYTES[params.suite]), np.uint8)
    hashes = np.zeros((_PEERS + 1, 2 * dealing.HASH_BYTES), np.uint8)
    checks = np.zeros((_PEERS, dealing.HASH_BYTES), np.uint8)
    depth = dealing.depth(params.holders)
    paths = np.zeros((_PEERS, depth, dealing.HASH_BYTES), np.uint8)
    registry, signature = Registry({0: identity.public}), identity.sign(session)
    pairs = np.repeat(peers, 2)

    def deal() -> None:
        dealing.share_hashes(dealing.B_SHARE, session, 0, pairs, shares)
        dealing.tree(dealing.dealt_leaves(session, 0, ids, hashes, checks, sealed))

    def hold() -> None:
        boxes = keys.digests(sealed)
        leaves = dealing.leaves(session, peers, 0, 1, hashes[1:], checks, boxes)
        dealing.roots(leaves, 0, paths)
        dealing.share_hashes(dealing.B_SHARE, session, pairs, 0, shares)

    def answer() -> None:
        dealing.share_hashes(dealing.B_SHARE, session, peers, 0, shares[:_PEERS])

    verify = mean_seconds(lambda: registry.verifies(0, session, signature))
    return Blame(_each(deal), _each(hold), _each(answer), verify)


def _each(call: Callable[[], None]) -> float:
    """Return the seconds for each of `_PEERS` peers, who are served together."""
    return mean_seconds(call) / _PEERS


def _vectors(params: RoundParams) -> tuple[float, float]:
    """Return the seconds of a mask, and of unpacking and adding a vector, at full length."""
    ring, size = params.ring, min(params.elements, _ELEMENTS)
    values, total = ring.zeros(size), ring.zeros(size)
    masks = MaskSum()
    for i in range(_MASKS):
        masks.add(os.urandom(16), negate=bool(i % 2))
    packed = _fast.pack_bits(values, ring.bits)

    def take() -> None:
        _fast.unpack_bits(packed, ring.bits, values)
        ring.add_into(total, values)

    scale = params.elements / size
    mask = mean_seconds(lambda: masks.apply(total, ring)) / _MASKS
    ring.reduce(total)
    return scale * mask, scale * mean_seconds(take)


def _shares(params: RoundParams, dropped: int) -> tuple[float, float]:
    """Return the seconds to share two secrets among all holders, and to rebuild a secret."""
    # time large cohorts at a smaller scale, with the same ratio of threshold to holders
    scale = max(1.0, params.holders / _SHARES)
    holders, t = int(params.holders / scale), max(1, int(params.threshold / scale))
    answered = max(t, round(holders * (1 - dropped / params.n_clients)))
    points = np.arange(1, holders + 1, dtype=np.uint64)
    secret = os.urandom(keys.SEED_BYTES)
    limbs = np.tile(shamir.to_limbs(secret), 2)
    rows = shamir.split_limbs(limbs, t, points, os.urandom)[:answered, None, :SHARE_LIMBS]
    # on the complete graph all secrets have the same holders, and are checked together
    together, power = (holders, 1) if params.neighbours is None else (1, 2)
    shares = np.repeat(rows, together, axis=1)

    def rebuild() -> None:
        Recovery(t, b"").rebuild(
            range(together),
            lambda _, found: found == secret,
            range(answered),
            points[:answered],
            shares,
        )

    split = mean_seconds(lambda: shamir.split_limbs(limbs, t, points, os.urandom))
    return split * scale**2, mean_seconds(rebuild) / together * scale**power
