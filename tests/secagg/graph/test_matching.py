"""Maximum matchings, compared with all sets of disjoint edges."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg.graph.matching import Edge, maximum_matching


def largest(edges: frozenset[Edge]) -> int:
    """Return the size of the largest set of disjoint edges, by trying all."""

    @cache
    def of(rest: frozenset[Edge]) -> int:
        if not rest:
            return 0
        (u, _), *_ = sorted(rest)
        without = frozenset(edge for edge in rest if u not in edge)
        best = of(without)
        for edge in rest - without:
            other = edge[0] + edge[1] - u
            left = frozenset(one for one in without if other not in one)
            best = max(best, 1 + of(left))
        return best

    return of(edges)


def check(edges: list[Edge]) -> None:
    found = maximum_matching(edges)
    known = {tuple(sorted(edge)) for edge in edges}
    assert found == sorted(found)
    assert set(found) <= known
    assert len({end for edge in found for end in edge}) == 2 * len(found)
    assert len(found) == largest(frozenset(edge for edge in known if edge[0] != edge[1]))


def test_every_graph_of_five_vertices() -> None:
    pairs = [*combinations(range(5), 2)]
    for chosen in range(1 << len(pairs)):
        check([pair for at, pair in enumerate(pairs) if chosen >> at & 1])


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_any_graph_of_twelve_vertices(edges: list[Edge]) -> None:
    check(edges)
    assert maximum_matching(reversed(edges)) == maximum_matching(edges)


@pytest.mark.parametrize("length", [3, 5, 7, 9])
def test_odd_cycles_with_tails_take_a_contraction(length: int) -> None:
    """Each vertex of the cycle has a tail, so that all tails can be matched."""
    cycle = [(u, (u + 1) % length) for u in range(length)]
    tails = [(u, length + u) for u in range(length)]
    assert len(maximum_matching(cycle + tails)) == length
    # a path into the cycle and out of it, around either side
    assert len(maximum_matching([(90, 0), *cycle, (length // 2, 91)])) == length // 2 + 1


def test_edges_without_two_ends_are_ignored() -> None:
    assert maximum_matching([]) == maximum_matching([(3, 3)]) == []
    assert maximum_matching([(2**64 - 1, 0), (0, 2**64 - 1)]) == [(0, 2**64 - 1)]


def test_a_large_graph_of_complaints_takes_moments() -> None:
    """200 liars complain of 400 others, and of each other."""
    edges = [(u, v) for u in range(200) for v in range(200, 600) if (u + v) % 7]
    edges += combinations(range(0, 200, 3), 2)
    assert len(maximum_matching(edges)) == 200
