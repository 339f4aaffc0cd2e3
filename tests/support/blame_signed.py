"""Model of what honest clients sign in two rounds with a lying server, for z3.

A hash is the tuple of its inputs, so there are no collisions, and a root is the list of its
leaves. Each input of a hash, each part of a signed text and each check of a holder or of the
judge is a rule, which may be left out. Both rounds have the same clients, and the second has a
larger t. The shares, check and box that a dealer sends a holder in a round are one number,
`Signed.value`; 0 is 0^32 or noise.
"""

from __future__ import annotations

from typing import NamedTuple

import z3

from blame_search import Search

RULES = {
    "v in leaf": "dealing.leaves",
    "w in leaf": "dealing.leaves",
    "X in leaf": "dealing.leaves",
    "hashes in leaf": "dealing.leaves",
    "check in leaf": "dealing.leaves",
    "box in leaf": "dealing.leaves",
    "session in leaf": "dealing.leaves",
    "w in hash": "dealing.share_hashes",
    "session in hash": "dealing.share_hashes",
    "secret in dealt": "dealing.signed_dealt: commitment and s_v",
    "session in dealt": "dealing.signed_dealt",
    "v in list": "dealing.accepted_list",
    "leaf in list": "dealing.accepted_list: the leaf, not the root",
    "complaint in list": "dealing.accepted_list",
    "session in accepted": "dealing.signed_accepted",
    "v in answers": "dealing.answer_list",
    "kind in answers": "dealing.answer_list",
    "session in answer": "dealing.signed_answer",
    "own place": "client.complaints.check_dealt: X is the holder's own place",
    "own index": "client.complaints.check_dealt: the path is taken at index X - 1",
    "dealt": "client.complaints.check_dealt: the dealer signed the root",
    "box that came": "client.complaints.check_dealt: the leaf has the hash of this box",
    "complain": "client.complaints.judge: shares that miss the hashes are not accepted",
    "limit": "client.complaints.judge: at most 2t - n - 1 complaints",
    "session of P": "blame.check: the session follows from P",
    "t shares": "Case.secret: exactly t shares",
    "distinct w": "Case.secret, judge._complaints: the holders ascend",
    "index": "Case.check_root: the path is taken at index X - 1",
    "X in path": "Case.check_root: X is at most 2^L",
    "under root": "judge._complaints: the leaf is under the dealer's root",
    "signer": "Case.check_signer, judge._complaints: the leaf is of the holder that signed",
    "accepted": "Case.check_leaf: the holder accepted, and did not complain",
    "more than c": "judge._complaints",
    "more than limit": "judge._complainer: more than 2t - n - 1 complaints",
    "other w": "judge._contribution: the holder is not the dealer",
    "hybrid": "judge._contribution: in suite x25519 no leaf has a check",
    "hashes alone": "building.Accuser.answer: a verdict on a holder shows no share",
}
"""Every rule, with its place in the code."""

ROUNDS = (0, 1)
KINDS = (z3.IntVal(0), z3.IntVal(1))


class Hash(NamedTuple):
    """Inputs of the hash of a share."""

    kind: z3.ArithRef
    share: z3.ArithRef
    w: z3.ArithRef
    session: z3.ArithRef


class Leaf(NamedTuple):
    """Inputs of a leaf; the hashes are of the share of b, then of s."""

    v: z3.ArithRef
    w: z3.ArithRef
    point: z3.ArithRef
    hashes: tuple[Hash, Hash]
    check: z3.ArithRef
    box: z3.ArithRef
    session: z3.ArithRef


