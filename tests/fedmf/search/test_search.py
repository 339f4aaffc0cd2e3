"""Cross-validation and search over a grid, inside the training ratings."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fedmf import DPFedMF, FedALS, FedBPMF, FedMF, FedMMF, Trainer
from fedmf.aggregate import RoundAborted
from fedmf.context import ContextTrainer, FedLR
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_folds
from fedmf.errors import DataError, Diverged, MissingExtra, SettingError
from fedmf.fcf import FederatedCF, Implicit, ranking, tuned, views
from fedmf.search import Scores, cross_validate, search
from fedmf.settings import Settings
from fedmf.training import mae, rmse

RATINGS = simulate(24, 40, 500, seed=5)
MODEL = Trainer(FedALS(k=2), rounds=2)
VIEWS = views(RATINGS)


def by_hand(model, part, measure):
    made = model.fit(part.train)
    return measure(part.test.values, made.predict(part.test.users, part.test.items))


class Constant(Settings):
    """Estimator of another package: only the four methods, and no fitted attribute."""

    def __init__(self, value=3.0, fails=None):
        self.value, self.fails = value, fails

    def fit(self, ratings):
        self.seen = ratings
        if self.fails is not None:
            raise self.fails
        return self

    def predict(self, users, items):
        assert np.intersect1d(self.seen.users, users).size  # else it is not trained
        return np.full(np.shape(users), self.value)


@pytest.mark.parametrize(
    ("model", "such"),
    [
        (FedMF, "Trainer(FedMF())"),
        (FedMF(), "Trainer(FedMF())"),
        (Trainer, "Trainer()"),
        (Constant, "Constant()"),
        (Implicit(), "Trainer(FedMF())"),
        (None, "Trainer(FedMF())"),
    ],
)
def test_a_search_of_no_estimator_names_one(model, such):
    for call in (
        lambda: search(model, {"k": [2, 3]}, RATINGS),
        lambda: cross_validate(model, RATINGS),
    ):
        with pytest.raises(SettingError) as caught:
            call()
        assert such in str(caught.value)


def test_folds_have_each_rating_once_as_test():
    folds = random_folds(RATINGS, 4, seed=3)
    tests = [set(zip(one.test.users, one.test.items, strict=True)) for one in folds]
    assert sorted(map(len, tests)) == [125] * 4
    assert len(set().union(*tests)) == RATINGS.n_ratings
    for one, test in zip(folds, tests, strict=True):
        rest = set(zip(one.train.users, one.train.items, strict=True))
        assert rest.isdisjoint(test)
        assert len(rest) == 375
    again = random_folds(RATINGS, 4, seed=3)[0]
    np.testing.assert_array_equal(folds[0].test.items, again.test.items)
    assert set(random_folds(RATINGS, 4, seed=4)[0].test.items) != set(folds[0].test.items)


@pytest.mark.parametrize("folds", [1, 501, 2.0, True])
def test_number_of_folds_out_of_range_raises(folds):
    with pytest.raises(SettingError):
        random_folds(RATINGS, folds)


@pytest.mark.parametrize(("name", "measure"), [("rmse", rmse), ("mae", mae)])
def test_scores_are_those_of_trainings_by_hand(name, measure):
    model = Trainer(FedALS(k=2), rounds=2)
    found = cross_validate(model, RATINGS, folds=3, seed=2, measure=name)
    assert not hasattr(model, "model_")
    wanted = [by_hand(MODEL, part, measure) for part in random_folds(RATINGS, 3, 2)]
    assert found == Scores(name, tuple(wanted))
    assert found.mean == pytest.approx(np.mean(wanted))
    assert found.standard_error == pytest.approx(np.std(wanted, ddof=1) / math.sqrt(3))


def test_ranking_measure_is_that_of_the_ranking():
    model = FederatedCF(Implicit(k=2), rounds=2)
    found = cross_validate(model, VIEWS, folds=2, measure="precision", first=5)
    parts = random_folds(VIEWS, 2)
    wanted = [ranking(model.fit(one.train).model_, one.test, one.train, 5) for one in parts]
    assert found.values == tuple(one.precision for one in wanted)


@pytest.mark.parametrize(
    ("model", "grid", "ratings", "options"),
    [
        (MODEL, {"model__reg": [0.1, 1.0], "rounds": [1]}, RATINGS, {}),
        (FedBPMF(k=2, rounds=4, burn_in=1), {"k": [1, 2]}, RATINGS, {"measure": "map"}),
        (FedMMF(trainer=MODEL), {"mask__penalty": [1, 9.0]}, RATINGS, {"measure": "map"}),
        (FederatedCF(tuned(), rounds=1), {"model__k": [1, 2]}, VIEWS, {"measure": "map"}),
        (
            ContextTrainer(FedLR(), rounds=2),
            {"model__rate": [0.1, 0.2]},
            RATINGS,
            {"fit_params": {"items": item_features(RATINGS)}},
        ),
        (Constant(), {"value": [1.0, 3.0]}, RATINGS, {"measure": "mae"}),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "fit") else "",
)
def test_any_estimator_is_searched_and_left_as_it_is(model, grid, ratings, options):
    before = repr(model), set(vars(model))
    seen = []
    found = search(
        model,
        grid,
        ratings,
        refit=True,
        progress=lambda one, done, of: seen.append((one, done, of)),
        **options,
    )
    assert (repr(model), set(vars(model))) == before
    assert [one for one, _, _ in seen] == list(found.candidates)
    assert [done for _, done, _ in seen] == [*range(1, len(seen) + 1)]
    assert len(seen) == math.prod(map(len, grid.values())) == seen[0][2]
    assert all(one.error is None for one in found.candidates)
    means = [one.scores.mean for one in found.candidates]
    pick = min if found.measure in ("rmse", "mae") else max
    assert found.best.scores.mean == pick(means)
    assert found.estimator.get_params().items() >= found.settings.items()
    assert np.isfinite(found.estimator.predict([0], [0])).all()
    assert json.loads(json.dumps(found.as_dict()))["best"] == dict(found.settings)


@pytest.mark.parametrize(
    ("model", "former", "ratings"),
    [
        (FedBPMF(k=1, burn_in=1), "sweeps", RATINGS),
        (FederatedCF(Implicit(k=1)), "epochs", VIEWS),
    ],
)
def test_former_settings_in_the_grid_warn(model, former, ratings):
    with pytest.warns(DeprecationWarning, match=r"rounds.* 1\.1"):
        found = search(model, {former: [2, 3]}, ratings, refit=True)
    assert [one.error for one in found.candidates] == [None, None]
    assert found.estimator.rounds == found.settings[former]


def test_refit_is_the_training_on_all_ratings():
    found = search(MODEL, {"model__k": [1, 2]}, RATINGS, folds=2, refit=True)
    wanted = Trainer(FedALS(k=found.settings["model__k"]), rounds=2).fit(RATINGS)
    np.testing.assert_array_equal(
        found.estimator.model_.item_factors, wanted.model_.item_factors
    )
    assert search(MODEL, {"model__k": [1]}, RATINGS).estimator is None


@pytest.mark.parametrize(
    "error",
    [Diverged("left the scale"), RoundAborted("lost"), DataError("no item has 500 raters")],
)
def test_failed_candidate_keeps_its_message(error):
    found = search(Constant(), {"fails": [error, None]}, RATINGS)
    assert (found.candidates[0].error, found.candidates[0].scores) == (str(error), None)
    assert found.best is found.candidates[1]
    with pytest.raises(SettingError):
        search(Constant(), {"fails": [error]}, RATINGS)


def test_setting_out_of_range_fails_and_infinity_too():
    found = search(MODEL, {"model__k": [0, 2]}, RATINGS)
    assert "k = 0" in found.candidates[0].error
    found = search(Constant(), {"value": [math.nan, 2.0]}, RATINGS)
    assert found.candidates[0].scores is None


def test_other_errors_end_the_search():
    with pytest.raises(MissingExtra):
        search(Constant(), {"fails": [MissingExtra("no scipy"), None]}, RATINGS)


def test_interrupt_keeps_the_finished_candidates():
    found = search(
        Constant(), {"fails": [None, KeyboardInterrupt(), None]}, RATINGS, refit=True
    )
    assert found.interrupted
    assert (len(found.candidates), found.estimator) == (1, None)
    with pytest.raises(KeyboardInterrupt):
        search(Constant(), {"fails": [KeyboardInterrupt(), None]}, RATINGS)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(Constant(fails=KeyboardInterrupt()), RATINGS)


def test_training_that_ends_early_is_no_candidate():
    """Trainings swallow Ctrl-C, and would score after a few rounds."""

    def interrupt(record):
        if record.round == 2:
            raise KeyboardInterrupt

    model = Trainer(FedALS(k=2), rounds=3, callbacks=[interrupt])
    found = search(model, {"rounds": [1, 2, 3]}, RATINGS)
    assert found.interrupted
    assert [one.settings["rounds"] for one in found.candidates] == [1]


def test_interrupted_refit_keeps_the_scores():
    calls = []

    class Late(Constant):
        def fit(self, ratings):
            calls.append(ratings)
            if ratings is RATINGS:
                raise KeyboardInterrupt
            return super().fit(ratings)

    found = search(Late(), {"value": [2.0, 3.0]}, RATINGS, refit=True)
    assert found.interrupted
    assert (len(found.candidates), found.estimator) == (2, None)


def test_noise_is_refused_unless_the_ratings_are_public():
    model, grid = DPFedMF(where="central"), {"rounds": [1, 2]}
    with pytest.raises(SettingError):
        search(model, grid, RATINGS)
    assert search(model, grid, RATINGS, public=True).best.scores is not None
    with pytest.raises(SettingError):
        cross_validate(model, RATINGS, folds=2)


class Private(Constant):
    """Estimator that makes its noise itself."""

    def __init__(self, epsilon=8.0, value=3.0):
        super().__init__(value)
        self.epsilon = epsilon


def test_epsilon_is_refused_unless_it_is_none():
    with pytest.raises(SettingError):
        search(Private(), {"value": [1.0]}, RATINGS)
    assert search(Private(epsilon=None), {"value": [1.0]}, RATINGS).best


@pytest.mark.parametrize(
    ("grid", "options"),
    [
        ({"model__rag": [0.1]}, {}),
        ({"rounds": 3}, {}),
        ({"rounds": []}, {}),
        (None, {}),
        ({"rounds": [1]}, {"measure": "accuracy"}),
        ({"rounds": [1]}, {"validation": 1.0}),
        ({"rounds": [1]}, {"folds": 1}),
        ({"rounds": [1]}, {"first": 0}),
    ],
)
def test_wrong_arguments_raise_before_any_training(grid, options):
    def never(record):
        raise AssertionError

    with pytest.raises(SettingError):
        search(Trainer(callbacks=[never]), grid, RATINGS, **options)


def test_settings_of_a_part_in_the_grid_are_known():
    """Only the second model has the setting."""
    grid = {"model": [FedALS(k=2), FedMF(k=2)], "model__biases": [True]}
    found = search(MODEL, grid, RATINGS)
    assert found.candidates[0].error is not None
    assert found.best.settings["model"] == FedMF(k=2)
    assert json.loads(json.dumps(found.as_dict()))["best"]["model"] == repr(FedMF(k=2))
