"""The mixed mode gives the integers of a secure sum, and says what it gives away."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benches.papers.mixed_mode import MixedSum
from fedmf.aggregate import OneShotSum, PlainSum, RoundAborted, SecAggSum
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.data.sets.simulated import simulate
from fedmf.errors import SettingError
from fedmf.models import FedMF
from fedmf.training import Trainer

pytestmark = pytest.mark.filterwarnings("ignore:.* send their gradients in the clear")


def test_mixed_sum_with_exposed_users_warns():
    with pytest.warns(UserWarning, match="2 users"):
        MixedSum(SecAggSum(), {0, 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixedSum(SecAggSum(), ())


@pytest.mark.parametrize("secure", [SecAggSum(), OneShotSum()], ids=["secagg", "one-shot"])
@pytest.mark.parametrize("exposed", [(), (0, 3, 7), range(12)])
def test_training_integers_do_not_depend_on_exposed_users(exposed, secure):
    ratings = simulate(12, 20, 150, seed=0)

    def trained(aggregation):
        trainer = Trainer(FedMF(k=3), aggregation, rounds=2, dropout=0.15, seed=1)
        return [(one.count_digest, one.digest) for one in trainer.fit(ratings).history_]

    assert trained(MixedSum(secure, exposed)) == trained(SecAggSum())


def ones(users):
    rows = Rows(np.array([0], dtype=np.int32), np.ones((1, 1)), 2)
    return Vectors(users, lambda user: rows, (2, 1))


@pytest.mark.parametrize("secure", [SecAggSum(), OneShotSum()], ids=["secagg", "one-shot"])
def test_mixed_sum_of_too_few_secure_users_aborts(secure):
    """Exposed dropouts are left out; too few secure users abort the sum."""
    mixed = MixedSum(secure, {0, 1})
    total = mixed.sum(ones(range(6)), dropouts={0: "masked_input", 1: "share_keys"})
    assert total.survivors == (2, 3, 4, 5)
    assert total.sum.tolist() == [4.0, 0.0]
    gone = dict.fromkeys((2, 3, 4), "share_keys")
    with pytest.raises(RoundAborted):
        mixed.sum(ones(range(6)), dropouts=gone)


def test_mixed_sum_adds_only_exposed_users_in_the_clear(monkeypatch):
    seen = []
    original = PlainSum.sum

    def spy(self, vectors, **rest):
        seen.extend(vectors)
        return original(self, vectors, **rest)

    monkeypatch.setattr(PlainSum, "sum", spy)
    MixedSum(SecAggSum(), [1, 4, 9]).sum(ones(range(6)), dropouts={})
    assert seen == [1, 4]


def test_raters_are_counted_securely_for_all_users(monkeypatch):
    counted = []
    original = SecAggSum.count

    def spy(self, vectors, **rest):
        counted.append((list(vectors), rest["dropouts"]))
        return original(self, vectors, **rest)

    monkeypatch.setattr(SecAggSum, "count", spy)
    gone = {0: "masked_input", 3: "share_keys"}
    vote = Rows(np.array([0], dtype=np.int32), np.ones((1, 1), dtype=np.int64), 2)
    votes = Vectors(range(7), lambda user: vote, (2, 1))
    total = MixedSum(SecAggSum(), {0, 1}).count(votes, dropouts=gone)
    assert counted == [(list(range(7)), gone)]
    assert total.survivors == (1, 2, 4, 5, 6)


@pytest.mark.parametrize("exposed", [(0, 1), range(6)])
@pytest.mark.filterwarnings("ignore::secagg.PrecisionWarning")
def test_mixed_sum_uses_one_encoding_for_both_parts(exposed):
    """Both parts clip ones to 0.5, and round to multiples of 0.5."""
    secure = SecAggSum(clip=0.5, fractional_bits=1)
    total = MixedSum(secure, exposed).sum(ones(range(6)), dropouts={})
    assert total.integers.tolist() == [6, 0]
    assert total.sum.tolist() == [3.0, 0.0]
    assert total.clipped == 6


def test_exposed_users_are_required_and_warned_about():
    """The exposed users must be named, and the warning says what that means."""
    with pytest.raises(TypeError):
        MixedSum(SecAggSum())
    with pytest.raises(SettingError):
        MixedSum(PlainSum(), [1])


def test_mixed_sum_minus_plain_gradients_exposes_one_user():
    """The warning about min_raters: three raters were counted, one of them is hidden."""
    ratings = simulate(9, 20, 60, seed=1)
    raters = [ratings.users[ratings.items == item] for item in range(20)]
    item = next(item for item in range(20) if raters[item].size == 3)
    alone, *others = raters[item].tolist()
    seen = []
    hidden = SecAggSum()

    class Spy(SecAggSum):
        def sum(self, vectors, **rest):
            found = hidden.sum(vectors, **rest)
            seen.append((found.sum.reshape(vectors.shape), vectors[alone]))
            return found

    Trainer(FedMF(k=3), MixedSum(Spy(), others), rounds=1, seed=1).fit(ratings)
    _, (total, rows) = seen  # the mean is summed first
    gradient = rows.values[rows.indices == item][0]
    assert gradient.any()
    np.testing.assert_allclose(total[item], gradient, atol=2.0**-16)
