"""The mixed mode gives the integers of a secure sum, and says what it gives away."""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.aggregate import PlainSum, RoundAborted, SecAggSum
from fedmf.datasets.simulated import simulate
from fedmf.errors import SettingError
from fedmf.mf import FedMF
from fedmf.sums.mixed_sum import MixedSum
from fedmf.sums.vectors import Rows, Vectors
from fedmf.trainer import Trainer


@pytest.mark.parametrize("exposed", [(), (0, 3, 7), range(12)])
def test_a_training_gives_the_same_integers_whoever_is_exposed(exposed):
    ratings = simulate(12, 20, 150, seed=0)

    def trained(aggregation):
        trainer = Trainer(FedMF(k=3), aggregation, rounds=2, dropout=0.15, seed=1)
        return [(one.count_digest, one.digest) for one in trainer.fit(ratings).history_]

    assert trained(MixedSum(SecAggSum(), exposed)) == trained(SecAggSum())


def ones(users):
    rows = Rows(np.array([0], dtype=np.int32), np.ones((1, 1)), 2)
    return Vectors(users, lambda user: rows, (2, 1))


def test_exposed_users_who_vanish_are_left_out_and_too_few_others_abort():
    mixed = MixedSum(SecAggSum(), {0, 1})
    total = mixed.sum(ones(range(6)), dropouts={0: "masked_input", 1: "share_keys"})
    assert total.survivors == (2, 3, 4, 5)
    assert total.sum.tolist() == [4.0, 0.0]
    gone = dict.fromkeys((2, 3, 4), "share_keys")
    with pytest.raises(RoundAborted):
        mixed.sum(ones(range(6)), dropouts=gone)


def test_only_the_exposed_are_summed_in_the_clear(monkeypatch):
    seen = []
    original = PlainSum.sum

    def spy(self, vectors, **rest):
        seen.extend(vectors)
        return original(self, vectors, **rest)

    monkeypatch.setattr(PlainSum, "sum", spy)
    MixedSum(SecAggSum(), [1, 4, 9]).sum(ones(range(6)), dropouts={})
    assert seen == [1, 4]


def test_who_is_exposed_must_be_said_and_the_warning_says_what_it_means():
    with pytest.raises(TypeError):
        MixedSum(SecAggSum())
    with pytest.raises(SettingError, match="SecAggSum"):
        MixedSum(PlainSum(), [1])
    assert "2 users send their gradients in the clear" in MixedSum(SecAggSum(), [1, 2]).warning
