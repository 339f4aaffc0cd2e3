"""The model that ranks, which ``fedmf train --out`` trains beside a model of ratings."""

from __future__ import annotations

import json
import shlex
from functools import partial

import numpy as np
import pytest

import fedmf.cli.train
from fedmf.aggregate import OneShotSum, PlainSum, RoundAborted
from fedmf.cli import report
from fedmf.data import load, read_ratings
from fedmf.data.sets.simulated import appeal
from fedmf.data.splits import random_split, time_split
from fedmf.fcf import FederatedCF, tuned, views
from fedmf.fcf.choice import EPOCHS, REGS
from fedmf.fcf.moments import VIEWS
from fedmf.models import Factors
from fedmf.training import ranking
from fedmf.training.measures import Popularity
from fedmf_command import call

QUICK = ("train", "--model", "fedmf", "--aggregation", "plain", "--rounds", "2", "-k", "2")


train = partial(call, *QUICK)


def test_second_model_learns_from_the_training_part_alone(tmp_path):
    done = train("--out", tmp_path, "--json", "--seed", "3", "--split", "time")
    parts = time_split(load("simulated"))
    sums = PlainSum(**VIEWS)
    meant = FederatedCF(tuned(8), sums, rounds=5, seed=3).fit(views(parts.train)).model_
    kept = Factors.load(tmp_path / "ranking.fedmf")
    np.testing.assert_array_equal(kept.item_factors, meant.item_factors)
    assert kept.ranks
    result = json.loads(done.stdout)["result"]
    found = ranking(kept, parts.test, parts.train)
    assert result["ranking_model"]["precision"] == found.precision
    assert result["ranking_model"]["seconds"] > 0


@pytest.fixture
def small(tmp_path):
    """A file of twelve users, each of whom rates five of eight items, without times."""
    path = tmp_path / "own.csv"
    rows = [f"{u},{(u + i) % 8},{1 + (u * i) % 5}" for u in range(12) for i in range(5)]
    path.write_text("\n".join(["user,item,rating", *rows]))
    return ("--data", path, "--scale", "1,5")


def test_second_model_gets_the_same_kind_of_sum(tmp_path, small, monkeypatch):
    """Its clip is its own, and the first model's stays as it was."""
    made = []
    real = FederatedCF.fit
    monkeypatch.setattr(
        FederatedCF, "fit", lambda self, ratings: made.append(self) or real(self, ratings)
    )
    sums = ("--aggregation", "one-shot", "--helpers", "4")
    done = train("--out", tmp_path, *small, *sums, "--json")
    (model,) = made
    assert isinstance(model.aggregation, OneShotSum)
    assert (model.aggregation.helpers, model.aggregation.clip) == (4, VIEWS["clip"])
    how = json.loads(done.stdout)["settings"]["aggregation"]
    assert (how["helpers"], how["clip"]) == (4, 16.0)


def test_no_ranking_deletes_the_older_second_model(tmp_path):
    train("--out", tmp_path)
    assert (tmp_path / "ranking.fedmf").exists()
    done = train("--out", tmp_path, "--no-ranking", "--json")
    assert not (tmp_path / "ranking.fedmf").exists()
    assert "ranking_model" not in json.loads(done.stdout)["result"]


def test_second_model_that_fails_leaves_the_first(tmp_path, monkeypatch):
    def lost(self, ratings):
        raise RoundAborted("no sum came about")

    monkeypatch.setattr(FederatedCF, "fit", lost)
    done = train("--out", tmp_path)
    assert "no ranking.fedmf: no sum came about" in done.stderr
    assert (tmp_path / "model.fedmf").exists()
    assert not (tmp_path / "ranking.fedmf").exists()


def interrupted_at(monkeypatch, sums):
    def stop(self, *arguments, **options):
        def interrupt(record):
            if record.round == sums:
                raise KeyboardInterrupt

        self.callbacks = [*self.callbacks, interrupt]
        if sums == 0:
            raise KeyboardInterrupt
        return real(self, *arguments, **options)

    real = FederatedCF.fit
    monkeypatch.setattr(FederatedCF, "fit", stop)


CHOICE = sum(EPOCHS) + len(REGS)  # sums


