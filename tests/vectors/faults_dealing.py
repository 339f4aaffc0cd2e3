"""Faults of what an active round signs of its shares (docs/protocol.md §8.2 and §8.3)."""

from draws import draw
from faults import Cases, Faults, flip
from kinds import get
from signing import Redealt, shares_of
from whole_round import Round

import independent_dealing as dealing
from independent_primitives import cut, u32le

COLUMNS = {"commitments": 32, "dealt": 64, "points": 4, "hashes": 64, "paths": 64}
"""Bytes for each sender in the columns of Shares, among three clients."""


def dealing_faults(rounds: dict[str, Round]) -> Cases:
    out: Cases = []
    _semi_honest(out, rounds["complete-nobody-drops"])
    for name in ("active-prime", "hybrid-active-three"):
        _share_keys(out, rounds[name], rounds["active"])
        _shares(out, rounds[name], rounds["active"])
    _too_many(out, rounds["active-unmasking"])
    _too_many(out, rounds["hybrid-active-unmasking"])
    return out


def _semi_honest(out: Cases, r: Round) -> None:
    """Fields of the active variant, and of suite hybrid."""
    a = r.u1[0]
    for side, phase, names in (
        ("server", "share_keys", {"checks": 64, "hashes": 192, "dealt": 64}),
        ("server", "masked_input",
         {"deposits": 64, "complaints": 9, "disclosed": 96, "accepted": 64}),
        ("server", "unmasking", {"answer": 64}),
        ("client", "masked_input", {"checks": 64} | {n: 2 * x for n, x in COLUMNS.items()}),
    ):  # fmt: skip
        to = Faults(out, side, r, phase, a)
        for name, size in names.items():
            to(f"{name} of another variant", "length", **{name: bytes(size)})


def _share_keys(out: Cases, r: Round, other: Round) -> None:
    a, b, _ = r.u1
    to = Faults(out, "server", r, "share_keys", a)
    hashes, good = get(to.good, "hashes"), get(to.good, "dealt")
    to.each("length", "hashes", {
        "no hashes": b"",
        "the hashes of one holder missing": hashes[:-64],
        "hashes a byte short": hashes[:-1],
    })  # fmt: skip
    own, root, s = get(to.good, "commitment"), Redealt(r, a, {}).root, r.clients[a].own[1]

    def signed(
        by: int = a, session: bytes = r.session, u: int = a, about: bytes = own,
        key: bytes = s, of: bytes = root,
    ) -> bytes:  # fmt: skip
        return r.signature(by, dealing.dealt(session, u, about, key, of))

    assert signed() == good
    from_zero = {w: {"x": x} for x, w in enumerate(r.holders[a])}
    to.each("dealt", "dealt", {
        "not signed": b"",
        "63 bytes of the signature": good[:63],
        "one bit of the signature": flip(good),
        "another's signature": get(r.sent["share_keys"][b], "dealt"),
        "signed by another": signed(b),
        "signed for another session": signed(session=other.session),
        "signed for another dealer": signed(u=b),
        "signed over another commitment": signed(about=flip(own)),
        "signed over another masking key": signed(key=r.clients[b].own[1]),
        "signed over another root": signed(of=flip(root)),
        "points from 0 on": Redealt(r, a, from_zero).signature(),
    })  # fmt: skip
    if r.params.hybrid:
        zeros = {w: {"check": bytes(32)} for w in r.holders[a]}
        to("checks are not in the root", "dealt", dealt=Redealt(r, a, zeros).signature())
        to("one bit of a check", "dealt", checks=flip(get(to.good, "checks")))
    to("one bit of a hash", "dealt", hashes=flip(hashes))
    swapped = hashes[32:64] + hashes[:32] + hashes[64:]
    to("the hashes of a holder swapped", "dealt", hashes=swapped)
    to("the hashes of two holders swapped", "dealt", hashes=hashes[64:] + hashes[:64])
    to("one bit of a box", "dealt", sealed=flip(get(to.good, "sealed")))
    to("one bit of the commitment", "dealt", commitment=flip(own))