class Signed(Search):
    """Leaves under an honest dealer's root, and leaves that an honest holder complains of."""

    def __init__(self, n: int) -> None:
        super().__init__(RULES)
        self.n, self.room = n, 1 << (n - 1).bit_length()
        self.hybrid = self.bool("hybrid")
        # the round whose signatures the judge takes; P of the verdict is of round 0
        self.session = self.round()
        self.solver.add(self.rule("session of P", self.session == 0))

    def round(self) -> z3.ArithRef:
        """Return either round."""
        return self.int("round", 0, 1)

    def place(self) -> z3.ArithRef:
        """Return the place of any client, which is its id, too."""
        return self.int("place", 1, self.n)

    def content(self) -> z3.ArithRef:
        """Return any share, check or box."""
        return self.int("content", 0, 2 * self.n**2)

    def leaf(self) -> Leaf:
        """Return a leaf of any content."""
        one, other = (
            Hash(self.int("kind", 0, 1), self.content(), self.place(), self.round())
            for _ in KINDS
        )
        ids, point = (self.place(), self.place()), self.int("X", 1, 2 * self.room)
        rest = self.content(), self.content(), self.round()
        return Leaf(*ids, point, (one, other), *rest)

    def value(self, v: int, session: z3.ArithRef, w: z3.ArithRef) -> z3.ArithRef:
        """Return what honest v sends w in a round."""
        return w + self.n * (session + 2 * (v - 1))

    def dealt(self, v: int, session: z3.ArithRef, place: z3.ArithRef) -> Leaf:
        """Return the leaf at a place under the root of honest v."""
        own = self.value(v, session, place)
        check = z3.If(z3.And(place != v, self.hybrid), own, 0)
        one, other = (Hash(kind, own, place, session) for kind in KINDS)
        box = z3.If(place != v, own, 0)
        return Leaf(z3.IntVal(v), place, place, (one, other), check, box, session)

    def same_hash(self, a: Hash, b: Hash) -> z3.BoolRef:
        """Two shares have one hash."""
        return z3.And(
            a.kind == b.kind,
            a.share == b.share,
            self.rule("w in hash", a.w == b.w),
            self.rule("session in hash", a.session == b.session),
        )

    def same(self, a: Leaf, b: Leaf) -> z3.BoolRef:
        """Two leaves are one hash."""
        hashes = [self.same_hash(*both) for both in zip(a.hashes, b.hashes, strict=True)]
        return z3.And(
            self.rule("v in leaf", a.v == b.v),
            self.rule("w in leaf", a.w == b.w),
            self.rule("X in leaf", a.point == b.point),
            self.rule("hashes in leaf", z3.And(hashes)),
            self.rule("check in leaf", a.check == b.check),
            self.rule("box in leaf", a.box == b.box),
            self.rule("session in leaf", a.session == b.session),
        )

    def complains(self, w: int, v: int, session: z3.ArithRef, leaf: Leaf) -> z3.BoolRef:
        """Honest w complains of this leaf of honest v, by whatever the server sent."""
        dealt_in, place, box = self.round(), self.place(), self.content()
        own, me = self.value(v, session, z3.IntVal(w)), z3.IntVal(w)
        signed = z3.And(
            self.same(leaf, self.dealt(v, dealt_in, place)),
            self.rule("session in dealt", dealt_in == session),
            self.rule("own index", place == leaf.point),
        )
        shares = (Hash(kind, own, me, session) for kind in KINDS)
        fit = [self.same_hash(*both) for both in zip(leaf.hashes, shares, strict=True)]
        good = z3.And(box == own, *fit, z3.Or(z3.Not(self.hybrid), leaf.check == own))
        return z3.And(
            *(leaf.v == v, leaf.w == w, leaf.session == session),
            self.rule("own place", leaf.point == w),
            self.rule("dealt", signed),
            self.rule("box that came", leaf.box == box),
            # if the list has no complaints, the judge takes any entry for a complaint
            self.rule("complaint in list", z3.Not(good)),
        )

    def under(
        self, leaf: Leaf, v: int, dealt_in: z3.ArithRef
    ) -> tuple[z3.ArithRef, z3.BoolRef]:
        """Return the true place of a leaf that the judge finds under the root of honest v."""
        place = self.place()
        low_bits = z3.Or(leaf.point == place, leaf.point == place + self.room)
        return place, z3.And(
            leaf.v == v,
            leaf.session == self.session,
            self.same(leaf, self.dealt(v, dealt_in, place)),
            self.rule("session in dealt", dealt_in == self.session),
            self.rule("index", low_bits),
            self.rule("X in path", leaf.point <= self.room),
        )
