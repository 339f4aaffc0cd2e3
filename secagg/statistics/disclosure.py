"""Cells that stay hidden: few records, few sites, and what follows from all other cells.

Suppression with an audit by linear programs, as offices of statistics do (Fischetti and
Salazar, Management Science 47, 2001, section 2), with a greedy choice of secondary cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations
from math import inf, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg.errors import ParameterError, needing
from secagg.statistics.statistic import Cell, Frame, Where

Cells: TypeAlias = Collection[Cell]
MAX_JOINT = 20_000
"""Most combinations of the parts of columns that occur in tables with each other."""


def check_cells(wheres: Iterable[Sequence[Where]]) -> None:
    """Raise `ParameterError` if the published cells of a plan are too many for the audit."""
    for names, cuts in _components([where for table in wheres for where in table]):
        joint = prod(len(cuts[name]) - 1 for name in names)
        if joint > MAX_JOINT:
            raise ParameterError(
                f"the tables of {sorted(names)} have {joint:,} combinations, and the audit of "
                f"hidden cells takes {MAX_JOINT:,}; plan fewer columns or values in a study"
            )


def hidden_cells(
    cells: Sequence[Cell], frame: Frame, published: Cells = (), secret: Cells = ()
) -> set[Cell]:
    """Return the cells to hide, so that no other hidden cell follows closely from the rest.

    A cell is hidden if few records or sites are behind the cell. More cells are hidden until
    the interval of every hidden cell that follows from all published cells is wider than
    `min_count`. The same holds for few records of a cell that are in no part of the cell in
    another table, such as the records without a group.

    Parameters
    ----------
    cells : sequence of Cell
        All cells that would be published.
    frame : Frame
    published, secret : collection of Cell
        Cells that earlier results over the same records show, and hide.

    Returns
    -------
    set of Cell

    Raises
    ------
    MissingExtra
        scipy is not installed.
    ParameterError
        An earlier result has another number of records in a cell.
    """
    counts = dict[Where, int]()
    for cell in (*published, *secret, *cells):
        if counts.setdefault(cell.where, cell.count) != cell.count:
            raise ParameterError(
                f"{cell.table} and an earlier study have different numbers of records; pass "
                "earlier studies over the same records only"
            )
    # missing values are open: else a few would hide all that is known of a column
    hidden = {c for c in cells if c.few or (not c.missing and frame.few(c.count, c.sites))}
    hidden |= set(secret)
    every = list(dict.fromkeys((*cells, *published, *secret)))
    for names, cuts in _components([cell.where for cell in every]):
        mine = [cell for cell in every if not cell.where or cell.where[0][0] in names]
        audit = _Audit(mine, sorted(names), cuts, {c.where for c in published})
        audit.protect(hidden, frame)
    return hidden.intersection(cells)


def _components(wheres: Sequence[Where]) -> list[tuple[set[str], dict[str, list[int]]]]:
    """Return sets of columns that share cells, with the edges of each column's parts."""
    cuts = dict[str, set[int]]()
    groups = list[set[str]]()
    for where in wheres:
        for name, start, stop in where:
            cuts.setdefault(name, {-1}).update((start, stop))
        names = {name for name, _, _ in where}
        met = [group for group in groups if group & names]
        groups = [*(group for group in groups if group not in met), names.union(*met)]
    # a column of which only missing values are counted has other values, too
    ends = {name: sorted({*found, max(1, *found)}) for name, found in cuts.items()}
    return [(group, {name: ends[name] for name in group}) for group in groups if group]


