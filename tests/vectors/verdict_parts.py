"""Verdicts of docs/protocol.md §14 from a round, and parts of them, also of what nobody did."""

from collections.abc import Sequence

from kinds import get
from signing import Redealt, answer_of, answers_of, list_of
from whole_round import Round

import independent_dealing as dealing
import independent_judge
from independent_dealing import Opening
from independent_primitives import cut, integers, u8, u32le, u64le

Parts = list[bytes]


def verdict(r: Round, kind: str, client: int, parts: Sequence[bytes]) -> bytes:
    params = r.params.encode()
    return independent_judge.encode(kind, params, r.roster_digest, client, parts)


def dealt(r: Round, v: int) -> bytes:
    """DEALT."""
    sent = r.sent["share_keys"][v]
    root = dealing.root(r.leaves(v))
    return get(sent, "commitment") + r.clients[v].own[1] + root + get(sent, "dealt")


def opened(r: Round, v: int, w: int) -> bytes:
    """OPENED with its path."""
    path = dealing.path(r.leaves(v), r.holders[v].index(w))
    return opened_as(w, r.openings(v)[w]) + path


def opened_as(w: int, of: Opening) -> bytes:
    """OPENED without its path."""
    return u64le(w) + u32le(of.x) + of.hashes + of.check + of.sealed


def held(r: Round, v: int, w: int, kind: int) -> bytes:
    """The share of v that w has accepted, or that v has of itself."""
    if v != w:
        return r.clients[w]._shares[v][kind]
    return r.clients[v].own_share[40 * kind : 40 * kind + 40]


def share(r: Round, v: int, w: int, kind: int) -> bytes:
    """SHARE."""
    of, path = r.openings(v)[w], dealing.path(r.leaves(v), r.holders[v].index(w))
    other = cut(of.hashes, 32)[1 - kind]
    rest = of.check + of.sealed + path
    return independent_judge.share_part(w, of.x, held(r, v, w, kind), other, rest)


def dealt_again(of: Redealt) -> bytes:
    """DEALT of another root."""
    return of.commitment + of.r.clients[of.v].own[1] + of.root + of.signature()


def opened_again(of: Redealt, w: int) -> bytes:
    """OPENED under another root."""
    return opened_as(w, of.openings[w]) + of.path(w)


def share_again(of: Redealt, w: int, kind: int, value: bytes) -> bytes:
    """SHARE under another root, whose leaf has the hash of this share."""
    opening = of.openings[w]
    other = cut(opening.hashes, 32)[1 - kind]
    rest = opening.check + opening.sealed + of.path(w)
    return independent_judge.share_part(w, opening.x, value, other, rest)


def complaints_of(r: Round, w: int) -> dict[int, int]:
    rows = cut(get(r.sent["masked_input"][w], "complaints"), 9)
    return {integers(row[:8])[0]: row[8] for row in rows}


def listed(r: Round, w: int) -> Parts:
    """LIST and its signature, as w sent it."""
    signature = get(r.sent["masked_input"][w], "accepted")
    return [list_of(r, w, complaints_of(r, w)), signature]


def answered(r: Round, w: int) -> Parts:
    """ANSWERS and its signature, as w sent it."""
    shares = get(r.sent["unmasking"][w], "shares")
    assert answer_of(r, w, shares) == get(r.sent["unmasking"][w], "answer")
    return [answers_of(r, w, shares), answer_of(r, w, shares)]


def of_shares(r: Round, v: int, among: Sequence[int], kind: int) -> Parts:
    """The parts of a verdict `shares`."""
    return [dealt(r, v), u8(kind), *(share(r, v, w, kind) for w in among)]


def of_answer(r: Round, w: int, v: int) -> Parts:
    """The parts of a verdict `answer`."""
    if v == w:
        return [u64le(w), dealt(r, w), b"", *answered(r, w), opened(r, w, w)]
    opening = opened_as(w, r.openings(v)[w])
    return [u64le(v), *listed(r, w), *answered(r, w), opening]


def of_complaints(r: Round, v: int, among: Sequence[int]) -> Parts:
    """The parts of a verdict `complaints`."""
    parts = [dealt(r, v)]
    for w in among:
        parts += [*listed(r, w), opened(r, v, w)]
    return parts


def of_contribution(r: Round, v: int, among: Sequence[int], w: int) -> Parts:
    """The parts of a verdict `contribution`; its shares are those of the masking seed."""
    return [dealt(r, v), *(share(r, v, u, 1) for u in among), opened(r, v, w)]


def of_complainer(r: Round, w: int, signed: Parts, about: Sequence[int]) -> Parts:
    """The parts of a verdict `complainer`, from its list and signature."""
    parts = [*signed]
    for v in about:
        parts += [dealt(r, v), opened(r, v, w)]
    return parts
