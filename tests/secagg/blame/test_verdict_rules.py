"""Forged verdicts of shares (docs/protocol.md, §14.2)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from blamed_round import (
    HONEST,
    IDS,
    LIAR,
    POLICY,
    SignedRound,
    add_one,
    convicts_nobody,
    cut,
    dealt_part,
    true_shares,
    with_parts,
)
from harness import make_identity
from raised import rejects
from secagg import Registry, blame
from secagg.protocol import dealing
from secagg.shamir.field import M61


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("holders", [IDS[:5], IDS[2:], [IDS[0], *IDS[3:]]])
def test_check58_right_shares_are_innocent(kind: int, holders: Sequence[int]) -> None:
    round_ = SignedRound()
    convicts_nobody("innocent", true_shares(round_, kind=kind, holders=holders), round_)


def test_right_shares_shown_as_the_other_kind_have_another_leaf() -> None:
    round_ = SignedRound()
    data = with_parts(true_shares(round_), lambda parts: parts.__setitem__(1, b"\1"))
    convicts_nobody("root", data, round_)


@pytest.mark.parametrize("kind", [2, 255])
def test_secret_of_another_kind(kind: int) -> None:
    round_ = SignedRound()
    data = with_parts(true_shares(round_), lambda parts: parts.__setitem__(1, bytes([kind])))
    convicts_nobody("kind", data, round_)


@pytest.mark.parametrize("count", [1, 3, 4])
def test_fewer_shares_than_the_threshold(count: int) -> None:
    round_ = SignedRound()
    convicts_nobody("length", true_shares(round_, holders=IDS[:count]), round_)


@pytest.mark.parametrize("count", [6, 7])
def test_more_shares_than_the_threshold(count: int) -> None:
    round_ = SignedRound()
    round_.deal(LIAR, add_one(0, 0))
    convicts_nobody("length", true_shares(round_, LIAR, holders=IDS[:count]), round_)


@pytest.mark.parametrize("order", [[0, 0, 1, 2, 3], [0, 1, 2, 3, 3], [1, 0, 2, 3, 4]], ids=str)
def test_share_twice_or_out_of_order(order: list[int]) -> None:
    round_ = SignedRound()
    convicts_nobody("ids", true_shares(round_, holders=[IDS[at] for at in order]), round_)


@pytest.mark.parametrize("point", [0, 1, 4, 6, 2**32 - 1])
def test_share_at_another_point(point: int) -> None:
    round_ = SignedRound()

    def move(parts: list[bytes]) -> None:
        parts[6] = parts[6][:8] + struct.pack("<I", point) + parts[6][12:]

    data = with_parts(true_shares(round_), move)
    convicts_nobody("ids" if point in (0, 2**32 - 1) else "root", data, round_)


def test_share_of_two_holders_at_one_point() -> None:
    round_ = SignedRound()

    def same(parts: list[bytes]) -> None:
        parts[6] = parts[6][:8] + parts[5][8:]

    convicts_nobody("root", with_parts(true_shares(round_), same), round_)


def test_share_of_another_dealer() -> None:
    round_ = SignedRound()
    _, others = cut(true_shares(round_, LIAR))

    def mix(parts: list[bytes]) -> None:
        parts[6] = others[6]

    convicts_nobody("root", with_parts(true_shares(round_), mix), round_)


def test_shares_under_another_root_of_the_same_dealer() -> None:
    round_ = SignedRound()
    before = dealt_part(round_, HONEST)
    round_.deal(HONEST)
    data = with_parts(true_shares(round_), lambda parts: parts.__setitem__(0, before))
    convicts_nobody("root", data, round_)


def test_shares_under_values_that_the_dealer_did_not_sign() -> None:
    round_ = SignedRound()
    for alter in ({"commitment": bytes(32)}, {"mask_key": bytes(32)}):
        round_.deal(HONEST)
        signed = round_.dealt[HONEST]
        round_.dealt[HONEST] = signed._replace(**alter)
        convicts_nobody("signature", true_shares(round_), round_)
    round_.deal(HONEST, signer=LIAR)
    convicts_nobody("signature", true_shares(round_), round_)


def test_dealer_or_holder_that_is_not_in_the_registry() -> None:
    round_ = SignedRound()
    data = true_shares(round_)
    for missing in (HONEST, IDS[0], IDS[4]):
        rest = {u: round_.registry[u] for u in round_.registry if u != missing}
        check = "unknown client"
        rejects(check, lambda rest=rest: blame.check(data, Registry(rest), POLICY))


def test_share_that_is_no_field_element() -> None:
    """A dealer can sign the hash of such a share; interpolation has no use for it."""
    round_ = SignedRound()

    def beyond(shares: np.ndarray) -> None:
        shares[0, 2, 1] = M61

    round_.deal(LIAR, beyond)
    convicts_nobody("share", true_shares(round_, LIAR), round_)


def test_point_beyond_the_tree_that_has_the_same_low_bits() -> None:
    """A dealer can give such a leaf a place; the shares of others are at their places."""
    round_ = SignedRound()
    dealt, at = round_.dealt[LIAR], 2
    points = np.arange(1, 8, dtype=np.uint64)
    points[at] += np.uint64(8)
    columns = round_.holders, points, dealt.hashes, dealt.checks, dealt.boxes
    leaves = dealing.leaves(round_.session, LIAR, *columns)
    nodes = dealing.tree(leaves)
    values = dealt.commitment, dealt.mask_key, nodes[-1].tobytes()
    signature = make_identity(LIAR).sign(dealing.signed_dealt(round_.session, LIAR, *values))
    paths = nodes[dealing.siblings(7)]

    def forge(parts: list[bytes]) -> None:
        parts[0] = b"".join(values) + signature
        for place in range(5):
            x = struct.pack("<I", int(points[place]))
            part = parts[2 + place]
            parts[2 + place] = part[:8] + x + part[12:148] + paths[place].tobytes()

    convicts_nobody("ids", with_parts(true_shares(round_, LIAR), forge), round_)


def test_paths_of_different_lengths() -> None:
    """A dealer can sign a tree whose leaves have different depths, and so places twice."""
    round_ = SignedRound()
    dealt = round_.dealt[LIAR]
    leaves = round_.leaves_of(dealt)
    low = dealing.tree(leaves[:4])
    pair = np.concatenate([low[-1], leaves[4]])[np.newaxis]
    root = dealing._parents(pair)[0].tobytes()
    # the fifth leaf, X = 5, is a child of the root: at index 0 or 1 of a tree of depth 1
    values = dealt.commitment, dealt.mask_key, root
    signature = make_identity(LIAR).sign(dealing.signed_dealt(round_.session, LIAR, *values))
    paths = low[dealing.siblings(4)]

    def forge(parts: list[bytes]) -> None:
        parts[0] = b"".join(values) + signature
        for place in range(4):
            path = paths[place].tobytes() + leaves[4].tobytes()
            parts[2 + place] = parts[2 + place][:148] + path
        parts[6] = parts[6][:148] + low[-1].tobytes()

    convicts_nobody("length", with_parts(true_shares(round_, LIAR), forge), round_)


def test_path_longer_than_any_of_the_round() -> None:
    round_ = SignedRound()

    def longer(parts: list[bytes]) -> None:
        parts[2:] = [part + bytes(32) for part in parts[2:]]

    convicts_nobody("length", with_parts(true_shares(round_), longer), round_)


def test_path_that_is_no_whole_number_of_nodes() -> None:
    round_ = SignedRound()

    def cut_off(parts: list[bytes]) -> None:
        parts[2:] = [part[:-1] for part in parts[2:]]

    convicts_nobody("length", with_parts(true_shares(round_), cut_off), round_)