@pytest.mark.parametrize("sums", [0, CHOICE, CHOICE + 2])
def test_ctrl_c_in_the_second_model_keeps_the_first(tmp_path, monkeypatch, sums):
    interrupted_at(monkeypatch, sums)
    done = train("--out", tmp_path, code=130)
    assert "the 2 rounds done are kept" in done.stderr
    assert Factors.load(tmp_path / "model.fedmf").k == 2
    assert (tmp_path / "ranking.fedmf").exists() == (sums > CHOICE)
    assert ("no ranking.fedmf" in done.stderr) == (sums <= CHOICE)


def test_ctrl_c_in_the_measures_keeps_both_models(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fedmf.cli.train, "measured", interrupted)
    train("--out", tmp_path, code=130)
    assert (tmp_path / "model.fedmf").exists()
    assert (tmp_path / "ranking.fedmf").exists()


@pytest.mark.parametrize(
    ("options", "rounds"),
    [
        (("--model", "fedals", "--cohort", "0.9", "--min-raters", "4"), "9"),
        (("--model", "fedals", "--scale", "0,6", "--columns", "user, item,rating"), "9"),
        (("--model", "fedbpmf", "-k", "2", "--rounds", "12"), "12"),
    ],
)
def test_interrupted_training_names_the_command_that_goes_on(
    options, rounds, small, tmp_path, monkeypatch
):
    """The command makes ranking.fedmf, with the data, the sum and the settings."""
    real = report.LiveReport.round_done

    def interrupted(self, record):
        real(self, record)
        raise KeyboardInterrupt

    monkeypatch.setattr(report.LiveReport, "round_done", interrupted)
    plain = ("--aggregation", "plain", "--out", tmp_path / "a folder")
    scale = () if "--scale" in options else ("--scale", "1,5")
    done = call("train", "--data", small[1], *scale, *options, *plain, code=130)
    assert (tmp_path / "a folder" / "model.fedmf").exists()
    monkeypatch.undo()
    line = next(line for line in done.stderr.splitlines() if "no ranking.fedmf" in line)
    words = shlex.split(line.partition("fedmf train ")[2])
    assert words[words.index("--rounds") + 1] == rounds
    call("train", *words, "--force")
    assert (tmp_path / "a folder" / "ranking.fedmf").exists()


def test_interrupted_training_without_a_start_says_to_train_again(tmp_path, monkeypatch):
    def interrupted(self, record):
        raise KeyboardInterrupt

    monkeypatch.setattr(report.LiveReport, "round_done", interrupted)
    done = call("train", "--model", "fedmmf", *QUICK[3:5], "--out", tmp_path, code=130)
    assert "no ranking.fedmf, by which fedmf recommend ranks: train again" in done.stderr


def test_split_by_time_of_ratings_without_times_exits_with_2(small):
    done = train(*small, "--split", "time", code=2)
    assert done.stdout == ""
    assert "times" in done.stderr


def test_model_under_noise_has_no_second_model(tmp_path):
    """Exact sums of the same ratings would undo the noise."""
    noised = ("--model", "dpfedmf", "--epsilon", "8", "--aggregation", "plain")
    call("train", *noised, "--rounds", "2", "--out", tmp_path)
    assert (tmp_path / "model.fedmf").exists()
    assert not (tmp_path / "ranking.fedmf").exists()


def test_measures_stand_beside_those_without_a_model(small):
    """The most popular items first, and the mean of the training ratings as a guess."""
    arguments = ("--data", small[1], "--scale", "1,5", "--json")
    result = json.loads(train(*arguments).stdout)["result"]
    parts = random_split(read_ratings(small[1], scale=(1, 5)), seed=0)
    popular = ranking(Popularity(parts.train), parts.test, parts.train, 8)
    assert result["popularity"]["ndcg"] == popular.ndcg
    mean = parts.train.values.mean()
    assert result["mean_rmse"] == pytest.approx(
        np.sqrt(np.mean((parts.test.values - mean) ** 2))
    )
    assert "of the mean rating" in train(*arguments[:-1]).stdout
    assert "the same by popularity" in train(*arguments[:-1]).stdout


def test_demo_ranks_better_than_popularity_below_the_best_possible(tmp_path, small):
    result = json.loads(train("--out", tmp_path, "--json").stdout)["result"]
    names = ("popularity", "ranking_model", "best_possible")
    popular, model, best = (result[name]["precision"] for name in names)
    assert popular + 0.05 < model < best
    parts = random_split(load("simulated"), seed=0)
    truth = Factors.of(*appeal(300, 500), parts.train)
    assert best == ranking(truth, parts.test, parts.train).precision
    assert "the best possible" in train().stdout
    assert "best_possible" not in json.loads(train(*small, "--json").stdout)["result"]
