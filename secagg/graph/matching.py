"""Maximum matching of a graph: the largest set of edges without a common end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

Edge = tuple[int, int]


def maximum_matching(edges: Iterable[Edge]) -> list[Edge]:
    """Return a largest set of disjoint edges, by augmenting paths (Edmonds 1965).

    Parameters
    ----------
    edges : iterable of pairs of int
        Edges of an undirected graph, in any order and direction. An edge with equal ends is
        ignored.

    Returns
    -------
    list of pairs of int, ascending
        The first end of each edge is the lower end. The same edges give the same matching.
    """
    search = _Search(edges)
    for root in search.neighbours:
        if root not in search.mate:
            search.augment(root)
    return sorted((u, v) for u, v in search.mate.items() if u < v)


class _Search:
    """Search for augmenting paths; an odd cycle of the search tree becomes one vertex.

    Attributes
    ----------
    neighbours : dict of int to list of int
    mate : dict of int to int
        Other end of each matched vertex.
    """

    def __init__(self, edges: Iterable[Edge]) -> None:
        linked: dict[int, set[int]] = {}
        for u, v in edges:
            if u != v:
                linked.setdefault(u, set()).add(v)
                linked.setdefault(v, set()).add(u)
        self.neighbours = {u: sorted(linked[u]) for u in sorted(linked)}
        self.mate: dict[int, int] = {}

    def augment(self, root: int) -> None:
        """Match one pair more, with `root` in it, if an augmenting path begins at `root`."""
        # parent: the vertex before an inner vertex, on the path from the root
        self._parent: dict[int, int] = {}
        # base of the contracted cycle that a vertex is in
        self._base = {u: u for u in self.neighbours}
        self._outer, self._queue = {root}, deque([root])
        while self._queue:
            u = self._queue.popleft()
            for v in self.neighbours[u]:
                if self._base[u] == self._base[v] or self.mate.get(u) == v:
                    continue
                if v in self._outer:
                    self._contract(u, v)
                elif v not in self._parent:
                    self._parent[v] = u
                    if v not in self.mate:
                        self._flip(v)
                        return
                    self._outer.add(self.mate[v])
                    self._queue.append(self.mate[v])

    def _flip(self, end: int) -> None:
        """Exchange the matched and the unmatched edges of the path from the root to `end`."""
        at: int | None = end
        while at is not None:
            before = self._parent[at]
            after = self.mate.get(before)
            self.mate[at], self.mate[before] = before, at
            at = after

    def _contract(self, u: int, v: int) -> None:
        """Contract the odd cycle that the edge of two outer vertices closes."""
        base = self._common(u, v)
        inside = set[int]()
        for start, other in ((u, v), (v, u)):
            at, child = start, other
            while self._base[at] != base:
                mate = self.mate[at]
                inside |= {self._base[at], self._base[mate]}
                self._parent[at] = child
                child, at = mate, self._parent[mate]
        for w in self.neighbours:
            if self._base[w] in inside:
                self._base[w] = base
                if w not in self._outer:
                    self._outer.add(w)
                    self._queue.append(w)

    def _common(self, u: int, v: int) -> int:
        """Return the base of the last vertex that the paths from the root share."""
        seen = set[int]()
        at = u
        while True:
            at = self._base[at]
            seen.add(at)
            if at not in self.mate:
                break  # the root
            at = self._parent[self.mate[at]]
        at = self._base[v]
        while at not in seen:
            at = self._base[self._parent[self.mate[at]]]
        return at
