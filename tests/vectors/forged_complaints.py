"""Verdicts from complaints that name nobody."""

from collections.abc import Iterator

from faults import flip
from kinds import get
from signing import Redealt, accepted_of, list_of
from verdict_parts import (
    Parts,
    dealt,
    of_complainer,
    of_complaints,
    opened,
    opened_as,
    verdict,
)
from whole_round import Round

import independent_dealing as dealing


def complaints(rounds: dict[str, Round]) -> Iterator[tuple]:
    r = rounds["blame-complaints"]
    good = of_complaints(r, 9, [1, 2, 5])

    def of(name: str, check: str, parts: Parts, client: int = 9, **judge: object) -> tuple:
        return name, r, verdict(r, "complaints", client, parts), check.split(" or "), judge

    yield of("c complaints", "count", good[:-3])
    yield of("no complaint", "count", good[:1])
    yield of("three complaints, three colluders", "count", good, colluders=3)
    yield of("a part less", "length", good[:-1])
    yield of("a part more", "length", [*good, b""])
    yield of("a complaint twice", "ids", [*good[:4], *good[4:7], *good[4:7]])
    yield of("holders descend", "ids", [good[0], *good[4:7], *good[1:4], *good[7:]])
    accepts = of_complaints(r, 9, [1, 2, 3])
    yield of("a holder that accepted", "leaf", accepts)
    yield of("about another dealer", "signature", [dealt(r, 8), *good[1:]])
    yield of("complaints of another dealer", "leaf", of_complaints(r, 8, [1, 2, 5]), client=8)
    yield of("another client", "signature", good, client=8)
    one = good[1:4]
    yield of("one bit of a list", "signature", [good[0], flip(one[0], 8), *good[2:]])
    yield of("one bit of a signature", "signature", [*good[:2], flip(one[1]), *good[3:]])
    yield of("another's list", "signature", [good[0], *good[4:6], *good[3:]])
    for name, at in (("X", 8), ("a hash", 12), ("the check", 76), ("the box's digest", 108),
                     ("the path", -1)):  # fmt: skip
        # bit 4 of X makes another point of the tree
        bent = flip(one[2], at, 2 if at == 8 else 0)
        checks = "root" if at < 0 else "root or leaf"
        yield of(f"one bit of {name}", checks, [*good[:3], bent, *good[4:]])
    of_other = opened(r, 9, 3)
    yield of("the leaf of another holder", "signature", [*good[:3], of_other, *good[4:]])
    yield of("a path a node short", "length", [*good[:6], good[6][:-32], *good[7:]])
    yield of("a holder is not in the registry", "unknown client", good, left_out=[2])
    rows = [*dealing.read_list(list_of(r, 9, {})), (9, r.leaves(9)[8], 1)]
    own = [dealing.leaves_list(sorted(rows))]
    own.append(r.signature(9, dealing.accepted(r.session, 9, own[0])))
    yield of("the dealer complains of itself", "ids", [*good[:-3], *own, opened(r, 9, 9)])
    two = [list_of(r, 5, {9: 2}), accepted_of(r, 5, {9: 2})]
    yield of("a complaint 2 in suite x25519", "leaf", [*good[:-3], *two, good[-1]])
    yield from _of_two_roots(r)
    # a client of the registry that was never in the round
    r = rounds["active-one-never-comes"]
    v, w, path = 1, 5, bytes(64)
    opening = r.openings(v)[2]
    leaf = opening.leaf(r.session, v, w)
    list_ = dealing.leaves_list([(v, leaf, 1)])
    signed = r.signature(w, dealing.accepted(r.session, w, list_))
    parts = [dealt(r, v), list_, signed, opened_as(w, opening) + path]
    data = verdict(r, "complaints", v, parts)
    yield "a client that was never in the round", r, data, ["root"], {"colluders": 0}


