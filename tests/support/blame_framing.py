"""Model of verdicts: z3 looks for proofs against an honest client.

The adversary is the server with the liars among the clients. It has every message, chooses what
it passes on, and signs as the liars. `blame_signed` has what honest clients sign. Client
`TARGET` is honest, and each of `VERDICTS` is all that the judge asks of a verdict on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product

import z3

from blame_signed import KINDS, ROUNDS, Hash, Leaf, Signed

TARGET = 1


class Framing(Signed):
    """All that n clients can sign, of whom at most c lie, or another number of liars."""

    def __init__(self, n: int, t: int, c: int, *, liars: int | None = None) -> None:
        super().__init__(n)
        self.t, self.c, self.limit = t, c, 2 * t - n - 1
        self.others = range(TARGET + 1, n + 1)
        self.liar = {u: self.bool(f"liar {u}") for u in self.others}
        self.solver.add(self.count(self.liar.values()) <= (c if liars is None else liars))
        for u, lies in self.liar.items():
            self.tell(f"client {u} lies", when=lies)

    def shares(self) -> z3.BoolRef:
        """t shares of the target give another secret than it published."""
        dealt_in, published = self.round(), self.real("published")
        f = [[self.real("coefficient") for _ in range(self.t + r)] for r in ROUNDS]
        secret = z3.If(dealt_in == 0, f[0][0], f[1][0])
        parts, leaves, points = [self.rule("secret in dealt", published == secret)], [], []
        for i in range(self.t):
            leaf, share = self.leaf(), self.real("share")
            place, under = self.under(leaf, TARGET, dealt_in)
            dealt = z3.If(dealt_in == 0, *(_at(f[r], place, self.n) for r in ROUNDS))
            made = leaf.hashes[0]  # the judge makes this hash itself
            parts += [
                under,
                made.kind == 0,
                made.w == leaf.w,
                made.session == self.session,
                self.rule("hashes in leaf", share == dealt),
            ]
            leaves.append(leaf)
            points.append((leaf.point, share))
            counts = True if i else self.on["t shares"]
            self.tell("share {} as of client {} at {}", place, leaf.w, leaf.point, when=counts)
        all_, fewer = self._other(published, points), self._other(published, points[1:])
        enough = z3.And(all_, self._distinct(leaves))
        less = z3.And(self.off("t shares"), fewer, self._distinct(leaves[1:]))
        return z3.And(*parts, z3.Or(enough, less))

    def contribution(self) -> z3.BoolRef:
        """A check of the target misses p and q of its seed, rebuilt after it dropped out."""
        leaf, dealt_in = self.leaf(), self.round()
        place, under = self.under(leaf, TARGET, dealt_in)
        self.tell("check {} as of client {}; hybrid: {}", place, leaf.w, self.hybrid)
        return z3.And(
            under,
            leaf.check != self.value(TARGET, self.session, leaf.w),
            self.rule("other w", leaf.w != TARGET),
            self.rule("hybrid", self.hybrid),
        )

    def complaints(self) -> z3.BoolRef:
        """More than c holders complain of the target."""
        dealt_in = self.round()
        leaves, parts = [], []
        for i in range(self.c + 1):
            leaf, listed, signer, session = self.leaf(), self.leaf(), self.place(), self.round()
            place, under = self.under(leaf, TARGET, dealt_in)
            signed = [self._lists(w, session, listed, signer) for w in self.others]
            complaint = z3.And(
                z3.Or(signed),
                leaf.v == TARGET,
                leaf.session == self.session,
                self.rule("leaf in list", self.same(leaf, listed)),
                self.rule("session in accepted", session == self.session),
                self.rule("under root", under),
                self.rule("signer", leaf.w == signer),
            )
            leaves.append(leaf)
            parts.append(complaint)
            counts = True if i or not self.c else self.on["more than c"]
            fact = "client {} complains of leaf {} as of client {}"
            self.tell(fact, signer, place, leaf.w, when=counts)
        enough = z3.And(*parts, self._distinct(leaves))
        less = z3.And(*parts[1:], self._distinct(leaves[1:]), self.off("more than c"))
        return z3.Or(enough, less) if self.c else enough

    def answer(self) -> z3.BoolRef:
        """The target, as a holder, revealed another share than it accepted."""
        leaf, kind = self.leaf(), self.int("kind", 0, 1)
        listed, answered = [], []
        for r, v in product(ROUNDS, self.others[:2]):  # it holds shares of two dealers
            got, accepted, of_v = self.leaf(), self.bool("accepted"), leaf.v == v
            self.solver.add(got.v == v, got.w == TARGET, got.session == r)
            round_, me = z3.IntVal(r), z3.IntVal(TARGET)
            opened = [Hash(kind, self.content(), me, round_) for kind in KINDS]
            fit = [self.same_hash(*both) for both in zip(opened, got.hashes, strict=True)]
            self.solver.add(self.rule("complain", z3.Implies(accepted, z3.And(fit))))
            in_list = z3.And(
                self.rule("leaf in list", self.same(leaf, got)),
                self.rule("v in list", of_v),
                self.rule("accepted", accepted),
                self.rule("session in accepted", self.session == r),
            )
            told = self.int("told", 0, 1)
            # after a complaint it answers with ff, which has another hash
            right = z3.And(accepted, self._right(leaf, kind, told, opened))
            in_answers = z3.And(
                z3.Not(right),
                self.rule("v in answers", of_v),
                self.rule("kind in answers", told == kind),
                self.rule("session in answer", self.session == r),
            )
            self.tell(f"list of round {r}: client {v}, accepted: {{}}", accepted, when=in_list)
            self.tell(f"answers of round {r}: client {v}, kind {{}}", told, when=in_answers)
            listed.append(in_list)
            answered.append(in_answers)
        given = z3.And(leaf.session == self.session, z3.Or(listed), z3.Or(answered))
        return z3.And(
            self.rule("signer", leaf.w == TARGET), z3.Or(given, self._own(leaf, kind))
        )

    def complainer(self) -> z3.BoolRef:
        """The target complains of more than 2t - n - 1 dealers."""
        session, dealt_in, entries = self.round(), self.round(), []
        for v in self.others:
            leaf = self.leaf()
            _, under = self.under(leaf, v, dealt_in)
            # acceptances count, too, if the list has no complaints
            of_liar = z3.Or(self.bool("bad box"), self.off("complaint in list"))
            complains = self.complains(TARGET, v, session, leaf)
            of_honest = z3.And(complains, self.rule("under root", under))
            entries.append(z3.If(self.liar[v], of_liar, of_honest))
            self.tell(f"it complains of client {v}", when=entries[-1])
        count = self.count(entries)
        limited = z3.Or(self.off("limit"), self.off("complaint in list"), count <= self.limit)
        as_many = z3.And(self.off("more than limit"), count == self.limit, count > 0)
        return z3.And(
            limited,
            self.rule("session in accepted", session == self.session),
            z3.Or(count > self.limit, as_many),
        )

    def shows(self) -> z3.BoolRef:
        """A verdict on another client shows a share that the target dealt.

        A liar's answers have the shares of all dealers, and a dealer's verdict only its own.
        """
        return z3.And(self.off("hashes alone"), z3.Or(list(self.liar.values())))

    def _lists(
        self, w: int, session: z3.ArithRef, listed: Leaf, signer: z3.ArithRef
    ) -> z3.BoolRef:
        """Client w signs a complaint of a leaf, in an entry that the judge takes."""
        of_liar = [z3.And(listed.v == v, self.liar[v]) for v in self.others]
        other = z3.And(z3.Or(of_liar), listed.w == w, listed.session == session)
        honest = self.complains(w, TARGET, session, listed)
        signs = z3.Or(self.liar[w], honest, z3.And(self.off("v in list"), other))
        return z3.And(signer == w, signs)

    def _right(
        self, leaf: Leaf, kind: z3.ArithRef, told: z3.ArithRef, shares: Sequence[Hash]
    ) -> z3.BoolRef:
        """The answer is the hash of a kind in a leaf."""
        pairs = product(enumerate(leaf.hashes), enumerate(shares))
        return z3.Or(
            [
                z3.And(kind == k, told == j, self.same_hash(accepted, share))
                for (k, accepted), (j, share) in pairs
            ]
        )

    def _own(self, leaf: Leaf, kind: z3.ArithRef) -> z3.BoolRef:
        """The target revealed another share of its own b than it dealt itself."""
        dealt_in, session, me = self.round(), self.round(), z3.IntVal(TARGET)
        place, under = self.under(leaf, TARGET, dealt_in)
        shares = [Hash(kind, self.value(TARGET, session, me), me, session) for kind in KINDS]
        given = z3.And(
            under,
            z3.Not(self._right(leaf, kind, KINDS[0], shares)),
            self.rule("kind in answers", kind == 0),
            self.rule("session in answer", session == self.session),
        )
        self.tell(
            "own secret, leaf {} as of client {}, kind {}", place, leaf.w, kind, when=given
        )
        return given

    def _other(
        self, published: z3.ArithRef, points: Sequence[tuple[z3.ArithRef, z3.ArithRef]]
    ) -> z3.BoolRef:
        """The polynomial through some points has another secret.

        Through equal points go many polynomials, so the judge's value is any.
        """
        g = [self.real("coefficient") for _ in points]
        fits = [share == _at(g, x, 2 * self.room) for x, share in points]
        return z3.And(g[0] != published, *fits) if g else z3.BoolVal(False)

    def _distinct(self, leaves: Iterable[Leaf]) -> z3.BoolRef:
        pairs = combinations(leaves, 2)
        return z3.And([self.rule("distinct w", one.w != other.w) for one, other in pairs])


def _at(f: Sequence[z3.ArithRef], x: z3.ArithRef, most: int) -> z3.ArithRef:
    """Return f(x) for x up to `most`, in which the coefficients are linear."""
    value: z3.ArithRef = z3.RealVal(0)
    for at in range(1, most + 1):
        value = z3.If(x == at, z3.Sum([a * at**j for j, a in enumerate(f)]), value)
    return value


VERDICTS: dict[str, Callable[[Framing], z3.BoolRef]] = {
    "shares": Framing.shares,
    "answer": Framing.answer,
    "complaints": Framing.complaints,
    "contribution": Framing.contribution,
    "complainer": Framing.complainer,
    "shows": Framing.shows,
}