@dataclass
class _Audit:
    """Linear program of the combinations that columns have with each other."""

    cells: Sequence[Cell]
    names: Sequence[str]
    cuts: dict[str, list[int]]
    published: set[Where]

    def protect(self, hidden: set[Cell], frame: Frame) -> None:
        """Add cells to `hidden` until each interval is wider than `min_count`."""
        rests = self._rests(frame)
        wide = set[Cell]()  # intervals that only grow when more is hidden
        fixed = {c for c in self.cells if not c.count or c.missing or c.where in self.published}
        todo = [cell for cell in self.cells if cell in hidden]
        while True:
            while todo:  # a cell like a hidden cell would show the hidden cell's number
                hidden.add(cell := todo.pop())
                todo += self._like(cell, fixed | hidden, frame.min_count)
            secret = [c for c in self.cells if c in hidden and c.where not in self.published]
            rows = {**{cell: self._row(cell.where) for cell in secret}, **rests}
            here = sorted(rows.keys() - wide, key=lambda c: (c.count, c.place))
            weak = next((c for c in here if self._narrow(rows[c], hidden, frame)), None)
            if weak is None:
                return
            wide.update(here[: here.index(weak)])
            kept = fixed | hidden
            shown = [cell for cell in self.cells if cell not in kept]
            if not shown:
                return  # nothing is left to hide
            same = [cell for cell in shown if cell.table == weak.table and cell.where]
            todo = [min(same or shown, key=lambda cell: (not cell.where, cell.count))]

    def _like(self, cell: Cell, kept: Cells, most: int) -> list[Cell]:
        """Return other cells of the same records, but for at most `most` without a value."""
        others = (other for other in self.cells if other not in kept)
        apart = ((other, set(cell.where) ^ set(other.where)) for other in others)
        return [c for c, ps in apart if sum(self._lacking.get(p, inf) for p in ps) <= most]

    @cached_property
    def _lacking(self) -> dict[tuple[str, int, int], int]:
        """Open numbers of records without a value, by the part of the records with a value."""
        cells = [cell for cell in self.cells if cell.missing and len(cell.where) == 1]
        names = [cell.where[0][0] for cell in cells]
        return {(n, 0, self.cuts[n][-1]): c.count for n, c in zip(names, cells, strict=True)}

    def _rests(self, frame: Frame) -> dict[Cell, NDArray[np.float64]]:
        """Return few records of a cell that are in none of the cell's parts in a table."""
        tables = defaultdict[tuple[str, ...], list[Cell]](list)
        for cell in self.cells:
            if cell.where:
                tables[cell.table, *sorted(name for name, _, _ in cell.where)].append(cell)
        owners = dict[tuple[str, ...], NDArray[np.int64]]()
        for key, cells in tables.items():
            owners[key] = np.full(len(self._row(())), -1)
            for i, cell in enumerate(cells):
                owners[key][self._row(cell.where) > 0] = i
        rests = dict[Cell, NDArray[np.float64]]()
        counts = {cell.where: cell.count for cell in self.cells}
        for (whole, mine), (part, theirs) in permutations(owners.items(), 2):
            if self._summed(tables[whole]) == self._summed(tables[part]) != set():
                # sums of the same values over all groups of both tables
                rest = sum(c.count for c in tables[whole]) - sum(c.count for c in tables[part])
                # of two groupings, both may have records that the other lacks
                apart = set(whole[1:]) ^ set(part[1:]) if len(whole) == len(part) else ()
                lacking = sum(counts.get(((name, -1, 0),), 0) for name in apart)
                if frame.few(rest) or frame.few(lacking):
                    few = Cell(part[0], (-1, len(rests)), (), rest, 0)
                    rests[few] = ((mine >= 0) & (theirs < 0)).astype(float)
            if not set(whole[1:]) <= set(part[1:]):
                continue
            # combinations without a value that only the part's table needs
            more = set(part[1:]) - set(whole[1:])
            gaps = sum(self._row(((name, -1, 0),)) for name in more)
            pairs = np.unique(np.stack((theirs, mine))[:, theirs >= 0], axis=1)
            inner, outer = pairs[:, np.bincount(pairs[0])[pairs[0]] == 1]
            for i, cell in enumerate(tables[whole]):
                inside = inner[outer == i]
                rest = cell.count - sum(tables[part][j].count for j in inside)
                row = (mine == i) & ~np.isin(theirs, inside)
                open_to_all = cell.counts_only and not (row & (gaps == 0)).any()
                if frame.few(rest) and rest < cell.count and not open_to_all:
                    few = Cell(part[0], (-1, len(rests)), cell.where, rest, 0)
                    rests[few] = row.astype(float)
        return rests

    def _summed(self, cells: Sequence[Cell]) -> set[tuple[str, int, int]]:
        """Return the values that all records of a table of sums have; none for counts."""
        parts = (set(cell.where) for cell in cells)
        return set() if cells[0].counts_only else set.intersection(*parts)

    def _narrow(self, goal: NDArray[np.float64], hidden: set[Cell], frame: Frame) -> bool:
        """Return whether published cells leave an interval of at most `min_count` records.

        Raises
        ------
        ParameterError
            No table has such cells, or the linear programs have no end.
        """
        with needing("disclosure control", "secagg[statistics]", "scipy"):
            from scipy.optimize import milp

        cells, _, least, most = zip(*self._known, strict=True)
        shown = np.array([cell not in hidden for cell in cells])
        # a reader knows that no hidden cell is empty
        bounds = np.where(shown, least, np.minimum(least, 1)), np.where(shown, most, np.inf)
        ends = list[float]()
        for sign, top in ((1, np.inf), (-1, frame.min_count + 1)):
            # an interval that is wide enough needs no end: no program is unbounded
            rows = [(self._matrix, *bounds), (goal[None], -np.inf, top + sum(ends))]
            found = milp(sign * goal, constraints=rows)
            if found.status != 0:
                raise ParameterError(
                    f"the audit of the tables of {self.names} has no end: {found.message}; "
                    "pass earlier studies over the same records, or plan fewer tables"
                )
            ends.append(sign * found.fun)
        return ends[1] - ends[0] < frame.min_count + 0.5

    @cached_property
    def _known(self) -> list[tuple[Cell, Where, int, int]]:
        """Parts of the records with least and largest number, as cells show; cells first."""
        cells = [(cell, cell.where, cell.count, cell.count) for cell in self.cells]
        return [*cells, *((c, where, 0, most) for c in self.cells for where, most in c.most)]

    @cached_property
    def _matrix(self) -> Any:
        """Row of each of these parts."""
        from scipy.sparse import csr_array, vstack

        return vstack([csr_array(self._row(where)[None]) for _, where, _, _ in self._known])

    def _row(self, where: Where) -> NDArray[np.float64]:
        """Return 1 for each combination that is in a part of all records."""
        bounds = {name: (start, stop) for name, start, stop in where}
        row = np.ones(1)
        for name in self.names:
            start, stop = bounds.get(name, (-1, self.cuts[name][-1]))
            inside = [float(start <= a and b <= stop) for a, b in pairwise(self.cuts[name])]
            row = np.multiply.outer(row, inside).reshape(-1)
        return row