def _shares(out: Cases, r: Round, other: Round) -> None:
    w, u, v = r.u1[1], r.u1[0], r.u1[2]
    to = Faults(out, "client", r, "masked_input", w)
    for name, size in COLUMNS.items():
        column = get(to.good, name)
        to.each("length", name, {
            f"no {name}": b"",
            f"{name} of one missing": column[:size],
            f"{name} a byte short": column[:-1],
            f"{name} of one too many": column + column[:size],
        })  # fmt: skip
        to(f"one bit of {name}", "dealt", **{name: flip(column)})
        to(f"{name} of the last, one bit", "dealt", **{name: flip(column, -1)})
        if name != "points":
            to(f"{name} swapped", "dealt", **{name: column[size:] + column[:size]})
    for x in (0, 1, 3, 2**32 - 1):
        to(f"the point {x}", "dealt", points=u32le(x) + u32le(2))
    sealed = get(to.good, "sealed")
    boxes = cut(sealed, r.params.box)
    to("one bit of a box", "dealt", sealed=flip(sealed))
    to("the tag of a box, one bit", "dealt", sealed=flip(sealed, -1))
    to("boxes swapped", "dealt", sealed=boxes[1] + boxes[0])
    if r.params.hybrid:
        checks = get(to.good, "checks")
        to("one bit of a check", "dealt", checks=flip(checks))
        to("checks swapped", "dealt", checks=checks[32:] + checks[:32])
    path, hashes = get(to.good, "paths"), get(to.good, "hashes")
    to("the path from the root down", "dealt", paths=path[32:64] + path[:32] + path[64:])
    swapped = hashes[32:64] + hashes[:32] + hashes[64:]
    to("hashes of a sender swapped", "dealt", hashes=swapped)
    theirs, place = r.openings(u)[v], r.holders[u].index(v)
    their_path = dealing.path(r.leaves(u), place) + path[64:]
    box, their_hashes = r.sealed(u, v) + boxes[1], theirs.hashes + hashes[64:]
    of_v = {"hashes": their_hashes, "sealed": box, "paths": their_path}
    if r.params.hybrid:
        of_v["checks"] = theirs.check + checks[32:]
    to("the leaf of another holder", "dealt", **of_v, points=u32le(place + 1) + u32le(2))
    to("the leaf of another holder in its place", "dealt", **of_v)
    _signatures(to, r, other, u)


def _signatures(to: Faults, r: Round, other: Round, u: int) -> None:
    """Signatures of u in the Shares to another client."""
    signed, rest = Redealt(r, u, {}), get(to.good, "dealt")[64:]
    about = u, signed.commitment, r.clients[u].own[1], signed.root
    over = dealing.dealt(r.session, *about)
    cases = {
        "signed by another": r.signature(r.u1[2], over),
        "signed for another session":
            r.signature(u, dealing.dealt(other.session, *about)),
        "signed over another masking key":
            r.signature(u, dealing.dealt(r.session, *about[:2], r.clients[r.u1[2]].own[1],
                                         signed.root)),
        "signed without a label": r.signature(u, over.removeprefix(b"secagg/4 dealt")),
        "a signature of zeros": bytes(64),
    }  # fmt: skip
    to.each("dealt", "dealt", {name: value + rest for name, value in cases.items()})


def _too_many(out: Cases, r: Round) -> None:
    """Two of four dealers send boxes that do not open, and sign them."""
    w = r.u1[0]
    to = Faults(out, "client", r, "masked_input", w)
    noise = {v: draw(f"noise {r.name} {v}", r.params.box) for v in r.u1[1:3]}
    redealt = [Redealt(r, v, {w: {"box": box}}) for v, box in noise.items()]
    to("two boxes that do not open", "dealer", message=shares_of(to.good, w, redealt))
    other = {v: {w: {"hashes": flip(r.openings(v)[w].hashes, 32)}} for v in r.u1[1:3]}
    redealt = [Redealt(r, v, changes) for v, changes in other.items()]
    to("two shares with other hashes", "dealer", message=shares_of(to.good, w, redealt))
