"""Complaints of clients in the active variant (docs/protocol.md, §5.15 and §8)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dealings import (
    flipped,
    redealt,
    with_noise,
    with_noise_for_zeros,
    with_wrong_check,
    with_wrong_hash,
)
from harness import (
    Cohort,
    altered,
    finish,
    make_identity,
    make_params,
    pieces,
    read,
    rejects,
)
from secagg import Registry, shamir
from secagg.protocol import dealing, keys
from secagg.protocol import pair_masks as pairs
from secagg.protocol.messages import (
    SEALED_BYTES,
    MaskedInput,
    ShareKeys,
    Shares,
    UnmaskRequest,
    UnmaskShares,
    pack_ids,
    unpack_ids,
)
from secagg.shamir.field import M61

Lie = Callable[[Cohort, int, int, bytes], bytes]
HOLDER = 2
COMPLAINT = np.dtype([("dealer", "<u8"), ("kind", "u1")])


def honest(_cohort: Cohort, _v: int, _w: int, data: bytes) -> bytes:
    return data


CASES: dict[str, tuple[str, Lie, int]] = {
    "x25519, noise": ("x25519", with_noise, 1),
    "x25519, other share": ("x25519", with_wrong_hash, 1),
    "x25519, noise for zeros": ("x25519", with_noise_for_zeros, 1),
    "hybrid, noise": ("hybrid", with_noise, 2),
    "hybrid, noise for zeros": ("hybrid", with_noise_for_zeros, 2),
    "hybrid, other p and q": ("hybrid", with_wrong_check, 2),
    "hybrid, other share": ("hybrid", with_wrong_hash, 1),
}


def sharing(suite: str, lies: dict[int, Lie], n: int = 7, **changes: object) -> Cohort:
    """A cohort after round 1 in which some dealers dealt client 2 a bad box, and signed it."""
    cohort = Cohort(make_params(n, suite=suite, security="active", **changes))
    cohort.advance(1)
    out = cohort.step()
    cohort.deliver({u: lies.get(u, honest)(cohort, u, HOLDER, data) for u, data in out.items()})
    return cohort


def complaints_in(message: MaskedInput) -> list[tuple[int, int]]:
    return [(int(v), int(kind)) for v, kind in np.frombuffer(message.complaints, COMPLAINT)]


@pytest.mark.parametrize("case", CASES)
def test_check60_bad_box_is_complained_of_and_ends_nothing(case: str) -> None:
    suite, lie, kind = CASES[case]
    cohort = sharing(suite, {4: lie})
    out = cohort.step()
    for w, data in out.items():
        message = read(data, MaskedInput)
        assert complaints_in(message) == ([(4, kind)] if w == HOLDER else [])
        assert len(message.disclosed) == (96 if w == HOLDER and kind == 2 else 0)
    cohort.deliver(out)
    finish(cohort)


@pytest.mark.parametrize("case", CASES)
def test_check60_client_has_no_share_of_a_dealer_after_a_complaint(case: str) -> None:
    """Answer and signature have 40 bytes ff in place of the share, also after drop-outs."""
    suite, lie, _ = CASES[case]
    for without in ((), (4,), (5,)):
        cohort = sharing(suite, {4: lie})
        cohort.deliver(cohort.step(without=without))
        state = cohort.clients[HOLDER]._state
        assert state.self_shares[4] == state.mask_shares[4] == dealing.NO_SHARE
        others = [v for v in cohort.ids if v != 4]
        assert dealing.NO_SHARE not in [state.self_shares[v] for v in others]
        cohort.advance(1)
        request = read(cohort.inbox[HOLDER], UnmaskRequest)
        message = read(cohort.clients[HOLDER].answer(cohort.inbox[HOLDER]), UnmaskShares)
        survivors, dropped = unpack_ids(request.survivors), unpack_ids(request.dropped)
        shares = dict(zip(survivors + dropped, pieces(message.shares, 40), strict=True))
        assert [v for v, share in shares.items() if share == dealing.NO_SHARE] == [4]


@pytest.mark.parametrize("case", CASES)
def test_check60_accepted_signs_every_leaf_with_the_clients_word(case: str) -> None:
    suite, lie, kind = CASES[case]
    cohort = sharing(suite, {4: lie})
    shares = read(cohort.inbox[HOLDER], Shares)
    message = read(cohort.step()[HOLDER], MaskedInput)
    ids = np.frombuffer(shares.senders, np.uint64)
    sealed = keys.rows_of([shares.sealed], SEALED_BYTES[suite])
    checks = np.zeros((6, 32), np.uint8)
    if suite == "hybrid":
        checks = keys.rows_of([shares.checks])
    hashes, boxes = keys.rows_of([shares.hashes], 64), keys.digests(sealed)
    leaves = dealing.leaves(shares.session, ids, HOLDER, HOLDER + 1, hashes, checks, boxes)
    words = np.where(ids == 4, kind, 0).astype(np.uint8)
    listed = dealing.accepted_list(ids, leaves, words)
    registry = Registry({u: make_identity(u).public for u in cohort.ids})
    signed = dealing.signed_accepted(shares.session, HOLDER, listed)
    assert registry.verifies(HOLDER, signed, message.accepted)


def test_check60_share_that_is_no_field_element_is_complained_of(monkeypatch) -> None:
    """The dealer hashed it rightly."""
    split = shamir.split_limbs

    def too_large(*arguments: object) -> np.ndarray:
        rows = split(*arguments)
        rows[HOLDER, 7] = M61
        return rows

    for suite in ("x25519", "hybrid"):
        cohort = Cohort(make_params(7, suite=suite, security="active"))
        cohort.advance(1)
        out = cohort.step(without=[4])
        with monkeypatch.context() as patch:
            patch.setattr(shamir, "split_limbs", too_large)
            out[4] = cohort.answer(4, cohort.inbox[4])
        cohort.sent[-1] = out
        cohort.deliver(out)
        out = cohort.step()
        assert complaints_in(read(out[HOLDER], MaskedInput)) == [(4, 1)]
        cohort.deliver(out)
        finish(cohort)


def test_check60_disclosed_secrets_are_of_the_pair_alone() -> None:
    """A, and the client's own p and q; never the raw X25519 secret."""
    cohort = sharing("hybrid", {4: with_noise})
    peers = cohort.clients[HOLDER]._state.peers
    of_dealer = cohort.clients[4]._state.peers
    at, back = peers.ids.tolist().index(4), of_dealer.ids.tolist().index(HOLDER)
    message = read(cohort.step()[HOLDER], MaskedInput)
    agreed, p, q = pieces(message.disclosed, 32)
    assert agreed == bytes(peers.masking[at]) == bytes(of_dealer.masking[back])
    assert (p, q) == (bytes(peers.own_p[at]), bytes(peers.own_q[at]))


