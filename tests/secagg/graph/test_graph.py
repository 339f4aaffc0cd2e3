from __future__ import annotations

import hashlib
import os
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg.graph import Graph, draw


@given(st.sets(st.integers(0, (1 << 64) - 1), min_size=4, max_size=40), st.data())
def test_check25_graph_is_regular_and_connected(ids: set[int], data: st.DataObject) -> None:
    """A Harary graph is regular, symmetric and connected."""
    k = data.draw(st.sampled_from(range(2, len(ids) - 1, 2)))
    graph = draw(ids, k, os.urandom(32))
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
def test_enough_neighbours_give_the_complete_graph(k: int | None) -> None:
    graph = draw([5, 1, 9, 3, 7], k, os.urandom(32))
    assert set(graph.holders.values()) == {(1, 3, 5, 7, 9)}


def test_order_on_the_ring_is_that_of_digests() -> None:
    """SHA-256("secagg/2 graph" ‖ seed ‖ id as u64 little-endian), ascending."""
    seed, ids = bytes(range(32)), [7, 3, 1 << 63, 0, 300]
    label = b"secagg/2 graph" + seed
    ring = sorted(ids, key=lambda u: hashlib.sha256(label + u.to_bytes(8, "little")).digest())
    holders = draw(ids, 2, seed).holders
    for i, u in enumerate(ring):
        assert set(holders[u]) == {ring[i - 1], u, ring[(i + 1) % 5]}


def test_check25_disconnected_survivors_are_detected() -> None:
    ring = Graph({0: (0, 1, 3), 1: (0, 1, 2), 2: (1, 2, 3), 3: (0, 2, 3)})
    assert ring.is_connected({0, 1, 2})
    assert not ring.is_connected({0, 2})
    assert ring.is_connected({0})
    assert ring.is_connected(())


def test_check47_every_order_on_the_ring_is_equally_likely() -> None:
    """Five clients have 4! / 2 rings; without a permutation there would be one."""
    graphs = [draw(range(5), 2, i.to_bytes(32, "little")) for i in range(2400)]
    found = Counter(tuple(graph.holders[u] for u in range(5)) for graph in graphs)
    assert len(found) == 12
    # chi-square with 11 degrees of freedom is above 31.3 with probability 0.001
    assert sum((seen - 200) ** 2 / 200 for seen in found.values()) < 31.3
