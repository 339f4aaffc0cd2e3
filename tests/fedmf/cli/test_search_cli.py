"""``fedmf search``: the table of candidates, without the test ratings of ``fedmf train``."""

from __future__ import annotations

import json
import shlex
from functools import partial

import pytest

from fedmf import FedALS, FedBPMF, Trainer, load
from fedmf.aggregate import PlainSum
from fedmf.cli import search as command
from fedmf.cli.models import KINDS
from fedmf.data.splits import random_split
from fedmf.errors import SettingError
from fedmf.search import search
from fedmf_command import call

invoke = partial(call, "search")


def test_scores_are_of_the_training_part_of_train():
    """The split is that of ``fedmf train`` with the same seed."""
    options = ("--model", "fedals", "--grid", "reg=.1,.3", "--grid", "rounds=3", "--seed", 5)
    done = invoke(*options, "--json")
    found = json.loads(done.stdout)
    train = random_split(load("simulated"), seed=5).train
    trainer = Trainer(FedALS(), PlainSum(clip=64.0), rounds=3, seed=5)
    wanted = search(trainer, {"model__reg": [0.1, 0.3]}, train, seed=5)
    assert [one["mean"] for one in found["candidates"]] == [
        one.scores.mean for one in wanted.candidates
    ]
    assert found["best"] == {"reg": wanted.settings["model__reg"], "rounds": 3}
    assert found["settings"]["validation"] == 0.1
    assert found["measure"] == "rmse"


def test_table_has_a_row_per_candidate_and_marks_the_best():
    done = invoke("--model", "fedals", "--grid", "reg=.1,0", "--grid", "k=2", "--folds", 2)
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["reg", "k", "rmse"]
    assert rows[0].split()[-1] == "best"
    assert "failed" in rows[1]
    assert len(rows) == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("  1 of 2")
    assert "reg = 0" in lines[1]
    assert lines[-1].endswith("fedmf train --model fedals --reg 0.1 -k 2")


def test_advice_trains_the_same_ratings(tmp_path):
    """The last line runs, with the options that chose the ratings."""
    rows = [
        f"u{user},i{item},{1 + (user + item) % 5}" for user in range(9) for item in range(7)
    ]
    path = tmp_path / "my ratings.csv"
    path.write_text("\n".join(["who,what,stars", *rows]))
    own = ("--data", path, "--columns", "who,what,stars", "--scale", "1,5", "--seed", 3)
    grid = ("--grid", "k=1", "--grid", "min_raters=2", "--grid", "rounds=2")
    done = invoke(*own, "--model", "fedals", *grid)
    program, *words = shlex.split(done.stderr.splitlines()[-1].removeprefix("train it: "))
    assert program == "fedmf"
    trained = call(*words, "--aggregation", "plain", "--json")
    settings = json.loads(trained.stdout)["settings"]
    assert (settings["data"], settings["seed"], settings["rounds"]) == (str(path), 3, 2)
    assert settings["hyper_parameters"]["min_raters"] == 2


def test_few_items_are_ranked_among_themselves(tmp_path):
    """The measures are of the first ten items where there are so many."""
    path = tmp_path / "few.csv"
    rows = [f"u{user},i{(user + step) % 6},1" for user in range(12) for step in (0, 1, 3)]
    path.write_text("\n".join(["user,item,rating", *rows]))
    invoke("--data", path, "--scale", "0,1", "--model", "implicit", "--grid", "k=1,2")


def setting_of(model):
    return next(name for name in ("k", "rate") if name in KINDS[model].takes)


@pytest.mark.parametrize(
    "model", [name for name in KINDS if "epsilon" not in KINDS[name].takes]
)
def test_every_model_is_searched_by_its_options(model):
    """The grid changes the setting that the option of ``fedmf train`` changes."""
    name, rounds = setting_of(model), "15" if model == "fedbpmf" else "2"
    values = "1,2" if name == "k" else ".1,.2"
    grid = ("--grid", f"{name}={values}", "--grid", f"rounds={rounds}")
    done = invoke("--model", model, *grid, "--json")
    found = json.loads(done.stdout)
    means = [one["mean"] for one in found["candidates"]]
    assert means[0] != means[1]
    assert found["measure"] == ("map" if KINDS[model].ranks else "rmse")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--grid"),
        (("--grid", "k=1,a"), "--grid k=1,a"),
        (("--model", "dpfedmf", "--grid", "k=1"), "public"),
        (("--grid", "k=1", "--folds", "1"), "--folds"),
        (("--grid", "k=1", "--measure", "auc"), "--measure"),
        (("--grid", "k=0"), "all 1 candidates failed"),
    ],
)
def test_wrong_options_end_with_2_and_one_line(arguments, message):
    ran = invoke(*arguments, code=2)
    assert ran.stdout == ""
    assert message in ran.stderr.splitlines()[-1]


def test_interrupt_shows_the_finished_candidates(monkeypatch):
    whole = FedBPMF.fit

    def fit(self, *arguments, **more):
        if self.k == 3:
            raise KeyboardInterrupt
        return whole(self, *arguments, **more)

    monkeypatch.setattr(FedBPMF, "fit", fit)
    done = invoke("--grid", "k=1,3", "--grid", "rounds=12", code=130)
    assert len(done.stdout.splitlines()) == 2
    assert "interrupted" in done.stderr
    done = invoke("--grid", "k=3", "--grid", "rounds=12", code=130)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("given", "name"),
    [(" factors=1", "k"), ("--factors=1", "k"), ("min-raters=3", "min_raters"), ("-k=1", "k")],
)
def test_grid_takes_the_options_of_train(given, name):
    found = command._grid(KINDS["fedals"], "fedals", [given, "rounds=1"])
    assert set(found) == {name, "rounds"}
    with pytest.raises(SettingError, match=f"--grid {given}"):
        command._grid(KINDS["fedals"], "fedals", [f"{name}=2", given])