@pytest.mark.parametrize("lies", [{}, {4: with_noise}, {4: with_wrong_hash}])
def test_check57_deposits_are_for_all_but_the_dealers_left_out(lies: dict[int, Lie]) -> None:
    """The peer's q opens them, to the client's own p; zeros after complaint 2."""
    cohort = sharing("hybrid", lies)
    states = {u: client._state for u, client in cohort.clients.items()}
    session = states[HOLDER].session
    message = read(cohort.step()[HOLDER], MaskedInput)
    peers = states[HOLDER].peers
    left = dict(zip(peers.ids.tolist(), pieces(message.deposits, 32), strict=True))
    for v, deposit in left.items():
        if lies.get(v) is with_noise:
            assert deposit == bytes(32)
            continue
        theirs, at = states[v].peers, peers.ids.tolist().index(v)
        back = theirs.ids.tolist().index(HOLDER)
        q, row = theirs.own_q[back : back + 1], keys.rows_of([deposit])
        opened = pairs.deposits(q, session, HOLDER, v, row)
        assert opened.tobytes() == bytes(peers.own_p[at])


@pytest.mark.parametrize("without", [[], [HOLDER], [4], [HOLDER, 4], [0], [6]])
@pytest.mark.parametrize("case", CASES)
def test_check60_sum_is_exact_whoever_drops_out_after_a_complaint(case, without) -> None:
    suite, lie, _ = CASES[case]
    cohort = sharing(suite, {4: lie})
    cohort.deliver(cohort.step(without=without))
    finish(cohort)


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("count", [2, 3])
def test_check60_complaints_of_more_dealers_than_may_lie_end_the_client(count, suite) -> None:
    """2t − n − 1 is 2 of seven clients with t = 5."""
    lies = dict.fromkeys(range(3, 3 + count), with_noise)
    cohort = sharing(suite, lies, threshold=5)
    client, data = cohort.clients[HOLDER], cohort.inbox[HOLDER]
    if count == 3:
        rejects(client, data, "dealer")
        return
    message = read(client.answer(data, np.zeros(4)), MaskedInput)
    assert [v for v, _ in complaints_in(message)] == [3, 4]


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check60_dealer_counts_parameters_not_those_who_came(suite: str) -> None:
    """Eight of nine invited clients came. 2t − n − 1 is 4 with t = 7, so four may lie."""
    cohort = Cohort(make_params(9, 7, suite=suite, security="active"), range(8))
    cohort.advance(1)
    out = cohort.step()
    lies = {u: with_noise(cohort, u, HOLDER, out[u]) for u in (3, 4, 5, 6)}
    cohort.deliver(out | lies)
    message = read(cohort.step()[HOLDER], MaskedInput)
    assert len(complaints_in(message)) == 4


