"""Figures 6.3 and 6.9 to 6.13 of the thesis, in small: losses, sums and pictures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benches.papers import thesis_loss, toy
from benches.papers.encrypted_items import EncryptedItems
from benches.papers.table import Row, Run
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import leave_last
from fedmf.errors import DataError
from fedmf.models import Factors
from paillier_keys import keypair
from secagg.kit.picture import style

RATINGS = simulate(24, 40, 500, seed=3)
RUN = Run(seed=1, quick=True)
ENCRYPTION, SUBSETS = thesis_loss.TABLES


@pytest.fixture(autouse=True)
def _few(put, monkeypatch):
    put(RATINGS)
    monkeypatch.setattr(thesis_loss, "_key", lambda bits: keypair(1024))
    monkeypatch.setattr(thesis_loss, "ENCRYPTED_USERS", 6)


def test_workers_learn_in_three_epochs_and_secret_sharing_changes_nothing():
    clear, secure = (row.run(Run(seed=2)) for row in toy.TABLE.rows)
    assert clear == secure
    assert clear["epoch 3"] < clear["epoch 2"] < clear["epoch 1"]
    assert clear["unseen"] < clear["unseen, by ½"] / 4
    assert set(toy.TABLE.metrics) <= set(clear)


def test_loss_is_that_of_eq_6_2():
    ratings = RATINGS.take(np.arange(RATINGS.n_ratings) < 3)
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=(24, 2)), rng.normal(size=(40, 2))
    total = 0.0
    for user, item, value in zip(ratings.users, ratings.items, ratings.values, strict=True):
        total += (value - p[user] @ q[item]) ** 2
        total += 0.01 * (p[user] @ p[user] + q[item] @ q[item])
    assert thesis_loss.loss(ratings, Factors.of(p, q, ratings)) == pytest.approx(total / 3)


def small(n_items: int, encrypted: bool) -> dict[str, float]:
    return thesis_loss._under_encryption(n_items, encrypted, RUN)


def test_encryption_changes_neither_loss_nor_integers():
    clear, encrypted = small(5, False), small(5, True)
    timed = {thesis_loss.USER, thesis_loss.SERVER, thesis_loss.ALL}
    assert {key for key in clear if clear[key] != encrypted[key]} == timed
    assert clear["same items"] == encrypted["same items"] == 1
    assert min(clear[thesis_loss.USER], encrypted[thesis_loss.USER]) > 0
    assert encrypted[thesis_loss.SERVER] > clear[thesis_loss.SERVER] == 0
    whole = 6 * encrypted[thesis_loss.USER] + encrypted[thesis_loss.SERVER]
    assert encrypted[thesis_loss.ALL] == pytest.approx(whole)
    assert encrypted["last"] < encrypted["epoch 1"]
    assert set(ENCRYPTION.metrics) - {"epoch 10"} <= set(encrypted)


def test_row_reports_items_that_differ(monkeypatch):
    (row,) = (one for one in ENCRYPTION.rows if one.name == "20 items, encrypted")
    assert not row.target["same items"].met(0.99)
    monkeypatch.setattr(EncryptedItems, "subtract", lambda self, gradients: list(gradients))
    assert small(5, True)["same items"] == 0


def test_common_users_have_the_same_test_ratings_in_every_row(monkeypatch):
    monkeypatch.setattr(thesis_loss, "ITEMS", 30)
    monkeypatch.setattr(thesis_loss, "COMMON", 4)
    judged = []
    real = thesis_loss._test

    def watched(split, factors):
        ids = split.test.user_ids[split.test.users].tolist()
        judged.append(sorted(zip(ids, split.test.items.tolist(), strict=True)))
        return real(split, factors)

    monkeypatch.setattr(thesis_loss, "_test", watched)
    for n_users in (4, 12, 24):
        thesis_loss._converged(30, n_users, RUN)
    assert len(judged[0]) == 12
    assert judged[0] == judged[1] == judged[3] == judged[5]
    assert len(judged[4]) == 72
    more = thesis_loss._converged(40, 12, RUN)
    assert thesis_loss.TEST_COMMON not in more


def test_whole_has_all_ratings_but_the_last_three():
    assert thesis_loss._split(None, None).test.n_ratings == 3 * 24
    whole = thesis_loss._converged(None, None, RUN)
    split = leave_last(RATINGS, 3)
    assert thesis_loss.SUBSETS[thesis_loss.WHOLE] == (None, None)
    start = thesis_loss._in_the_clear(split.train, 4, Run(seed=1))
    assert whole["last"] == start.losses[-1]


def drawn(table, rows: list[Row]):
    results = {row.name: [row.run(RUN)] for row in rows}
    (picture,) = table.pictures
    with style():
        figure = picture(results)
    with pytest.raises(DataError):
        picture({})
    return [len(axes.lines) for axes in figure.axes]


def test_pictures_have_a_line_for_each_row():
    assert drawn(toy.TABLE, list(toy.TABLE.rows)) == [2]
    rows = [
        replace(row, run=partial(thesis_loss._under_encryption, 5, "encrypted" in row.name))
        for row in ENCRYPTION.rows[:4]
    ]
    assert drawn(ENCRYPTION, rows) == [2, 2]
    rows = [
        replace(row, run=partial(thesis_loss._converged, 20, 10)) for row in SUBSETS.rows[1:]
    ]
    assert drawn(SUBSETS, rows) == [3, 2, 2]
