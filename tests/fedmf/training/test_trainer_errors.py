"""Input that the trainer rejects, and its state after a failed training."""

from dataclasses import replace

import numpy as np
import pytest

from fedmf.aggregate import FloatSum, PlainSum
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.models import PRESETS, FedALS, FedMF, preset
from fedmf.training import Trainer
from watched_sum import Watched

PAPER = FedMF(k=4, reg=0.05, rate=0.005, update="paper", spread=0.3, min_raters=1)
RIDGE = FedMF(k=3, mean=3.5)
BIASED = FedMF(k=3, biases=True)


@pytest.fixture(scope="module")
def split():
    return random_split(simulate(24, 40, 500, seed=5), seed=1)


@pytest.mark.parametrize("rate", [1e100, 1e307])
def test_infinite_factors_raise_with_remedy(split, rate):
    with pytest.raises(SettingError, match=r"rate = 1e\+\d+"):
        Trainer(replace(PAPER, rate=rate), rounds=9).fit(split.train)


def test_settings_out_of_range_raise(split):
    with pytest.raises(SettingError, match="rounds = 0"):
        Trainer(rounds=0)
    with pytest.raises(SettingError, match="cohort = 25"):
        Trainer(cohort=25).fit(split.train)
    with pytest.raises(SettingError):
        Trainer().fit(split.train, simulate(24, 41, 500))
    for ids in ({"user_ids": np.arange(24)}, {"item_ids": np.arange(40)}):
        with pytest.raises(SettingError):
            Trainer().fit(split.train, replace(split.test, **ids))
    with pytest.raises(ModelError):
        Trainer().predict([0], [0])


def test_preset_is_found_by_name():
    assert preset("paper") == PRESETS["paper"]
    with pytest.raises(SettingError, match=r"'papre' .* fast, large"):
        preset("papre")


def test_changed_model_of_a_preset_changes_no_preset():
    before = repr(dict(PRESETS))
    PRESETS["fast"].model.set_params(k=3)
    for one in PRESETS.values():
        one.model.set_params(rate=0.5)
    Trainer(preset("fast").model).model.set_params(k=3)
    assert (repr(dict(PRESETS)), preset("fast")) == (before, PRESETS["fast"])


def test_likely_mistakes_raise_settings_and_data_errors(split):
    for model, aggregation in (
        (None, "secagg"),
        (None, PlainSum),
        ("fedmf", None),
        (FedMF, None),
    ):
        with pytest.raises(SettingError):
            Trainer(model, aggregation)
    with pytest.raises(SettingError, match=r"split\.train .*split\.test"):
        Trainer(rounds=1).fit(split)


@pytest.mark.parametrize("aggregation", [PlainSum(), FloatSum()], ids=repr)
@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (FedMF(rate=1e308), r"rate = 1e\+308 "),
        (FedMF(rate=1e308, biases=True), r"rate = 1e\+308 "),
        (FedMF(spread=1e308), r"rate = 0\.45 .*spread = 1e\+308 "),
        (replace(PAPER, spread=1e200), r"rate = 0\.005 .*spread = 1e\+200 "),
        (FedALS(spread=1e308), r"reg = 0\.135 .*spread = 1e\+308 "),
    ],
    ids=repr,
)
def test_divergence_raises_without_warnings(split, model, remedy, aggregation, capfd):
    with pytest.raises(SettingError, match=remedy):
        Trainer(model, aggregation, rounds=9).fit(split.train)
    assert capfd.readouterr() == ("", "")


class Overflowing(FedMF):
    """Its factors are finite, their products are not."""

    def server_step(self, q, total, raters):
        return np.full_like(q, 1e200)

    def find_users(self, q, p, block):
        return np.full_like(p, 1e200)


class Exploding(FedMF):
    """Its items' factors are not finite, and then no user should be asked."""

    def server_step(self, q, total, raters):
        return np.full_like(q, np.inf)

    def find_users(self, q, p, block):
        assert np.isfinite(q).all()
        return p


def test_factors_are_validated_before_their_use(split):
    watched = Watched()
    with pytest.raises(SettingError):
        Trainer(replace(RIDGE, spread=1e308), watched).fit(split.train)
    assert watched.calls == []
    with pytest.raises(SettingError):
        Trainer(Exploding(k=2), rounds=1).fit(split.train)


def test_infinite_errors_are_not_recorded(split):
    with pytest.raises(SettingError):
        Trainer(Overflowing(k=2, min_raters=1000), rounds=1).fit(split.train)


def test_failed_fit_leaves_no_attributes(split):
    def fail(record):
        if failing:
            raise ZeroDivisionError

    failing = False
    trainer = Trainer(RIDGE, rounds=2, callbacks=[fail]).fit(split.train)
    trainer.predict([0], [0])
    failing = True
    with pytest.raises(ZeroDivisionError):
        trainer.fit(split.train)
    with pytest.raises(ModelError):
        trainer.predict([0], [0])
    assert not hasattr(trainer, "history_")


@pytest.mark.parametrize("part", ["train", "test"])
def test_empty_parts_raise_before_any_work(split, part):
    empty = replace(split, **{part: getattr(split, part).take(np.array([], dtype=int))})
    watched = Watched()
    with pytest.raises(DataError, match=part):
        Trainer(RIDGE, watched).fit(empty.train, empty.test)
    assert watched.calls == []
    with pytest.raises(SettingError, match=r"test .*Split"):
        Trainer(RIDGE).fit(split.train, split)


@pytest.mark.parametrize("rounds", [True, 2.0, "3"])
def test_rounds_are_whole_numbers(rounds):
    with pytest.raises(SettingError, match="rounds = "):
        Trainer(rounds=rounds)
