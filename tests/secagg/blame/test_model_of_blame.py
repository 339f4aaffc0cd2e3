"""Blame in z3: no honest client is named, liars that end a round are, and all rules are needed.

With `pytest -s` the tests print what happens without each set of rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations

import pytest
import z3

import blame_endings
import blame_signed
from blame_endings import Endings
from blame_framing import VERDICTS, Framing
from blame_search import Search

pytestmark = pytest.mark.large  # the model is the same on every Python, and without kernels

Size = tuple[int, int, int]
SIZES = [
    (n, t, c)
    for n in (3, 4, 5)
    for t in range(2, n + 1)
    if 3 * t > 2 * n
    for c in range(2 * t - n)
]
"""All n, t and c up to n = 5."""

SESSION_OF_DEALER = "session in leaf + session in dealt"
DECEIVED = [
    "box in leaf",
    "box that came",
    "check in leaf",
    "hashes in leaf",
    "w in leaf + own place",
    "dealt + under root",
    SESSION_OF_DEALER,
]
"""Sets of rules without which an honest holder complains of an honest dealer."""
FRAMED = {
    "shares": [
        "t shares",
        "session of P",
        "secret in dealt",
        "hashes in leaf",
        "distinct w",
        "X in leaf + index",
        "X in leaf + X in path",
        "w in leaf + w in hash",
        "session in leaf + session in hash + session in dealt",
    ],
    "answer": [
        "complain",
        "accepted",
        "leaf in list",
        "signer",
        "w in leaf",
        "hashes in leaf",
        "v in answers",
        "kind in answers",
        "session in answer",
        "v in list + v in leaf",
        "session in accepted + session in leaf",
        SESSION_OF_DEALER,
    ],
    "complaints": [
        "more than c",
        "distinct w",
        "signer",
        "complaint in list",
        "v in list + v in leaf",
        "v in list + leaf in list",
        "dealt + leaf in list",
        "dealt + session in leaf + session in accepted",
        "w in leaf + X in leaf + own index",
        "w in leaf + X in leaf + dealt",
        *DECEIVED,
    ],
    "contribution": ["check in leaf", "other w", "hybrid", "w in leaf", SESSION_OF_DEALER],
    "complainer": [
        "complaint in list",
        "more than limit",
        *(f"limit + {rules}" for rules in DECEIVED),
    ],
    "shows": ["hashes alone"],
}
"""All smallest sets of at most 3 rules without which a verdict on a client is forged."""

UNNAMED = {
    "an honest client is named": ["complain", "more than c"],
    "no sum, nobody named": [
        *("root", "ends nothing", "disclosed", "accepted", "limit", "own leaf"),
        *("answer", "wrong share", "ff", "off", "early + acceptors"),
    ],
    "dealer ends the round": ["root", "ends nothing", "early + acceptors"],
    "shares": ["off"],
    "answer": ["accepted", "own leaf", "answer", "wrong share"],
    "complaints": ["complain", "early + acceptors"],
    "contribution": ["contribution"],
    "complainer": ["accepted", "limit"],
    "neither named nor disputed": ["acceptors", "acceptors first"],
    "not connected": ["accepted", "limit", "acceptors", "acceptors first"],
}
"""All smallest sets of at most 2 rules without which an event of `Endings` happens."""


def sets(rules: Sequence[str]) -> set[frozenset[str]]:
    return {frozenset(together.split(" + ")) for together in rules}


def show(search: Search) -> None:
    for gone, trace in search.traces.items():
        print(f"without {' + '.join(sorted(gone))}: {'; '.join(trace)}")


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_verdict_names_an_honest_client(size: Size) -> None:
    for verdict in VERDICTS.values():
        model = Framing(*size)
        assert model.happens(verdict(model)) is None


@pytest.mark.slow
@pytest.mark.parametrize("size", [(7, 5, 2), (7, 6, 3), (10, 7, 3)], ids=str)
def test_no_verdict_names_an_honest_client_of_a_larger_cohort(size: Size) -> None:
    test_no_verdict_names_an_honest_client(size)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_only_complaints_depend_on_the_number_of_liars(size: Size) -> None:
    for kind, verdict in VERDICTS.items():
        model = Framing(*size, liars=size[0] - 1)
        framed = model.happens(verdict(model))
        possible = kind == "complaints" and size[2] + 1 < size[0]
        assert (framed is not None) == possible, (kind, framed)


@pytest.mark.parametrize("kind", VERDICTS)
def test_without_a_rule_an_honest_client_is_framed(kind: str) -> None:
    """These sets of rules, and no smaller ones, are needed."""
    model = Framing(4, 3, 1)
    assert model.needed(VERDICTS[kind](model), 3, shortest=True) == sets(FRAMED[kind])
    show(model)


@pytest.mark.slow
@pytest.mark.parametrize("kind", VERDICTS)
def test_the_same_rules_are_needed_with_two_liars(kind: str) -> None:
    model = Framing(5, 4, 2)
    assert model.needed(VERDICTS[kind](model), 3) == sets(FRAMED[kind])


def test_more_liars_than_assumed_frame_an_honest_holder_that_knows_no_limit() -> None:
    model = Framing(5, 4, 2, liars=3)
    complainer = model.complainer()
    assert model.happens(complainer) is None
    assert model.happens(complainer, ["limit"])


@pytest.mark.parametrize("size", [*SIZES, (7, 5, 1), (7, 5, 2)], ids=str)
def test_no_round_ends_unnamed(size: Size) -> None:
    model = Endings(*size)
    for name, event in model.events.items():
        assert model.happens(event) is None, name


@pytest.mark.slow
@pytest.mark.parametrize("size", [(8, 6, 1), (9, 7, 2), (10, 7, 2)], ids=str)
def test_no_round_of_a_larger_cohort_ends_unnamed(size: Size) -> None:
    test_no_round_ends_unnamed(size)


@pytest.mark.parametrize("name", UNNAMED)
def test_without_a_rule_nobody_is_named(name: str) -> None:
    model = Endings(4, 3, 1)
    assert model.needed(model.events[name], 2, shortest=True) == sets(UNNAMED[name])
    show(model)


def test_where_a_client_may_drop_out_names_are_early_and_contributions_checked() -> None:
    """One of 7 clients may drop out, before its input or after."""
    model = Endings(7, 5, 1)
    event = model.events["no sum, nobody named"]
    assert model.happens(event, ["early"])
    assert model.happens(event, ["contribution"])


def test_every_rule_is_needed() -> None:
    framed = set().union(*(gone for kind in FRAMED for gone in sets(FRAMED[kind])))
    assert framed == blame_signed.RULES.keys()
    unnamed = set().union(*(gone for name in UNNAMED for gone in sets(UNNAMED[name])))
    assert unnamed == blame_endings.RULES.keys()


@pytest.mark.parametrize(("t", "m"), [(t, m) for t in (2, 3, 4, 5) for m in range(t, 8)])
def test_of_any_shares_off_the_polynomial_t_convict(t: int, m: int) -> None:
    """If all t of m shares give the published secret, all m are on one polynomial with it.

    The secret is 0, and the shares are rational numbers: the argument is that of any field.
    """
    solver, shares = z3.Solver(), {x: z3.Real(f"share at {x}") for x in range(1, m + 1)}
    first = [*shares][:t]
    off = {x: shares[x] != _interpolated(first, shares, x) for x in [*shares][t:]}
    solver.push()
    for points in combinations(shares, t):
        solver.add(_interpolated(points, shares, 0) == 0)
    assert solver.check() == z3.sat
    solver.add(z3.Or(list(off.values())))
    assert solver.check() == z3.unsat
    solver.pop()
    # the server's choice: the first t - 1 and a share off the polynomial of the first t
    solver.add(_interpolated(first, shares, 0) == 0)
    for x, is_off in off.items():
        chosen = [*first[:-1], x]
        assert solver.check(is_off, _interpolated(chosen, shares, 0) == 0) == z3.unsat


def _interpolated(points: Sequence[int], shares: dict[int, z3.ArithRef], x: int) -> z3.ArithRef:
    terms = []
    for i in points:
        factor = Fraction(1)
        for j in points:
            factor *= Fraction(x - j, i - j) if j != i else 1
        terms.append(z3.Q(factor.numerator, factor.denominator) * shares[i])
    return z3.Sum(terms)


@pytest.mark.parametrize("left_out", ["disjoint", "dealers", "both ends"])
def test_session_loses_one_honest_client_for_each_liar(left_out: str) -> None:
    """Each of disjoint complaints has a liar of its own, so at most c honest clients are lost.

    The dealers, or both ends, of all complaints may be more.
    """
    n, c, attempts = 6, 2, 3
    solver, count = z3.Solver(), Search.count
    liar = {u: z3.Bool(f"client {u} lies") for u in range(n)}
    solver.add(count(liar.values()) <= c)
    gone = {u: z3.BoolVal(False) for u in liar}
    for k in range(attempts):
        said = {pair: z3.Bool(f"attempt {k}: {pair}") for pair in permutations(liar, 2)}
        for (v, w), complaint in said.items():
            one_lies, here = z3.Or(liar[v], liar[w]), z3.Not(z3.Or(gone[v], gone[w]))
            solver.add(z3.Implies(complaint, z3.And(one_lies, here)))
        ends = {u: [so for pair, so in said.items() if u in pair] for u in liar}
        if left_out == "disjoint":  # the complaints that the session chose
            solver.add(*(count(complaints) <= 1 for complaints in ends.values()))
        if left_out == "dealers":
            ends = {u: [so for (v, _), so in said.items() if u == v] for u in liar}
        gone = {u: z3.Or(gone[u], *ends[u]) for u in liar}
    lost = count(z3.And(gone[u], z3.Not(liar[u])) for u in liar)
    assert solver.check(lost == c) == z3.sat
    assert solver.check(lost > c) == (z3.unsat if left_out == "disjoint" else z3.sat)
