"""Keys of pairs' masks, contributions, checks and deposits (docs/protocol.md, §5.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from secagg.protocol import pair_masks as pairs
from secagg.protocol.keys import U8, KeyPair, rows_of

SESSION = bytes(range(32))
SEED = bytes(range(32, 64))
IDS = np.array([9, 200, 1 << 63], np.uint64)
ME = 50


def rows(seed: int, count: int = 3, width: int = 32) -> U8:
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


def all_differ(made: list[U8]) -> None:
    """Assert that no two rows of all the arrays are equal."""
    found = [bytes(row) for each in made for row in each]
    assert len(set(found)) == len(found)


def test_check08_masking_key_is_derived_from_the_seed_one_way() -> None:
    """Somebody who breaks X25519 has the private key, but neither the seed nor p and q."""
    pair = KeyPair.masking(SEED)
    assert pair.seed == SEED
    assert pair.private != SEED
    assert pair.public == KeyPair(pair.private).public
    assert pair.public != KeyPair(SEED).public


def test_check08_every_input_changes_the_agreement() -> None:
    shared, publics, own = rows(1), rows(2), bytes(rows(3, 1))
    all_differ(
        [
            pairs.agreements(shared, SESSION, (ME, own), IDS, publics),
            pairs.agreements(rows(9), SESSION, (ME, own), IDS, publics),
            pairs.agreements(shared, bytes(32), (ME, own), IDS, publics),
            pairs.agreements(shared, SESSION, (ME + 1, own), IDS, publics),
            pairs.agreements(shared, SESSION, (ME, bytes(rows(9, 1))), IDS, publics),
            pairs.agreements(shared, SESSION, (ME, own), IDS + np.uint64(1), publics),
            pairs.agreements(shared, SESSION, (ME, own), IDS, rows(9)),
            shared,  # the raw secret is never the agreement, which complaints disclose
        ]
    )


def test_check08_every_input_changes_the_contributions() -> None:
    made = pairs.contributions(SEED, SESSION, ME, IDS)
    p, q = made[:, :32], made[:, 32:]
    all_differ([p, q])
    all_differ(
        [
            made,
            pairs.contributions(bytes(32), SESSION, ME, IDS),
            pairs.contributions(SEED, bytes(32), ME, IDS),
            pairs.contributions(SEED, SESSION, ME + 1, IDS),
            pairs.contributions(SEED, SESSION, ME, IDS + np.uint64(1)),
        ]
    )


def test_check08_every_input_changes_the_check() -> None:
    both = rows(1, width=64)
    altered = [both.copy(), both.copy()]
    altered[0][:, 0] ^= 1
    altered[1][:, 63] ^= 1
    all_differ(
        [
            pairs.checks(SESSION, ME, IDS, both),
            pairs.checks(SESSION, IDS, ME, both),
            pairs.checks(bytes(32), ME, IDS, both),
            pairs.checks(SESSION, ME + 1, IDS, both),
            pairs.checks(SESSION, ME, IDS + np.uint64(1), both),
            *(pairs.checks(SESSION, ME, IDS, each) for each in altered),
        ]
    )


def test_check08_every_input_changes_the_mask_key() -> None:
    agreed, own, theirs = rows(1), rows(2), rows(3)
    contributed = pairs.Contributed(own, theirs)
    all_differ(
        [
            pairs.mask_keys(agreed, SESSION, ME, IDS),
            pairs.mask_keys(agreed, SESSION, ME, IDS, contributed),
            pairs.mask_keys(agreed, SESSION, ME, IDS, pairs.Contributed(theirs, own)),
            pairs.mask_keys(agreed, SESSION, ME, IDS, pairs.Contributed(rows(9), theirs)),
            pairs.mask_keys(agreed, SESSION, ME, IDS, pairs.Contributed(own, rows(9))),
            pairs.mask_keys(rows(9), SESSION, ME, IDS, contributed),
            pairs.mask_keys(agreed, bytes(32), ME, IDS, contributed),
            pairs.mask_keys(agreed, SESSION, ME + 1, IDS, contributed),
            pairs.mask_keys(agreed, SESSION, ME, IDS + np.uint64(1), contributed),
        ]
    )


@pytest.mark.parametrize("make", ["agreements", "mask_keys"])
def test_both_ends_of_a_pair_derive_the_same(make: str) -> None:
    low, high = 9, 50
    publics = {low: rows(1, 1), high: rows(2, 1)}
    given = {low: rows(3, 1), high: rows(4, 1)}
    secret = rows(5, 1)
    found = []
    for me, other in ((low, high), (high, low)):
        peer = np.array([other], np.uint64)
        if make == "agreements":
            mine = (me, bytes(publics[me]))
            found.append(pairs.agreements(secret, SESSION, mine, peer, publics[other]))
        else:
            both = pairs.Contributed(given[me], given[other])
            found.append(pairs.mask_keys(secret, SESSION, me, peer, both))
    assert (found[0] == found[1]).all()


def test_deposit_gives_p_back_to_who_knows_q_alone() -> None:
    p, q = rows(1), rows(2)
    left = pairs.deposits(q, SESSION, ME, IDS, p)
    assert (pairs.deposits(q, SESSION, ME, IDS, left) == p).all()
    wrong: list[Callable[[], U8]] = [
        lambda: pairs.deposits(rows(9), SESSION, ME, IDS, left),
        lambda: pairs.deposits(q, bytes(32), ME, IDS, left),
        lambda: pairs.deposits(q, SESSION, ME + 1, IDS, left),
        lambda: pairs.deposits(q, SESSION, ME, IDS + np.uint64(1), left),
        lambda: pairs.deposits(q, SESSION, IDS, ME, left),
    ]
    for call in wrong:
        assert not (call() == p).all(axis=1).any()
    assert not (left == p).all(axis=1).any()
    assert (rows_of([bytes(row) for row in left]) == left).all()
