from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import ReplayedEntropy
from secagg.graph import Graph, draw


@given(st.sets(st.integers(0, (1 << 64) - 1), min_size=4, max_size=40), st.data())
def test_check25_a_harary_graph_is_regular_symmetric_and_connected(
    ids: set[int], data: st.DataObject
) -> None:
    k = data.draw(st.sampled_from(range(2, len(ids) - 1, 2)))
    graph = draw(ids, k, os.urandom)
    assert graph.holders.keys() == ids
    for u, holders in graph.holders.items():
        assert list(holders) == sorted(set(holders))
        assert len(holders) == k + 1
        assert u in holders
        assert all(u in graph.holders[v] for v in holders)
    assert graph.is_connected(ids)
    # it stays in one piece with any k − 1 clients gone (Harary 1962)
    gone = data.draw(st.sets(st.sampled_from(sorted(ids)), min_size=k - 1, max_size=k - 1))
    assert graph.is_connected(ids - gone)


@pytest.mark.parametrize("k", [None, 4, 5, 9])
def test_with_enough_neighbours_everyone_holds_everyones_shares(k: int | None) -> None:
    graph = draw([5, 1, 9, 3, 7], k, os.urandom)
    assert set(graph.holders.values()) == {(1, 3, 5, 7, 9)}


def test_the_order_on_the_ring_comes_from_the_entropy() -> None:
    ids = range(30)
    assert draw(ids, 4, ReplayedEntropy(1)) == draw(ids, 4, ReplayedEntropy(1))
    assert draw(ids, 4, ReplayedEntropy(1)) != draw(ids, 4, ReplayedEntropy(2))


def test_check25_pieces_are_seen() -> None:
    ring = Graph({0: (0, 1, 3), 1: (0, 1, 2), 2: (1, 2, 3), 3: (0, 2, 3)})
    assert ring.is_connected({0, 1, 2})
    assert not ring.is_connected({0, 2})
    assert ring.is_connected({0})
    assert ring.is_connected(())


def test_the_order_on_the_ring_takes_16_bytes_a_client() -> None:
    entropy = ReplayedEntropy(1)
    draw(range(30), 4, entropy)
    assert [len(drawn) for drawn in entropy.drawn] == [16] * 30
