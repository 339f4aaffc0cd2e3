"""One-shot sums: the integers of the plain sum, whoever stays away, in every model."""

import numpy as np
import pytest
from test_aggregate import SCHEDULES, K, M, gradients, indicators

from fedmf import FedALS, FedMF, FedMMF, OneShotSum, PlainSum, RidgeMask, RoundAborted, Trainer
from fedmf.context import ContextTrainer, FedFM, FedLR, FedNN
from fedmf.data.features import known_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.sets.simulated_views import simulate_views
from fedmf.errors import SettingError
from fedmf.fcf import FCF, FederatedCF, Implicit
from fedmf.models.dp import DPFedMF
from secagg.oneshot.params import MAX_HELPERS

RATINGS, VIEWS = simulate(16, 20, 160, seed=1), simulate_views(20, 32, seed=1)


@pytest.mark.parametrize(("helpers", "threshold"), [(2, 2), (3, 2), (5, 3)])
@pytest.mark.parametrize("dropouts", SCHEDULES)
def test_plain_and_one_shot_sums_are_equal(dropouts, helpers, threshold):
    one_shot, plain = OneShotSum(helpers=helpers, threshold=threshold), PlainSum()
    ids = [u * u + 1 for u in range(12)]
    leaving = {ids[u]: phase for u, phase in dropouts.items()}
    vectors = gradients(ids, big=(ids[6],))
    meant = plain.sum(vectors, dropouts=leaving)
    found = one_shot.sum(vectors, dropouts=leaving, session=b"test sum")
    assert found.digest == meant.digest
    np.testing.assert_array_equal(found.sum, meant.sum)
    assert found.survivors == meant.survivors
    assert found.clipped == meant.clipped == 2
    counted = one_shot.count(indicators(ids), dropouts=leaving, session=b"test count")
    assert counted.digest == plain.count(indicators(ids), dropouts=leaving).digest


def test_costs_are_reported_per_user():
    vectors = gradients(range(12))
    found = OneShotSum().sum(vectors, dropouts={1: "share_keys", 2: "unmasking"})
    assert found.bytes_up > M * K * 4 * 11 / 12
    assert found.bytes_down == 0
    assert min(found.client_seconds, found.server_seconds, found.key_holder_seconds) > 0
    small = OneShotSum(helpers=2).sum(vectors, dropouts={1: "share_keys"})
    assert small.bytes_up < found.bytes_up


@pytest.mark.parametrize("users", [2, 3, 4])
def test_sum_of_fewer_than_three_users_aborts(users):
    leaving = dict.fromkeys(range(max(0, users - 2)), "masked_input")
    with pytest.raises(RoundAborted, match="2 reports"):
        OneShotSum().sum(gradients(range(users)), dropouts=leaving)


def test_tables_are_computed_once_for_senders_only():
    asked = []
    vectors = gradients(range(6))

    def counting(user):
        asked.append(user)
        return vectors[user]

    counted = type(vectors)(range(6), counting, (M, K))
    OneShotSum().sum(counted, dropouts={3: "masked_input"})
    assert asked == [0, 1, 2, 4, 5]


def test_progress_is_reported():
    reported = []
    summing = OneShotSum(progress=lambda *arguments: reported.append(arguments))
    summing.sum(gradients(range(4)), dropouts={2: "share_keys"})
    assert reported == [("report", done, 3) for done in (1, 2, 3)]


@pytest.mark.parametrize(
    "settings",
    [
        {"helpers": 1},
        {"helpers": MAX_HELPERS + 1},
        {"threshold": 1},
        {"helpers": 3, "threshold": 4},
        {"helpers": 16, "threshold": 8},  # 11,440 seeds
        {"helpers": 2.5},
        {"clip": 0.0},
    ],
)
def test_settings_out_of_range_are_rejected(settings):
    with pytest.raises(SettingError):
        OneShotSum(**settings)


class Recorded:
    """Sum that records the digests of its results, or why a round was aborted."""

    def __init__(self, inner):
        self.inner, self.digests = inner, []

    def _call(self, kind, vectors, dropouts, session):
        try:
            found = getattr(self.inner, kind)(vectors, dropouts=dropouts, session=session)
        except RoundAborted:
            self.digests.append(None)
            raise
        self.digests.append(found.digest)
        return found

    def sum(self, vectors, *, dropouts, session=b""):
        return self._call("sum", vectors, dropouts, session)

    def count(self, vectors, *, dropouts, session=b""):
        return self._call("count", vectors, dropouts, session)


SCHEDULE = {"rounds": 2, "seed": 3, "dropout": 0.2}
PAPER = FedMF(k=3, rate=0.01, update="paper", start="zero-mean", min_raters=1)
MODELS = {
    "FedMF": lambda how: Trainer(FedMF(k=3), how, **SCHEDULE).fit(RATINGS),
    "FedMF, biases": lambda how: Trainer(FedMF(k=3, biases=True), how, **SCHEDULE).fit(RATINGS),
    "FedMF, gradients": lambda how: Trainer(PAPER, how, **SCHEDULE).fit(RATINGS),
    "FedMF, cohorts": lambda how: Trainer(FedMF(k=3), how, cohort=10, **SCHEDULE).fit(RATINGS),
    "FedALS": lambda how: Trainer(FedALS(k=3), how, **SCHEDULE).fit(RATINGS),
    "DPFedMF": lambda how: Trainer(DPFedMF(k=3), how, **SCHEDULE).fit(RATINGS),
    "FedMMF": lambda how: FedMMF(RidgeMask(), Trainer(FedMF(k=3), how, **SCHEDULE)).fit(
        RATINGS
    ),
    "FCF": lambda how: FCF(Implicit(k=3), aggregation=how, rounds=2, dropout=0.2).fit(VIEWS),
    "FederatedCF": lambda how: FederatedCF(
        Implicit(k=3), aggregation=how, rounds=2, dropout=0.2
    ).fit(VIEWS),
    **{
        type(model).__name__: lambda how, model=model: ContextTrainer(
            model, how, **SCHEDULE
        ).fit(RATINGS, items=known_features(RATINGS))
        for model in (FedLR(), FedFM(k=2), FedNN(hidden=3))
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_to_the_digests_of_the_plain_sum(name):
    how = {"clip": 4096.0, "fractional_bits": 32} if "CF" in name else {}
    sums = [Recorded(make(**how)) for make in (PlainSum, OneShotSum)]
    for one in sums:
        MODELS[name](one)
    assert sums[0].digests == sums[1].digests
    assert len(set(sums[0].digests)) >= 2
    assert any(sums[0].digests)
