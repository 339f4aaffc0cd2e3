import numpy as np
import pytest

from fedmf.aggregate import PHASES
from fedmf.aggregate.noisy import noise_multiplier
from fedmf.context import ContextTrainer, FedLR
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import SettingError
from fedmf.fcf import ranking
from fedmf.models import FedMF
from fedmf.training import Schedule, Trainer
from fedmf.training.schedule import Draw


def test_draws_depend_on_seed_purpose_and_round_alone():
    one, again, other = Schedule(seed=3), Schedule(seed=3, dropout=0.5), Schedule(seed=4)
    draws = {
        (schedule.seed, draw, number): schedule.rng(draw, number).integers(1 << 62)
        for schedule in (one, other)
        for draw in Draw
        for number in (1, 2)
    }
    assert len(set(draws.values())) == len(draws)
    assert again.rng(Draw.COHORT, 2).integers(1 << 62) == draws[3, Draw.COHORT, 2]


def test_cohorts_are_numbers_fractions_or_all_users():
    assert Schedule().users(1, 10).tolist() == list(range(10))
    assert Schedule(cohort=1.0).size(10) == 10
    assert Schedule(cohort=0.25).size(10) == 3
    assert Schedule(cohort=4).size(10) == 4
    users = Schedule(cohort=4).users(1, 10)
    assert len(set(users.tolist())) == 4
    assert (np.diff(users) > 0).all()
    assert users.tolist() != Schedule(cohort=4).users(2, 10).tolist()


def test_cohort_fraction_ignores_floating_point_excess():
    """Not the nearest binary one: .07 · 100 is 7.000000000000001 in floating point."""
    for hundredths in range(3, 101):
        assert Schedule(cohort=hundredths / 100).size(100) == hundredths
    assert Schedule(cohort=0.07).size(101) == 8
    assert all(Schedule(cohort=k / 943).size(943) == k for k in range(3, 944))
    assert Schedule(cohort=np.float64(0.55)).size(100) == 55


def test_dropouts_have_the_asked_rate_and_spread_over_all_phases():
    users = np.arange(20_000)
    leaving = Schedule(dropout=0.1).dropouts(Draw.DROPOUTS, 1, users)
    assert len(leaving) == pytest.approx(2000, abs=150)
    for phase in PHASES:
        assert list(leaving.values()).count(phase) == pytest.approx(500, abs=100)
    assert Schedule().dropouts(Draw.DROPOUTS, 1, users) == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"seed": -1},
        {"dropout": 1.0},
        {"cohort": 0.0},
        {"cohort": 1.5},
        {"cohort": 2},
        {"cohort": "10"},
        {"cohort": True},
    ],
)
def test_settings_out_of_range_raise(settings):
    with pytest.raises(SettingError):
        Schedule(**settings)


@pytest.mark.parametrize(("cohort", "n_users"), [(11, 10), (0.1, 10), (None, 2)])
def test_cohort_out_of_range_of_the_data_raises(cohort, n_users):
    with pytest.raises(SettingError, match=f"of {n_users} users"):
        Schedule(cohort=cohort).size(n_users)


def test_functions_compute_with_pythons_numbers():
    """In 8 bits 127 + 1 wraps; in 32 z would be another."""
    split = random_split(simulate(24, 128, 900, seed=5), seed=1)
    factors = Trainer(FedMF(k=2), rounds=1).fit(split.train).model_
    judged = [ranking(factors, split.test, split.train, k) for k in (127, np.int8(127))]
    assert judged[0] == judged[1]
    pythons = noise_multiplier(1.5, 2.0**-17, 100)
    numpys = noise_multiplier(np.float32(1.5), np.float32(2.0**-17), np.int8(100))
    assert (type(numpys), numpys) == (float, pythons)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Trainer(FedMF(), FedMF()),
        lambda: Trainer(FedLR()),
        lambda: ContextTrainer(FedMF()),
        lambda: ContextTrainer(FedLR),
        lambda: Trainer(callbacks=print),
        lambda: Trainer(callbacks=[3]),
        lambda: noise_multiplier("1", 1e-5, 1),
    ],
)
def test_parts_of_wrong_types_raise_setting_errors(make):
    with pytest.raises(SettingError):
        make()
