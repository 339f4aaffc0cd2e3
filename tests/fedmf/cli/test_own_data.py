"""``fedmf train`` and ``fedmf recommend`` on your own file, and with every model."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from fedmf.cli.models import KINDS, load_model
from fedmf.data import read_ratings
from fedmf_command import call

QUICK = ("--aggregation", "plain", "--rounds", "2")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A file of 30 people who rate 12 films, with names, and one pair twice."""
    rng = np.random.default_rng(1)
    rows = [
        f"name{person};film {film};{rng.integers(1, 6)};{film}"
        for person in range(30)
        for film in rng.permutation(12)[:8]
    ]
    path = tmp_path_factory.mktemp("own") / "ratings.csv"
    path.write_text("\n".join(["who;what;stars;day", *rows, rows[-1]]) + "\n")
    return path


COLUMNS = ("--columns", "who, what,stars,day", "--scale", "1,5", "--duplicates", "last")


def test_names_from_file_to_recommendations(table, tmp_path):
    out = tmp_path / "run"
    call("train", "--data", table, *COLUMNS, *QUICK, "-k", 2, "--out", out)
    settings = json.loads((out / "history.json").read_text())["settings"]
    named = ("who", "what", "stars", "day")
    again = read_ratings(
        settings["data"],
        settings["columns"],
        scale=settings["scale"],
        duplicates=settings["duplicates"],
    )
    wanted = read_ratings(table, named, scale=(1, 5), duplicates="last")
    np.testing.assert_array_equal(again.values, wanted.values)
    moved = table.rename(tmp_path / "moved.csv")
    try:
        ran = call("recommend", out, "--user", "name7", "-k", 3, "--json")
    finally:
        moved.rename(table)
    found = json.loads(ran.stdout)
    assert found["user"] == "name7"
    films = [one["item"] for one in found["items"]]
    assert films
    assert all(one["title"] == one["item"] for one in found["items"])
    model = load_model(out / "model.fedmf")
    user = model.user_ids.tolist().index("name7")
    assert set(films).isdisjoint(model.item_ids[model.seen(user)].tolist())
    call("export", out, "--out", tmp_path / "own.npz")
    with np.load(tmp_path / "own.npz", allow_pickle=False) as exported:
        assert exported["user_ids"].tolist() == model.user_ids.tolist()
    unknown = call("recommend", out, "--user", "nam7", code=2)
    assert "did you mean 'name7'" in unknown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*COLUMNS[:2], *COLUMNS[4:]), "--scale is missing.* 1 to 5"),
        ((*COLUMNS[:2], *COLUMNS[4:]), "--scale 1,5$"),
        ((*COLUMNS, "--scale", "five"), "--scale five"),
        ((*COLUMNS, "--scale", "5,1"), "--scale 5,1 must be"),
        (("--columns", "who,what", "--scale", "1,5"), "--columns who,what .* column of 1"),
        (("--data", "none", "--scale", "1,5"), "--data none"),
        (("--data", "simulated", "--scale", "1,5"), "--scale"),
        (("--data", "ml-100", "--model", "fedmf"), "did you mean 'ml-100k'"),
        ((*COLUMNS[:2], "--scale", "1,5"), "pass --duplicates last or mean"),
        (("--columns", "who,what,star", "--scale", "1,5"), "set --columns .* mean 'stars'"),
        ((*COLUMNS[:3], "2,5", *COLUMNS[4:]), "widen --scale"),
        ((*COLUMNS, "--rounds", "0"), "--rounds = 0"),
        ((*COLUMNS, "--min-raters", "31"), "lower --min-raters$"),
        ((*COLUMNS, "--model", "fedmmf"), "pass --mask mean"),
    ],
)
def test_wrong_options_end_with_2_and_one_line(table, arguments, message):
    ran = call("train", "--data", table, *QUICK, *arguments, code=2)
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert re.search(message, ran.stderr)


@pytest.mark.parametrize("model", [name for name in KINDS if name != "fedmmf"])
def test_every_model_trains_and_states_its_measures(model, table, tmp_path):
    out = tmp_path / "run"
    own = ("train", "--data", table, *COLUMNS, "--out", out, "--json")
    done = call(*own, *QUICK, "--model", model)
    result = json.loads(done.stdout)["result"]
    ranks = KINDS[model].ranks
    assert 0 <= result["ranking"]["precision"] <= 1
    assert 0 < result["ranking"]["ndcg"] <= 1
    assert ("rmse" in result["ranking"]) == ranks
    if ranks:
        assert result["rmse"] is None
    else:
        assert 0 < result["rmse"] < 4
        assert ("head_rmse" in result) == (model == "dpfedmf")
    saved = (out / "model.fedmf").exists()
    assert saved == (model not in ("fedlr", "fedfm", "fednn"))
    second = saved and not ranks and model != "dpfedmf"
    assert (out / "ranking.fedmf").exists() == ("ranking_model" in result) == second
    if saved:
        kept = load_model(out / "model.fedmf")
        assert kept.ranks == KINDS[model].ranks
        shown = json.loads(call("recommend", out, "--user", "name1", "--json").stdout)
        if not second:
            best = kept.recommend(kept.user_ids.tolist().index("name1"))[0]
            assert [one["item"] for one in shown["items"]] == kept.item_ids[best].tolist()
        if model == "dpfedmf":
            said = call("recommend", out, "--user", "name1").stderr
            assert "dpease" in said
            assert "implicit" not in said
        call("export", out, "--out", tmp_path / "factors.npz")


