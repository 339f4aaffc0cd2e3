"""Signatures of a round's clients over other shares, for faults and forged verdicts."""

from collections.abc import Mapping
from dataclasses import replace

from kinds import but, get
from whole_round import Round

import independent_dealing as dealing
from independent_dealing import Opening
from independent_primitives import cut, ids, integers, sha256, u8

Changes = Mapping[str, bytes | int]


class Redealt:
    """The dealing of v in round r with other leaves or another root, signed by v."""

    def __init__(self, r: Round, v: int, changes: Mapping[int, Changes]) -> None:
        """`changes` has fields of `Opening` by the holder, and `box` in the place of sealed."""
        self.r, self.v, self.boxes = r, v, {}
        self.openings: dict[int, Opening] = {}
        for w, opening in r.openings(v).items():
            values = dict(changes.get(w, {}))
            if "box" in values:
                self.boxes[w] = values.pop("box")
                values["sealed"] = sha256(self.boxes[w])
            self.openings[w] = replace(opening, **values)
        self.leaves = [of.leaf(r.session, v, w) for w, of in self.openings.items()]
        self.root = dealing.root(self.leaves)
        self.commitment = get(r.sent["share_keys"][v], "commitment")

    def signature(self) -> bytes:
        s = self.r.clients[self.v].own[1]
        about = self.v, self.commitment, s, self.root
        return self.r.signature(self.v, dealing.dealt(self.r.session, *about))

    def path(self, w: int) -> bytes:
        return dealing.path(self.leaves, self.r.holders[self.v].index(w))


def shares_of(good: bytes, w: int, redealt: list[Redealt]) -> bytes:
    """The Shares to w with these dealings in the place of their dealers' own."""
    senders, fields = integers(get(good, "senders")), {}
    for of in redealt:
        at = senders.index(of.v)
        new = {"dealt": of.signature(), "paths": of.path(w), "hashes": of.openings[w].hashes}
        if w in of.boxes:
            new["sealed"] = of.boxes[w]
        if get(good, "checks"):
            new["checks"] = of.openings[w].check
        for name, value in new.items():
            column = fields.get(name) or cut(get(good, name), len(value))
            fields[name] = [*column[:at], value, *column[at + 1 :]]
    return but(good, **{name: b"".join(column) for name, column in fields.items()})


def senders_of(r: Round, w: int) -> list[int]:
    return [v for v in r.seen(w, r.u2) if v != w]


def list_of(r: Round, w: int, complaints: Mapping[int, int]) -> bytes:
    """LIST of w with these complaints."""
    return dealing.leaves_list(
        (v, r.openings(v)[w].leaf(r.session, v, w), complaints.get(v, 0))
        for v in senders_of(r, w)
    )


def accepted_of(r: Round, w: int, complaints: Mapping[int, int]) -> bytes:
    listed = list_of(r, w, complaints)
    return r.signature(w, dealing.accepted(r.session, w, listed))


def told(complaints: Mapping[int, int]) -> bytes:
    """The field of MaskedInput, in the order given."""
    return b"".join(ids([v]) + u8(kind) for v, kind in complaints.items())


def answers_of(r: Round, w: int, shares: bytes) -> bytes:
    """ANSWERS of w for these shares."""
    survivors, dropped = r.named(w)
    kinds = [(v, 0) for v in survivors] + [(v, 1) for v in dropped]
    rows = zip(kinds, cut(shares, 40), strict=True)
    return dealing.answers_list(r.session, w, ((v, kind, share) for (v, kind), share in rows))


def answer_of(r: Round, w: int, shares: bytes) -> bytes:
    return r.signature(w, dealing.answer(r.session, w, answers_of(r, w, shares)))