def test_check09_semi_honest_client_ends_at_the_first_bad_box() -> None:
    """No dealing is signed, so it could be anybody's fault."""
    for suite, name, at, check in (
        ("x25519", "sealed", -1, "sealed share"),
        ("hybrid", "sealed", -1, "sealed share"),
        ("hybrid", "sealed", 0, "sealed share"),  # the ciphertext of ML-KEM
        ("hybrid", "checks", 0, "sealed share"),
    ):
        cohort = Cohort(make_params(5, suite=suite))
        data = cohort.advance(2)[HOLDER]
        column = getattr(read(data, Shares), name)
        items = pieces(column, len(column) // 4)
        items[1] = flipped(items[1], at)
        rejects(cohort.clients[HOLDER], altered(data, Shares, **{name: b"".join(items)}), check)


def test_check52_complaint_does_not_depend_on_the_input() -> None:
    """Nor does anything else of the message but its values."""
    heads = set()
    for fill in (0.0, 1.5, 7.0):
        cohort = sharing("hybrid", {4: with_noise, 5: with_wrong_hash})
        client, data = cohort.clients[HOLDER], cohort.inbox[HOLDER]
        message = read(client.answer(data, np.full(4, fill)), MaskedInput)
        heads.add((message.deposits, message.complaints, message.disclosed, message.accepted))
    assert len(heads) == 1


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check59_answer_signs_the_hashes_of_the_revealed_shares(suite: str) -> None:
    """Shares of survivors' b come first, then those of dropped-out clients' s."""
    cohort = Cohort(make_params(7, suite=suite, security="active"))
    cohort.advance(2)
    cohort.advance(1, without=[5])
    request = read(cohort.advance(1)[HOLDER], UnmaskRequest)
    message = read(cohort.step()[HOLDER], UnmaskShares)
    assert request.dropped == pack_ids([5])
    survivors = unpack_ids(request.survivors)
    rows = []
    for v, kind in [*((v, 0) for v in survivors), (5, 1)]:
        hashes = pieces(read(cohort.sent[1][v], ShareKeys).hashes, 64)[HOLDER]
        rows.append(hashes[32 * kind :][:32])
    kinds = np.array([0] * len(survivors) + [1], np.uint8)
    dealers = np.array([*survivors, 5], np.uint64)
    answers = dealing.answer_list(dealers, kinds, keys.rows_of(rows))
    signed = dealing.signed_answer(message.session, HOLDER, answers)
    registry = Registry({u: make_identity(u).public for u in cohort.ids})
    assert registry.verifies(HOLDER, signed, message.answer)


def test_check59_dealt_signs_a_root_over_all_holders() -> None:
    for suite in ("x25519", "hybrid"):
        cohort = Cohort(make_params(5, suite=suite, security="active"))
        cohort.advance(1)
        data = cohort.step()[1]
        assert redealt(cohort, 1, data) == data
        message = read(data, ShareKeys)
        assert len(message.hashes) == 64 * 5
        assert len({*pieces(message.hashes, 32)}) == 10
