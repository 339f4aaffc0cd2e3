"""Cells that stay hidden: few records, few sites, and what follows from all other cells.

Suppression with an audit by linear programs, as offices of statistics do (Fischetti and
Salazar, Management Science 47, 2001, section 2), with a greedy choice of secondary cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from secagg.errors import ParameterError, needing
from secagg.statistics.statistic import Cell, Frame, Where

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


def hidden_cells(cells: Sequence[Cell], frame: Frame) -> set[Cell]:
    """Return the cells to hide, so that no other hidden cell follows closely from the rest.

    A cell is hidden if few records or sites are behind the cell. More cells are hidden until
    the interval of every hidden cell that follows from all published cells is wider than
    `min_count`.

    Parameters
    ----------
    cells : sequence of Cell
        All cells that would be published.
    frame : Frame

    Returns
    -------
    set of Cell

    Raises
    ------
    MissingExtra
        scipy is not installed.
    """
    hidden = {cell for cell in cells if frame.few(cell.count, cell.sites)}
    everyone = [cell for cell in cells if not cell.where]
    for names, cuts in _components([cell.where for cell in cells]):
        mine = [cell for cell in cells if cell.where and cell.where[0][0] in names]
        _Audit([*mine, *everyone], sorted(names), cuts).protect(hidden, frame.min_count)
    return hidden


def _components(wheres: Sequence[Where]) -> list[tuple[set[str], dict[str, list[int]]]]:
    """Return sets of columns that share cells, with the edges of each column's parts."""
    cuts = dict[str, set[int]]()
    groups = list[set[str]]()
    for where in wheres:
        names = {name for name, _, _ in where}
        for name, start, stop in where:
            cuts.setdefault(name, {-1}).update((start, stop))
        if names:
            groups = [
                *(g for g in groups if not g & names),
                names.union(*(g for g in groups if g & names)),
            ]
    return [(group, {name: sorted(cuts[name]) for name in group}) for group in groups]


@dataclass
class _Audit:
    """Linear program of the combinations that columns have with each other."""

    cells: Sequence[Cell]
    names: Sequence[str]
    cuts: dict[str, list[int]]

    def protect(self, hidden: set[Cell], least: int) -> None:
        """Add cells to `hidden` until each interval is wider than `least`."""
        wide = set[Cell]()  # intervals that only grow when more is hidden
        while True:
            here = sorted(
                hidden.intersection(self.cells) - wide, key=lambda c: (c.count, c.place)
            )
            weak = next((cell for cell in here if self._width(cell, hidden) <= least), None)
            if weak is None:
                return
            wide.update(here[: here.index(weak)])
            shown = [cell for cell in self.cells if cell not in hidden and cell.count]
            if not shown:
                return  # nothing is published that a cell could follow from
            same = [cell for cell in shown if cell.table == weak.table and cell.where]
            hidden.add(min(same or shown, key=lambda cell: (not cell.where, cell.count)))

    def _width(self, cell: Cell, hidden: set[Cell]) -> float:
        """Return the width of the interval of a cell that follows from the published cells."""
        with needing("disclosure control", "secagg[statistics]", "scipy"):
            from scipy.optimize import linprog
            from scipy.sparse import csr_array

        shown = [other for other in self.cells if other not in hidden]
        if not shown:
            return float("inf")
        places = [np.flatnonzero(self._row(other)) for other in shown]
        ends_of = np.cumsum([0, *map(len, places)])
        ones = np.ones(ends_of[-1])
        matrix = csr_array(
            (ones, np.concatenate(places), ends_of), (len(shown), self._row(cell).size)
        )
        counts = np.array([other.count for other in shown], float)
        goal, ends = self._row(cell), list[float]()
        for sign in (1.0, -1.0):
            found = linprog(sign * goal, A_eq=matrix, b_eq=counts, method="highs")
            if found.status != 0:  # unbounded
                return float("inf")
            ends.append(sign * found.fun)
        return ends[1] - ends[0]

    def _row(self, cell: Cell) -> NDArray[np.float64]:
        """Return 1 for each combination that is in a cell."""
        bounds = {name: (start, stop) for name, start, stop in cell.where}
        row = np.ones(1)
        for name in self.names:
            start, stop = bounds.get(name, (-1, self.cuts[name][-1]))
            inside = [float(start <= a and b <= stop) for a, b in pairwise(self.cuts[name])]
            row = np.multiply.outer(row, inside).reshape(-1)
        return row
