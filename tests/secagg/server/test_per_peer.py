"""Items that clients send for their peers, regrouped by peer."""

from __future__ import annotations

import random

import numpy as np

from secagg.server.cohort import PerPeer


def test_rows_of_a_peer_are_those_of_the_clients_that_came_by_ascending_ids() -> None:
    draw = random.Random(1)
    ids = sorted({draw.getrandbits(64) for _ in range(60)})
    peers = {u: np.array(draw.sample(ids, draw.randint(20, 40)), np.uint64) for u in ids}
    shares: PerPeer[np.uint64] = PerPeer(peers, 2, np.uint64)
    came = draw.sample(ids, 45)
    for u in came:
        # an item of its sender's id and its peer's
        items = np.stack([np.full(len(peers[u]), u, np.uint64), peers[u]], axis=1)
        shares.put(u, items)
        assert shares.peers_of(u) == len(peers[u])
        assert (shares.items[shares.rows[u]] == items).all()
    assert shares.came == set(came)
    found = {v: shares.items[rows].tolist() for v, rows in shares.by_peer().items()}
    expected = {v: [[u, v] for u in sorted(came) if v in peers[u]] for v in ids}
    assert found == expected


def test_there_may_be_no_clients() -> None:
    assert PerPeer({}, 5, np.uint64).items.shape == (0, 5)
