from __future__ import annotations

import itertools

import numpy as np
import pytest

from benches.papers.encrypted_items import EncryptedItems, PlainItems, descend
from fedmf import FedMF
from fedmf.data.sets.simulated import simulate
from fedmf.errors import SettingError
from paillier_keys import keypair

MODEL = FedMF(k=3, reg=0.01, rate=0.01, update="paper", spread=0.3, mean=3.0, min_raters=1)
RATINGS = simulate(8, 6, 30, seed=4)


def start():
    return MODEL.initial(RATINGS, np.random.default_rng(0))


def encrypted(refresh_every, key=None):
    _, q = start()
    return EncryptedItems(
        q.reshape(-1), key or keypair(1024), users=8, refresh_every=refresh_every
    )


def trained(items, rounds=7):
    p, _ = start()
    return list(descend(MODEL, RATINGS, items, p, rounds=rounds))


@pytest.mark.parametrize(("refresh_every", "refreshes"), [(1, 6), (2, 3), (6, 1), (7, 0)])
def test_encrypted_matrix_has_the_plain_integers(refresh_every, refreshes):
    """After every round, with any number of encryptions in between."""
    _, q = start()
    plain, items = PlainItems(q.reshape(-1)), encrypted(refresh_every)
    for meant, found in zip(trained(plain), trained(items), strict=True):
        np.testing.assert_array_equal(found.item_factors, meant.item_factors)
        np.testing.assert_array_equal(found.user_factors, meant.user_factors)
    np.testing.assert_array_equal(items.read(), plain.read())
    assert items.refreshes == refreshes


def test_descend_equals_gradient_descent_up_to_rounding():
    """Eq. 6.3 and 6.4 over the rating matrix, with both factors 2 in the rate.

    The penalty is around the neutral start, which is 1 for each factor.
    """
    p, q = start()
    ratings, known = np.zeros((8, 6)), np.zeros((8, 6))
    ratings[RATINGS.users, RATINGS.items] = RATINGS.values
    known[RATINGS.users, RATINGS.items] = 1
    *_, found = trained(PlainItems(q.reshape(-1)))
    for _ in range(7):
        e = known * (ratings - p @ q.T)
        p = p - 0.01 * (0.01 * known.sum(1)[:, None] * (p - 1) - e @ q)
        e = known * (ratings - p @ q.T)
        q = q - 0.01 * (0.01 * known.sum(0)[:, None] * (q - 1) - e.T @ p)
    np.testing.assert_allclose(found.item_factors, q, atol=7 * 8 * 2.0**-33 * 2)
    np.testing.assert_allclose(found.user_factors, p, atol=1e-8)


def test_descend_times_every_party(monkeypatch):
    """By a clock that moves by one whenever somebody's time starts or ends."""
    ticks = itertools.count()
    monkeypatch.setattr("fedmf.aggregate.aggregation.perf_counter", lambda: float(next(ticks)))
    items = encrypted(2)
    assert (items.of_users.seconds, items.of_server.seconds) == (1, 1)  # sent, and arrived
    trained(items, 1)
    # All 8 decrypt before the round and after it, and send. The server shows the matrix twice,
    # and for each of the 8 it checks what has arrived and adds it; then it subtracts.
    assert items.of_users.seconds == 1 + 2 * 8 + 8
    assert items.of_server.seconds == 1 + 2 + 2 * 8 + 1


@pytest.mark.parametrize("kind", [PlainItems, lambda q: EncryptedItems(
    q, keypair(1024), users=1, refresh_every=1)])  # fmt: skip
def test_values_beyond_the_clip_raise(kind):
    with pytest.raises(SettingError, match=r"clip 16\.0"):
        kind(np.array([17.0, 1.0]))
    items = kind(np.array([16.0, 1.0]))
    with pytest.raises(SettingError, match="clip"):
        items.subtract([np.array([0.0, -17.0])])


def test_refresh_of_matrix_beyond_the_clip_raises():
    items = EncryptedItems(np.array([10.0]), keypair(1024), users=1, refresh_every=1)
    items.subtract([np.array([-10.0])])
    assert items.read().tolist() == [20 << 32]
    with pytest.raises(SettingError, match="clip"):
        items.subtract([np.array([0.0])])