def _of_two_roots(r: Round) -> Iterator[tuple]:
    """A holder complains of a leaf that the dealer signed for another root."""
    v, among = 3, (1, 2, 5)
    other = Redealt(r, v, {w: {"box": b"noise" * 19 + b"."} for w in among})
    parts = [dealt(r, v)]
    for w in among:
        place, opening = r.holders[v].index(w), other.openings[w]
        rows = dealing.read_list(list_of(r, w, {}))
        rows = [(u, other.leaves[place], 1) if u == v else (u, leaf, 0) for u, leaf, _ in rows]
        list_ = dealing.leaves_list(rows)
        signed = r.signature(w, dealing.accepted(r.session, w, list_))
        parts += [list_, signed, opened_as(w, opening) + dealing.path(other.leaves, place)]
    yield "leaves under another root", r, verdict(r, "complaints", v, parts), ["root"]


def complainer(rounds: dict[str, Round]) -> Iterator[tuple]:
    r = rounds["active-unmasking"]
    a, b, c, d = r.u3
    two = {b: 1, c: 1}
    signed = [list_of(r, a, two), accepted_of(r, a, two)]
    good = of_complainer(r, a, signed, [b, c])

    def of(name: str, checks: list[str], parts: Parts, client: int = a) -> tuple:
        return name, r, verdict(r, "complainer", client, parts), checks

    one = [list_of(r, a, {b: 1}), accepted_of(r, a, {b: 1})]
    yield of("as many complaints as may lie", ["count"], of_complainer(r, a, one, [b]))
    none = [list_of(r, a, {}), get(r.sent["masked_input"][a], "accepted")]
    yield of("no complaint", ["count"], none)
    yield of("a complaint that is not opened", ["length"], good[:-2])
    yield of("more opened than complained of", ["length"],
             of_complainer(r, a, signed, [b, c, d]))  # fmt: skip
    yield of("a part less", ["length"], good[:-1])
    yield of("another client", ["signature"], good, client=b)
    yield of("one bit of the list", ["signature"], [flip(good[0], 8), *good[1:]])
    yield of("one bit of the signature", ["signature"], [good[0], flip(good[1]), *good[2:]])
    yield of("another's signature", ["signature"],
             [good[0], accepted_of(r, b, {a: 1, c: 1}), *good[2:]])  # fmt: skip
    yield of("dealers in another order", ["signature"], [*good[:2], *good[4:], *good[2:4]])
    other = opened(r, c, b)
    yield of("the leaf of another holder", ["ids", "leaf"], [*good[:-1], other])
    for name, at in (("a hash", 12), ("the check", 76), ("the path", -1)):
        yield of(f"one bit of {name}", ["root", "leaf"], [*good[:-1], flip(good[-1], at)])
    yield of("one bit of what is dealt", ["signature"], [*good[:2], flip(good[2]), *good[3:]])
    rows = dealing.read_list(list_of(r, a, two))
    descending = dealing.leaves_list(rows[::-1])
    signed = [descending, r.signature(a, dealing.accepted(r.session, a, descending))]
    yield of("a list that descends", ["ids"], of_complainer(r, a, signed, [c, b]))
    rows = sorted([*rows, (a, r.leaves(a)[r.holders[a].index(a)], 1)])
    itself = dealing.leaves_list(rows)
    signed = [itself, r.signature(a, dealing.accepted(r.session, a, itself))]
    yield of("itself", ["ids"], of_complainer(r, a, signed, sorted([a, b, c])))
    strange = {b: 1, c: 2}
    signed = [list_of(r, a, strange), accepted_of(r, a, strange)]
    parts = of_complainer(r, a, signed, [b, c])
    yield of("complaint 2 in suite x25519", ["leaf"], parts)
    strange = {b: 1, c: 3}
    signed = [list_of(r, a, strange), accepted_of(r, a, strange)]
    yield of("complaint 3", ["leaf", "length", "count"], of_complainer(r, a, signed, [b, c]))