def test_noise_is_that_of_the_asked_epsilon(table):
    """The noise of every released sum together is (ε, δ)-differentially private."""
    own = ("train", "--data", table, *COLUMNS, *QUICK, "--model", "dpfedmf")
    done = call(*own, "--epsilon", 4, "--dropout", 0.1, "--json")
    settings = json.loads(done.stdout)["settings"]
    ease = call(*own[:3], *COLUMNS, *QUICK[:2], "--model", "dpease", "--dropout", 0.1, "--json")
    found = json.loads(ease.stdout)["settings"]
    for epsilon, each in ((4.0, settings), (8.0, found)):
        assert (each["epsilon"], each["delta"]) == (epsilon, 1e-5)
        assert each["hyper_parameters"]["epsilon"] == epsilon
        assert each["hyper_parameters"]["where"] == "distributed"
        assert each["hyper_parameters"]["honest"] == 0.8
        assert each["aggregation"]["name"] == "PlainSum"
    assert settings["head"] is True
    shown = call(*own, "--epsilon", 4)
    assert re.search("against readers of sums +ε = 4, δ = 1e-05", shown.stdout)
    ran = call(*own, "--epsilon", 0, code=2)
    assert "epsilon" in ran.stderr


@pytest.mark.parametrize("model", ["fedals", "fcf"])
def test_training_continues_from_a_folder(model, table, tmp_path):
    """Two rounds and two more give the model of four; the history names the start."""
    own = ("train", "--data", table, *COLUMNS, "--aggregation", "plain", "--model", model)
    runs = {name: tmp_path / name for name in ("first", "more", "whole")}
    for name, options in (
        ("first", ("--rounds", 2)),
        ("more", ("--rounds", 2, "--start", runs["first"])),
        ("whole", ("--rounds", 4)),
    ):
        call(*own, *options, "--out", runs[name])
    more, whole = (load_model(runs[name]) for name in ("more", "whole"))
    np.testing.assert_array_equal(more.item_factors, whole.item_factors)
    settings = json.loads((runs["more"] / "history.json").read_text())["settings"]
    assert settings["start"] == str(runs["first"])
    other = call(*own, "--rounds", 1, "-k", 3, "--start", runs["first"], code=2)
    assert "columns" in other.stderr


def test_start_warns_of_ratings_that_the_file_lacks(table, tmp_path):
    """A file of new ratings alone, and the file of all, from which nothing is lost."""
    own = ("train", *COLUMNS, *QUICK, "-k", 2)
    out = tmp_path / "run"
    call(*own, "--data", table, "--out", out)
    lines = table.read_text().splitlines()
    few = tmp_path / "few.csv"
    kept = [line for line in lines if not line.startswith("name7;")]
    few.write_text("\n".join([*kept, "name31;film 2;3;1"]) + "\n")
    again = call(*own, "--data", few, "--start", out)
    model = load_model(out / "model.fedmf")
    lost = model.seen(model.user_ids.tolist().index("name7")).size
    assert 0 < lost < model.seen_items.size
    assert f"lacks {lost} of {model.seen_items.size} ratings" in again.stderr
    assert "and 1 of its 30 users" in again.stderr
    few.write_text("\n".join([*lines, "name31;film 2;3;1"]) + "\n")
    whole = call(*own, "--data", few, "--start", out)
    assert "lacks" not in whole.stderr


def test_other_model_does_not_continue_a_posterior(table, tmp_path):
    own = ("train", "--data", table, *COLUMNS, *QUICK, "-k", 2)
    call(*own, "--out", tmp_path)
    ran = call(*own, "--model", "implicit", "--start", tmp_path, code=2)
    assert "choose --model fedbpmf" in ran.stderr


@pytest.mark.parametrize(
    ("model", "option"),
    [("fedals", ("--rate", "0.1")), ("fedmf", ("--mask", "fm")), ("fedbpmf", ("--head",))],
)
def test_options_of_other_models_are_rejected(model, option):
    ran = call("train", "--model", model, *QUICK, *option, code=2)
    assert option[0] in ran.stderr
    assert f"--model {model}" in ran.stderr
