"""Model of a one-shot sum with a lying aggregator: z3 looks for runs that open an input.

The adversary is the aggregator with helpers 1 … t − 1 and client `CORRUPT`. It picks lists,
boxes and the order of requests; honest helpers obey `Rules`. What it sees is linear in inputs
x_v and masks m_{v,S}, since PRG outputs under unknown seeds are independent and uniform:

    y_v = x_v + Σ_S m_{v,S},    m_{v,S} if a corrupt helper holds S,    Σ m_{v,S} of an answer.

A combination Σ c_v x_v is known iff answers cancel Σ c_v m_{v,S} for every other S. It is more
than the protocol allows if fewer honest clients than a batch must have share a coefficient
c_v ≠ 0: it is then no combination of sums over disjoint, large lists. `oneshot_view.opened`
checks a run again by the rank of the whole matrix, without this reasoning.

A repeated request tells nothing new, so each helper reserves, signs and opens each list at most
once, and times order the events. Left out are lengths, versions and batch numbers, which decide
availability alone, and noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import z3

from oneshot_view import HONEST, REPORTS, SECOND, Run

RULES = {
    "count": "Helper._read: a list has min_clients or more",
    "ids": "messages.read_request: the ids of a list strictly ascend",
    "unchecked": "Helper._read: every id of a list has a checked box",
    "registry": "Helper._verify: a registered client signed the head",
    "commitments": "Helper._verify: the seeds of a box are those of the signed commitments",
    "id in the info": "messages.box_info",
    "id in the commitment": "seeds.commitment",
    "id in the mask's key": "seeds.mask_keys",
    "session in the info": "messages.read_head, in messages.box_info",
    "session in the commitment": "seeds.commitment",
    "session in the mask's key": "seeds.mask_keys",
    "head in D": "messages.list_digest: D names each client's report",
    "spent": "HelperJournal.reserve: an id is in one list",
    "durable": "HelperJournal: one journal, never restored from a copy",
    "reserve first": "Helper.reserve: ids are reserved before the list is signed",
    "quorum": "Helper.open: q helpers signed, not q − 1",
    "signers": "messages.read_request: each signature is of another helper",
    "signed": "replies.check_signature: signatures are over this D",
    "distinct keys": "OneShotParams: no two helpers have a key in common",
    "endorsed": "OneShotPolicy: all helpers are ones that the client accepts",
    "fixed list": "Accumulator.request: in the semi-honest variant, one list forever",
}
"""Every rule, with its place in the code."""

CORRUPT, SYBIL, UNCHECKED = HONEST, HONEST + 1, HONEST + 2
"""Ids that a list may have beside those of the honest clients."""
MIN_CLIENTS = 3
_EVENTS = ("reserve", "sign", "open")
_PARTS = ("the info", "the commitment", "the mask's key")


class Model:
    """Symbolic runs with t of ℓ helpers and a few lists, under all rules but some."""

    def __init__(
        self,
        threshold: int,
        helpers: int,
        *,
        active: bool = True,
        without: Iterable[str] = (),
        lists: int = 3,
    ) -> None:
        self.active, self.without = active, frozenset(without)
        assert self.without <= RULES.keys()
        self.t, self.helpers = threshold, range(1, helpers + 1)
        self.lists = range(lists)
        self.subsets = list(combinations(self.helpers, threshold - 1))
        self.honest = [j for j in self.helpers if j >= threshold]
        self.quorum = 0
        if active and threshold < helpers:
            self.quorum = (helpers + threshold - 1) // 2 + 1 - (not self.has("quorum"))
        self.solver = z3.Solver()
        self._keys()
        self._lists()
        self._boxes()
        self._events()
        self._view()

    def has(self, *rules: str) -> bool:
        """Return whether one of these rules, which all stop the same, is in force."""
        return bool(set(rules) - self.without)

    def attack(self) -> Run | None:
        """Return a run in which the adversary learns what it must not, or None."""
        sharing = z3.Sum([z3.If(c == 1, 1, 0) for c in self.c])
        return self._shortest(self.c[0] == 1, sharing < MIN_CLIENTS - 1)

    def opening(self, wanted: Sequence[int]) -> Run | None:
        """Return a run in which the adversary learns Σ c_v x_v for these c_v, or None."""
        return self._shortest(*(c == value for c, value in zip(self.c, wanted, strict=True)))

    def _shortest(self, *goal: z3.BoolRef) -> Run | None:
        """Return a run with as few events as possible."""
        events = z3.Sum([z3.If(e, 1, 0) for done in self.done.values() for e in done.values()])
        found = None
        self.solver.push()
        self.solver.add(*goal)
        while self.solver.check() == z3.sat:
            found = self.solver.model()
            self.solver.add(events < found.eval(events, model_completion=True))
        self.solver.pop()
        return None if found is None else self._run(found)

    def _keys(self) -> None:
        """Owners of the keys at the helpers' places; 0 is the aggregator itself."""
        owner = [z3.Int(f"owner {j}") for j in self.helpers]
        for j, key in zip(self.helpers, owner, strict=True):
            # every honest helper endorses its own place alone
            taken = [key == j]
            taken += [key == 0] if not self.has("endorsed") else []
            taken += [key == 1] if not self.has("distinct keys") and self.t > 1 else []
            self.solver.add(z3.Or(taken))
        self.corrupt = {j: z3.And(owner[j - 1] < self.t) for j in self.helpers}

    def _lists(self) -> None:
        bools, ints = z3.Bool, z3.Int
        self.times = [[ints(f"{u} in {k}") for u in range(UNCHECKED + 1)] for k in self.lists]
        self.session = [bools(f"session of {k}") for k in self.lists]
        self.second = [bools(f"second report in {k}") for k in self.lists]
        for k, times in enumerate(self.times):
            least = 1 if not self.has("count") else MIN_CLIENTS
            most = 1 if self.has("ids") else 3
            self.solver.add(z3.Sum(times) >= least, *(m >= 0 for m in times))
            self.solver.add(*(m <= most for m in times))
            if self.has("registry") or not self.active:  # who follows the protocol invents none
                self.solver.add(times[SYBIL] == 0)
            if self.has("unchecked"):
                self.solver.add(times[UNCHECKED] == 0)
            parts = [
                f"session in {p}" for p in ("the info", "the commitment", "the mask's key")
            ]
            if self.has(*parts):
                self.solver.add(z3.Implies(self.session[k], z3.Sum(times[:HONEST]) == 0))

    def _boxes(self) -> None:
        """Boxes under an id: the client's own, the aggregator's, or a copy of another's."""
        forge, copy = not self.has("commitments"), not self.has(*(f"id in {p}" for p in _PARTS))
        self.forged = [
            [z3.And(z3.Bool(f"forged {v} for {j}"), forge) for v in REPORTS]
            for j in self.helpers
        ]
        self.copied = z3.And(z3.Bool("copied"), copy)

    def added(self, j: int, k: int, v: int) -> z3.ArithRef:
        """Multiplicity of the masks of v in an answer of helper j about list k."""
        client = 0 if v == SECOND else v
        in_list = self.times[k][client]
        if client == 0:
            in_list = z3.If(self.second[k] == (v == SECOND), in_list, 0)
        own = z3.If(self.forged[j - 1][v], 0, in_list)
        return own + z3.If(self.copied, self.times[k][CORRUPT], 0) if v == 0 else own

    def _same(self, k: int, i: int) -> z3.BoolRef:
        """Two lists have one D."""
        equal = [self.session[k] == self.session[i]]
        equal += [a == b for a, b in zip(self.times[k], self.times[i], strict=True)]
        if self.has("head in D"):
            equal.append(z3.Or(self.times[k][0] == 0, self.second[k] == self.second[i]))
        return z3.And(equal)

    def _conflict(self, k: int, i: int) -> z3.BoolRef:
        """Two lists of a session differ and have an id in common."""
        both = [z3.And(a > 0, b > 0) for a, b in zip(self.times[k], self.times[i], strict=True)]
        one = self.session[k] == self.session[i]
        return z3.And(one, z3.Or(both), z3.Not(self._same(k, i)))

    def _events(self) -> None:
        pairs = [(j, k) for j in self.honest for k in self.lists]
        named = {e: {(j, k): z3.Bool(f"{e} {j} {k}") for j, k in pairs} for e in _EVENTS}
        self.done = named
        self.at = {e: {p: z3.Int(f"at {e} {p}") for p in pairs} for e in _EVENTS}
        self.restored = restored = {
            p: z3.And(z3.Bool(f"restored {p}"), not self.has("durable")) for p in pairs
        }
        for j, k in pairs:
            sign, opened, reserved = (named[e][j, k] for e in ("sign", "open", "reserve"))
            at = {e: self.at[e][j, k] for e in _EVENTS}
            if self.has("reserve first"):
                self.solver.add(z3.Implies(sign, z3.And(reserved, at["reserve"] < at["sign"])))
            self.solver.add(
                z3.Implies(opened, z3.And(reserved, at["reserve"] < at["open"])),
                z3.Implies(opened, self._signatures(k, at["open"]) >= self.quorum),
            )
            for i in range(k) if self.has("spent") else ():
                both = z3.And(reserved, named["reserve"][j, i])
                known = restored[j, k] == restored[j, i]
                self.solver.add(z3.Not(z3.And(both, known, self._conflict(k, i))))
        if not self.active and self.has("fixed list"):
            self.solver.add(*(self._same(k, 0) for k in self.lists))

    def _signatures(self, k: int, at: z3.ArithRef) -> z3.ArithRef:
        """Number of valid signatures for list k before a time."""
        signed = []
        for j in self.honest:
            lists = [
                z3.And(
                    self.done["sign"][j, i],
                    self.at["sign"][j, i] < at,
                    z3.Or(self._same(k, i), not self.has("signed")),
                )
                for i in self.lists
            ]
            signed.append(z3.If(z3.Or(lists), 1, 0))
        count = z3.Sum([self.t - 1, *signed])
        return count if self.has("signers") else z3.If(count > 0, self.quorum, 0)

    def _view(self) -> None:
        """The adversary knows Σ c_v x_v: a sum of answers has just its unknown masks."""
        self.c = [z3.Real(f"c {v}") for v in range(len(REPORTS))]
        self.known = [
            z3.Or([self.corrupt[j] for j in self.helpers if j not in s]) for s in self.subsets
        ]
        for i, s in enumerate(self.subsets):
            holders = [j for j in self.honest if j not in s]
            factor = {(j, k): z3.Real(f"λ {i} {j} {k}") for j in holders for k in self.lists}
            for p, λ in factor.items():
                self.solver.add(z3.Implies(z3.Not(self.done["open"][p]), λ == 0))
            cancels = [
                c == z3.Sum([0, *(_product(self.added(*p, v), λ) for p, λ in factor.items())])
                for v, c in enumerate(self.c)
            ]
            self.solver.add(z3.Or(self.known[i], z3.And(cancels)))

    def _run(self, found: z3.ModelRef) -> Run:
        def value(term: z3.ExprRef) -> int:
            return found.eval(term, model_completion=True).as_long()

        def true(term: z3.ExprRef) -> bool:
            return z3.is_true(found.eval(term, model_completion=True))

        trace = [
            f"the aggregator has the key at place {j}"
            for j in self.honest
            if true(self.corrupt[j])
        ]
        events = sorted(
            (value(self.at[e][p]), n, p, e)
            for n, e in enumerate(_EVENTS)
            for p, done in self.done[e].items()
            if true(done)
        )
        for _, _, (j, k), event in events:
            times = [value(m) for m in self.times[k]]
            ids = ", ".join(_id(u) for u, m in enumerate(times) for _ in range(m))
            forged = [u for u in range(HONEST) if times[u] and true(self.forged[j - 1][u])]
            notes = {
                ", of client 0's second report": true(self.second[k]) and times[0],
                ", in another session": true(self.session[k]),
                f", with boxes of its own for {forged}": forged,
                ", with a copy of client 0's box": true(self.copied) and times[CORRUPT],
                ", on a restored journal": true(self.restored[j, k]),
            }
            trace.append(
                f"helper {j}: {event} [{ids}]" + "".join(n for n, so in notes.items() if so)
            )
        answers = [
            (i, [value(self.added(j, k, v)) for v in range(len(REPORTS))])
            for _, _, (j, k), event in events
            if event == "open"
            for i, s in enumerate(self.subsets)
            if j not in s
        ]
        known = {i for i, term in enumerate(self.known) if true(term)}
        total = [found.eval(c, model_completion=True).as_fraction() for c in self.c]
        return Run(trace, known, answers, total)


def _product(times: z3.ArithRef, factor: z3.ArithRef) -> z3.ArithRef:
    """Return a product of a number from 0 to 6 and a real, without z3's nonlinear solver."""
    return z3.Sum([z3.If(times > m, factor, 0) for m in range(6)])


def _id(u: int) -> str:
    return {CORRUPT: "corrupt", SYBIL: "Sybil", UNCHECKED: "unchecked"}.get(u, str(u))
