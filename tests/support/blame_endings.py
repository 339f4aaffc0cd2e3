"""Model of a round with an honest server: z3 looks for faults of which nobody is named.

Liars deal bad boxes, off shares and wrong contributions, complain of anybody, and reveal wrong
shares. All clients may drop out. A share is *off* if it is not on the polynomial of the
published secret; then t shares convict the dealer (`test_model_of_blame`). A box is *bad* if it
does not open to shares, p and q for which the dealer signed. Nobody is named for what no
signature proves.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import z3

from blame_search import Search

RULES = {
    "root": "server: dealt verifies over the root that the server recomputes",
    "complain": "client: a holder without shares of the signed hashes complains",
    "ends nothing": "client: a bad box does not end the receiver",
    "disclosed": "server: a mask that one of a pair left out, by complaint 2, is removed",
    "accepted": "server: accepted verifies over the leaves that were sent",
    "limit": "server: rejects and names a holder with more than 2t - n - 1 complaints",
    "more than c": "server: more than c complaints name a dealer",
    "early": "server: they do so whether or not the round goes on",
    "acceptors": "server: ends the round if fewer than t of U3 accepted a dealer's shares",
    "acceptors first": "server: does so before the round ends as U3 is not connected",
    "own leaf": "client: dealers sign a hash of their own share, too",
    "answer": "server: answer verifies over the shares that came",
    "wrong share": "server: a share without its signed hash names the holder and is left out",
    "ff": "server: ff is no bad share after a complaint",
    "off": "server: shares that do not give the published secret name the dealer",
    "contribution": "server: p and q of a rebuilt seed that miss a check name the dealer",
}
"""Every rule that has an event."""

Each = dict[int, z3.BoolRef]
Pairs = dict[tuple[int, int], z3.BoolRef]


class Endings(Search):
    """Rounds of n holders, of whom at most c lie.

    Attributes
    ----------
    events : dict of str to z3.BoolRef
        Events that must not happen.
    """

    def __init__(self, n: int, t: int, c: int) -> None:
        super().__init__(RULES)
        self.t, self.c, self.limit = t, c, 2 * t - n - 1
        self.clients = range(1, n + 1)
        self.hybrid = self.bool("hybrid")
        self.liar = self._each("client {} lies")
        self.solver.add(self.count(self.liar.values()) <= c)
        self.shared, sent, self.answered = (self._each() for _ in range(3))
        for u in self.clients:
            self.solver.add(z3.Implies(self.answered[u], sent[u]))
            self.solver.add(z3.Implies(sent[u], self.shared[u]))
            self.tell(f"client {u} drops out", when=z3.Not(self.answered[u]))
        self._deal()
        self._hold(sent)
        self._close()
        self._reveal()
        self._rebuild()
        dropped = [z3.Or(z3.Not(self.answered[u]), self.over[u]) for u in self.clients]
        self.events = self._events(t + c + self.count(dropped) <= n)

    def _deal(self) -> None:
        """Round 1, at the dealers."""
        self.bad_root = self._each("client {} signs another root", of=self.liar)
        for v in self.clients:
            rejected = z3.And(self.on["root"], self.bad_root[v])
            self.solver.add(z3.Implies(rejected, z3.Not(self.shared[v])))
        self.bad = self._pairs("the box of {} for {} is bad", of=self.liar)
        self.off_share = self._pairs("the share of {} for {} is off", of=self.liar, own=True)
        self.missed = self._each("{} checks other p and q", of=self.liar)

    def _hold(self, sent: Each) -> None:
        """Round 2, at the holders: who complains, who ends, and whose input comes."""
        lie = self._pairs("")
        self.complains, self.unmasked = Pairs(), Pairs()
        for v, w in lie:
            of_honest = z3.And(self.bad[v, w], self.on["complain"])
            says = z3.If(self.liar[w], lie[v, w], of_honest)
            self.complains[v, w] = z3.And(self.shared[v], says)
            kind_2 = z3.And(self.complains[v, w], self.hybrid, self.bool("complaint 2"))
            self.unmasked[v, w] = kind_2
            told = z3.And(sent[w], self.complains[v, w])
            self.tell(f"client {w} complains of {v}, leaves it out: {{}}", kind_2, when=told)
        self.bound = {
            w: z3.Or(z3.Not(self.liar[w]), self.on["accepted"], self.bool("bound"))
            for w in self.clients
        }
        self.u3, self.over = Each(), Each()
        for w in self.clients:
            others = [v for v in self.clients if v != w]
            root = z3.Or([z3.And(self.shared[v], self.bad_root[v]) for v in others])
            box = z3.Or([z3.And(self.shared[v], self.bad[v, w]) for v in others])
            ends = z3.Or(root, z3.And(self.off("ends nothing"), box))
            many = self.count(self.complains[v, w] for v in others) > self.limit
            comes = z3.And(sent[w], z3.Not(z3.And(ends, z3.Not(self.liar[w]))))
            self.over[w] = z3.And(comes, many, self.bound[w], self.on["limit"])
            self.u3[w] = z3.And(comes, z3.Not(self.over[w]))

    def _close(self) -> None:
        """Round 2, at the server."""
        self.lacking, more = Each(), Each()
        for v in self.clients:
            holders = [w for w in self.clients if w != v]
            took = [z3.And(self.u3[w], z3.Not(self.complains[v, w])) for w in holders]
            self.lacking[v] = z3.And(self.shared[v], self.count([*took, self.u3[v]]) < self.t)
            proofs = [z3.And(self.u3[w], self.complains[v, w], self.bound[w]) for w in holders]
            count = self.count(proofs)
            one_less = z3.And(self.off("more than c"), count == self.c, self.c > 0)
            more[v] = z3.And(self.shared[v], z3.Or(count > self.c, one_less))
        self.few = self.count(self.u3.values()) < self.t
        self.apart = self._apart()
        late = z3.And(self.off("acceptors first"), self.apart)
        lacking = z3.Or(list(self.lacking.values()))
        self.no_dealer = z3.And(self.on["acceptors"], lacking, z3.Not(late), z3.Not(self.few))
        self.stopped = z3.Or(self.few, self.no_dealer, self.apart)
        when = z3.Or(self.on["early"], self.stopped)
        self.by_complaints = {v: z3.And(so, when) for v, so in more.items()}

    def _apart(self) -> z3.BoolRef:
        """U3 is not connected by the pairs without a complaint 2."""
        cuts = []
        for size in range(1, len(self.clients) // 2 + 1):
            for side in combinations(self.clients, size):
                rest = [u for u in self.clients if u not in side]
                edges = [
                    z3.And(self.u3[a], self.u3[b], z3.Not(self._two(a, b)))
                    for a in side
                    for b in rest
                ]
                both = z3.Or([self.u3[a] for a in side]), z3.Or([self.u3[b] for b in rest])
                cuts.append(z3.And(*both, z3.Not(z3.Or(edges))))
        return z3.Or(cuts)

    def _two(self, a: int, b: int) -> z3.BoolRef:
        return z3.Or(self.unmasked[a, b], self.unmasked[b, a])

    def _reveal(self) -> None:
        """Round 4: which shares come, and which are wrong."""
        wrong, here = self._pairs("", own=True), Each()
        for w in self.clients:
            complains = z3.Or([self.complains[v, w] for v in self.clients if v != w])
            # without the rule the whole message is rejected; a liar may reveal noise instead
            passes = z3.Or(self.on["ff"], self.liar[w], z3.Not(complains))
            here[w] = z3.And(self.u3[w], self.answered[w], passes)
        self.good, self.wrong, self.by_answer = Pairs(), Pairs(), Each()
        for v, w in wrong:
            accepted = z3.And(self.shared[v], z3.Not(self.complains[v, w])) if v != w else True
            of_honest = self.bad[v, w] if v != w else False
            lies = z3.If(self.liar[w], wrong[v, w], of_honest)
            self.wrong[v, w] = z3.And(here[w], accepted, lies, z3.Not(self.stopped))
            self.good[v, w] = z3.And(here[w], accepted, z3.Not(lies))
            self.tell(f"client {w} reveals a wrong share of {v}", when=self.wrong[v, w])
        for w in self.clients:
            bound = {v: self.on["own leaf"] if v == w else self.bound[w] for v in self.clients}
            proofs = [z3.And(self.wrong[v, w], bound[v]) for v in self.clients]
            signed = z3.Or(self.on["answer"], z3.Not(self.liar[w]), self.bool("signed"))
            self.by_answer[w] = z3.And(self.on["wrong share"], signed, z3.Or(proofs))

    def _rebuild(self) -> None:
        """Round 4: secrets, and whether there is a sum."""
        few, off, no_secret, missed = [], Each(), [], Each()
        for v in self.clients:
            good = {w: self.good[v, w] for w in self.clients}
            fit = [z3.And(so, z3.Not(self.off_share[v, w])) for w, so in good.items()]
            off_good = [z3.And(so, self.off_share[v, w]) for w, so in good.items()]
            few.append(z3.And(self.shared[v], self.count(good.values()) < self.t))
            off[v] = z3.And(self.shared[v], z3.Or(off_good))
            no_secret.append(z3.And(self.shared[v], self.count(fit) < self.t))
            missed[v] = z3.And(self.count(fit) >= self.t, self._misses(v))
        opens = z3.And(z3.Not(self.stopped), z3.Not(z3.Or(few)))
        self.off_found = {v: z3.And(opens, so) for v, so in off.items()}
        self.by_shares = {v: z3.And(self.on["off"], so) for v, so in self.off_found.items()}
        self.misses = {v: z3.And(opens, so) for v, so in missed.items()}
        self.by_check = {
            v: z3.And(self.on["contribution"], so) for v, so in self.misses.items()
        }
        # a mask that is not removed spoils the sum, and so do wrong p and q that nobody finds
        alone = [
            z3.And(self.u3[v], self.u3[w], two, z3.Not(self.unmasked[w, v]))
            for (v, w), two in self.unmasked.items()
        ]
        spoiled = z3.Or(*self.misses.values(), z3.And(self.off("disclosed"), z3.Or(alone)))
        self.fails = z3.Or(z3.Not(opens), *no_secret, spoiled)

    def _misses(self, v: int) -> z3.BoolRef:
        """The dealer dropped out, and p and q for a survivor that masked with it are others."""
        masked = [
            z3.And(self.u3[w], z3.Not(self.unmasked[v, w])) for w in self.clients if w != v
        ]
        gone = z3.And(self.shared[v], z3.Not(self.u3[v]), self.hybrid)
        return z3.And(gone, self.missed[v], z3.Or(masked))

    def _events(self, promised: z3.BoolRef) -> dict[str, z3.BoolRef]:
        by = self.by_complaints, self.by_answer, self.by_shares, self.by_check, self.over
        named = {u: z3.Or([kind[u] for kind in by]) for u in self.clients}
        nobody = z3.Not(z3.Or(list(named.values())))
        bad = {
            v: self.count(
                z3.And(self.shared[v], self.bad[v, w], self.u3[w], z3.Not(self.liar[w]))
                for w in self.clients
                if w != v
            )
            for v in self.clients
        }
        many = {
            w: self.count(self.complains[v, w] for v in self.clients if v != w) > self.limit
            for w in self.clients
        }
        goes_on = z3.And(z3.Not(self.few), z3.Not(self.no_dealer))

        def some(holds: Iterable[tuple[int, z3.BoolRef]], names: Each = named) -> z3.BoolRef:
            """Something holds of a client that is not named for it."""
            return z3.Or([z3.And(so, z3.Not(names[u])) for u, so in holds])

        honest = {u: z3.And(named[u], z3.Not(self.liar[u])) for u in self.clients}
        return {
            "an honest client is named": z3.Or(list(honest.values())),
            "no sum, nobody named": z3.And(promised, self.fails, nobody),
            "dealer ends the round": z3.And(promised, some(self.lacking.items())),
            "shares": some(self.off_found.items(), self.by_shares),
            "answer": some(((w, so) for (_, w), so in self.wrong.items()), self.by_answer),
            "complaints": some(((v, n > self.c) for v, n in bad.items()), self.by_complaints),
            "contribution": some(self.misses.items(), self.by_check),
            "complainer": some((w, z3.And(self.u3[w], so)) for w, so in many.items()),
            "neither named nor disputed": z3.And(goes_on, some(self.lacking.items())),
            "not connected": z3.And(goes_on, self.apart, nobody),
        }

    def _each(self, text: str = "", of: Each | None = None) -> Each:
        """Return a choice for each client, or each client of some, and tell it."""
        choices = {}
        for u in self.clients:
            choices[u] = z3.And(self.bool(text), True if of is None else of[u])
            if text:
                self.tell(text.format(u), when=choices[u])
        return choices

    def _pairs(self, text: str, of: Each | None = None, *, own: bool = False) -> Pairs:
        """Return a choice for each dealer, or each dealer of some, and each holder."""
        choices = {}
        for v in self.clients:
            for w in self.clients:
                if v == w and not own:
                    continue
                choices[v, w] = z3.And(self.bool(text), True if of is None else of[v])
                if text:
                    self.tell(text.format(v, w), when=choices[v, w])
        return choices
