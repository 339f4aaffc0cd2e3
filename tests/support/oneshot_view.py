"""Linear algebra of a one-shot sum: what follows from everything that the adversary sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

HONEST = 4
"""Number of honest clients; their ids are 0, 1, …, and client 0 has reported twice."""
REPORTS = [*range(HONEST), HONEST]
"""Variables v: the honest clients' reports and, last, the second report of client 0."""
SECOND = HONEST


@dataclass(frozen=True)
class Run:
    """A run of the protocol: the events in order, and what each answer added.

    Attributes
    ----------
    trace : list of str
    known : set of indices of S, whose seeds the adversary has
    answers : list of (S, multiplicity of every variable v)
    sum : list of Fraction
        Coefficients c_v of the sum that it opens.
    """

    trace: list[str]
    known: set[int]
    answers: list[tuple[int, list[int]]]
    sum: list[Fraction] = field(default_factory=list)

    def __str__(self) -> str:
        terms = [f"{c}·x_{_name(v)}" for v, c in enumerate(self.sum) if c]
        return "\n".join([*self.trace, f"known: {' + '.join(terms)}"])


def opened(run: Run, seeds: int, wanted: Sequence[Fraction]) -> bool:
    """Return whether Σ c_v x_v is in the row space of everything that the adversary sees."""
    n = len(REPORTS)
    rows = []
    for v in range(n):
        rows.append(_row(n, seeds, {(None, v): 1} | {(i, v): 1 for i in range(seeds)}))
        rows += [_row(n, seeds, {(i, v): 1}) for i in run.known]
    rows += [
        _row(n, seeds, {(i, v): m for v, m in enumerate(times)}) for i, times in run.answers
    ]
    target = _row(n, seeds, {(None, v): c for v, c in enumerate(wanted)})
    return rank(rows) == rank([*rows, target])


def rank(rows: Iterable[Sequence[Fraction | int]]) -> int:
    """Return the rank over the rationals."""
    basis: list[list[Fraction]] = []
    for row in rows:
        rest = [Fraction(x) for x in row]
        for pivot in basis:
            at = next(i for i, x in enumerate(pivot) if x)
            if rest[at]:
                factor = rest[at] / pivot[at]
                rest = [a - factor * b for a, b in zip(rest, pivot, strict=True)]
        if any(rest):
            basis.append(rest)
    return len(basis)


def _row(
    n: int, seeds: int, entries: dict[tuple[int | None, int], Fraction | int]
) -> list[Fraction | int]:
    """Return a row: x_v first, then m_{v,S} for each S."""
    row: list[Fraction | int] = [0] * (n * (seeds + 1))
    for (i, v), value in entries.items():
        row[v if i is None else n * (i + 1) + v] = value
    return row


def _name(v: int) -> str:
    return "0, second" if v == SECOND else str(v)
