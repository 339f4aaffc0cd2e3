"""Search in z3 for the smallest sets of rules without which something happens."""

from __future__ import annotations

from collections.abc import Iterable

import z3


class Search:
    """Solver with rules that may be left out, and facts that tell what happened.

    Attributes
    ----------
    solver : z3.Solver
    on : dict of str to z3.BoolRef
        Whether a rule is in force.
    traces : dict of frozenset of str to list of str
        What happens without each set that `needed` found.
    """

    def __init__(self, rules: Iterable[str]) -> None:
        self.solver = z3.Solver()
        self.on = {rule: z3.Bool(f"rule: {rule}") for rule in rules}
        self.traces: dict[frozenset[str], list[str]] = {}
        self._facts: list[tuple[str, z3.BoolRef, tuple[z3.ExprRef | int, ...]]] = []
        self._made = 0

    def needed(
        self, event: z3.BoolRef, most: int, *, shortest: bool = False
    ) -> set[frozenset[str]]:
        """Return all smallest sets of at most `most` rules without which an event happens.

        If it happens with all rules, the empty set is returned alone. The traces are shortest
        traces if asked for.
        """
        found = set[frozenset[str]]()
        left_out = self.count(z3.Not(on) for on in self.on.values())
        self.solver.push()
        self.solver.add(event)
        for size in range(most + 1):
            while (run := self._run(left_out == size)) is not None:
                gone = frozenset(r for r, on in self.on.items() if not z3.is_true(run.eval(on)))
                found.add(gone)
                self.traces[gone] = self._told(self._shortest(run, gone) if shortest else run)
                # every other set leaves one of these rules in force
                self.solver.add(z3.Or([self.on[rule] for rule in gone]))
        self.solver.pop()
        return found

    def happens(self, event: z3.BoolRef, without: Iterable[str] = ()) -> list[str] | None:
        """Return the trace of a run with an event without some rules, or None."""
        gone = frozenset(without)
        run = self._run(event, self._without(gone))
        return None if run is None else self._told(run)

    def rule(self, name: str, holds: z3.BoolRef) -> z3.BoolRef:
        """Return that something holds if a rule is in force."""
        return z3.Implies(self.on[name], holds)

    def off(self, name: str) -> z3.BoolRef:
        """Return that a rule is left out."""
        return z3.Not(self.on[name])

    def tell(self, text: str, *terms: z3.ExprRef | int, when: z3.BoolRef | bool = True) -> None:
        """Add a fact to the traces, of those runs in which it is true."""
        self._facts.append((text, z3.BoolVal(when) if isinstance(when, bool) else when, terms))

    def int(self, name: str, low: int, high: int) -> z3.ArithRef:
        """Return a new integer of a range."""
        self._made += 1
        value = z3.Int(f"{name} #{self._made}")
        self.solver.add(value >= low, value <= high)
        return value

    def real(self, name: str) -> z3.ArithRef:
        """Return a new real number."""
        self._made += 1
        return z3.Real(f"{name} #{self._made}")

    def bool(self, name: str) -> z3.BoolRef:
        """Return a new truth value."""
        self._made += 1
        return z3.Bool(f"{name} #{self._made}")

    @staticmethod
    def count(terms: Iterable[z3.BoolRef]) -> z3.ArithRef:
        """Return how many of some terms are true."""
        return z3.Sum([z3.IntVal(0), *(z3.If(term, 1, 0) for term in terms)])

    def _run(self, *goals: z3.BoolRef) -> z3.ModelRef | None:
        self.solver.push()
        self.solver.add(*goals)
        result = self.solver.check()
        assert result != z3.unknown
        run = self.solver.model() if result == z3.sat else None
        self.solver.pop()
        return run

    def _without(self, gone: frozenset[str]) -> z3.BoolRef:
        return z3.And([z3.Not(on) if r in gone else on for r, on in self.on.items()])

    def _shortest(self, run: z3.ModelRef, gone: frozenset[str]) -> z3.ModelRef:
        """Return a run without the same rules, of which the least is to tell."""
        facts = self.count(when for _, when, _ in self._facts)
        self.solver.push()
        self.solver.add(self._without(gone))
        while True:
            shorter = self._run(facts < run.eval(facts, model_completion=True))
            if shorter is None:
                break
            run = shorter
        self.solver.pop()
        return run

    def _told(self, run: z3.ModelRef) -> list[str]:
        def value(term: z3.ExprRef | int) -> object:
            if isinstance(term, int):
                return term
            return run.eval(term, model_completion=True)

        return [
            text.format(*map(value, terms))
            for text, when, terms in self._facts
            if z3.is_true(value(when))
        ]
