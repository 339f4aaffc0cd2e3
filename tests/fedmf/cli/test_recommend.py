"""``fedmf recommend`` on the simulated ratings and a model made by hand."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedmf.cli.models import load_model
from fedmf.data import from_triples, load
from fedmf.models import Factors
from fedmf_command import call

RATINGS = load("simulated")
USER = 7  # an id; the users' ids are 1, 2, … and their numbers 0, 1, …


invoke = partial(call, "recommend")


@pytest.fixture
def folder(tmp_path):
    """A model that predicts every item's number in hundredths, and the record beside it."""
    q = np.arange(RATINGS.n_items, dtype=np.float64)[:, None] / 100
    Factors.of(np.ones((RATINGS.n_users, 1)), q, RATINGS).save(tmp_path / "model.fedmf")
    history = {"settings": {"data": "simulated"}}
    (tmp_path / "history.json").write_text(json.dumps(history))
    return tmp_path


@pytest.mark.parametrize(
    ("ids", "user", "shown"),
    [
        (["7.0", "8.0"], "7", "'7.0'"),
        (["007", "008"], "7", "'007'"),
        (["7", "x"], "7.0", "'7'"),
        (["1e3", "x"], "1000", "'1e3'"),
        ([7, 8], "7.0", "'7'"),
        (["Ada", "Bo"], "Adda", "'Ada'"),
    ],
)
def test_unknown_user_shows_the_id_that_is_meant(tmp_path, ids, user, shown):
    ratings = from_triples(ids, [1, 2], [1, 2], scale=(1, 5))
    Factors.of(np.ones((2, 1)), np.ones((2, 1)), ratings).save(tmp_path / "model.fedmf")
    ran = invoke(tmp_path, "--user", user, code=2)
    assert f"did you mean {shown}" in ran.stderr.replace("\n", " ")


def test_recommend_prints_best_unrated_items_with_titles(folder):
    ran = invoke(folder, "--user", USER, "-k", 3, "--json")
    rated = set(RATINGS.of_user(USER - 1)[0].tolist())
    best = [item for item in reversed(range(RATINGS.n_items)) if item not in rated][:3]
    names = np.array(RATINGS.catalogue.genre_names)
    assert json.loads(ran.stdout) == {
        "data": "simulated",
        "user": USER,
        "ranks": False,
        "items": [
            {
                "rank": rank,
                "item": int(RATINGS.item_ids[item]),
                "title": RATINGS.catalogue.titles[item],
                "year": int(RATINGS.catalogue.years[item]),
                "genres": names[RATINGS.catalogue.genres[item]].tolist(),
                "prediction": item / 100,
            }
            for rank, item in enumerate(best, start=1)
        ],
    }
    shown = invoke(folder / "model.fedmf", "--user", USER, "-k", 1)
    line = shown.stdout.splitlines()[1]
    assert re.match(f"1 +{re.escape(RATINGS.catalogue.titles[best[0]])}", line)
    assert line.endswith(f"{best[0] / 100:.2f}")
    assert len(shown.stdout.splitlines()) == 2


def test_recommend_reads_the_files_of_train(tmp_path):
    call("train", "--aggregation", "plain", "--rounds", "1", "--out", tmp_path)
    ran = invoke(tmp_path, "--user", 300)
    assert len(ran.stdout.splitlines()) == 11
    model = load_model(tmp_path / "ranking.fedmf")
    first = RATINGS.catalogue.titles[model.recommend(299, 1)[0][0]]
    assert first in ran.stdout.splitlines()[1]


def test_title_with_brackets_and_no_year_is_unchanged(folder, monkeypatch):
    catalogue = RATINGS.catalogue
    titles = ("[bold] Film",) * len(catalogue)
    strange = replace(catalogue, titles=titles, years=np.zeros_like(catalogue.years))
    odd = replace(RATINGS, catalogue=strange)
    monkeypatch.setattr("fedmf.cli.recommend.load", lambda name: odd)
    shown = invoke(folder, "--user", USER, "-k", 1).stdout
    assert re.match(r"1 +\[bold\] Film +[A-Z]", shown.splitlines()[1])
    found = json.loads(invoke(folder, "--user", USER, "-k", 1, "--json").stdout)
    assert found["items"][0]["year"] is None


@pytest.mark.parametrize("known", ["year", "genres", ""])
def test_columns_that_are_empty_are_left_out(folder, monkeypatch, known):
    catalogue = RATINGS.catalogue
    years, genres = catalogue.years * (known == "year"), catalogue.genres & (known == "genres")
    odd = replace(RATINGS, catalogue=replace(catalogue, years=years, genres=genres))
    monkeypatch.setattr("fedmf.cli.recommend.load", lambda name: odd)
    heads = invoke(folder, "--user", USER).stdout.splitlines()[0].split()
    assert heads == ["title", *filter(None, [known]), "rating"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--user", 301), "--user 301 "),
        (("--user", USER, "-k", 0), "k = 0"),
        (("--user", USER, "--data", "other"), "'other'"),
    ],
)
def test_bad_arguments_exit_with_one_line(folder, arguments, named):
    ran = invoke(folder, *arguments, code=2)
    assert ran.stdout == ""
    assert named in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("side", ["user_ids", "item_ids"])
@pytest.mark.parametrize("name", ["model.fedmf", "ranking.fedmf"])
def test_model_of_other_data_exits_with_2(pair, side, name):
    """The sizes are equal; only the ids differ."""
    factors = Factors.load(pair / name)
    replace(factors, **{side: getattr(factors, side) + 1}).save(pair / name)
    ran = invoke(pair, "--user", USER, code=2)
    assert ran.stdout == ""
    assert "ranking.fedmf" in ran.stderr
    (pair / "ranking.fedmf").unlink()
    other = name == "model.fedmf"
    alone = invoke(pair, "--user", USER, code=2 if other else 0)
    assert ("simulated" in alone.stderr) == other


def test_damaged_history_shows_ids_for_titles(folder):
    history = folder / "history.json"
    for broken in ("{", "[]", '{"settings": {"data": 3}}', None):
        history.unlink() if broken is None else history.write_text(broken)
        ran = invoke(folder, "--user", USER, "-k", 1, "--json")
        assert f"{history} is missing or has no data set" in ran.stderr
        (item,) = json.loads(ran.stdout)["items"]
        assert item["title"] == str(item["item"])
    titled = json.loads(invoke(folder, "--user", USER, "--data", "simulated", "--json").stdout)
    assert titled["items"][0]["title"] != str(item["item"])


def test_ranking_models_are_named(folder):
    path = folder / "model.fedmf"
    assert "predicted ratings" in invoke(folder, "--user", USER).stderr
    replace(Factors.load(path), ranks=True, scale=None).save(path)
    settings = {"data": "simulated", "model": "implicit"}
    (folder / "history.json").write_text(json.dumps({"settings": settings}))
    ran = invoke(folder, "--user", USER)
    assert ran.stderr == "ranked by implicit\n"
    assert "score" in ran.stdout.splitlines()[0]


@pytest.fixture
def pair(folder):
    """The same model with another that ranks the items the other way round."""
    rng = np.random.default_rng(0)
    q = np.column_stack((np.arange(RATINGS.n_items, 0, -1.0), rng.random(RATINGS.n_items)))
    p = np.ones((RATINGS.n_users, 2))
    Factors.of(p, q, RATINGS, ranks=True).save(folder / "ranking.fedmf")
    settings = {"data": "simulated", "model": "fedmf"}
    (folder / "history.json").write_text(json.dumps({"settings": settings}))
    replace(Factors.load(folder / "model.fedmf"), scale=(1.0, 5.0)).save(folder / "model.fedmf")
    return folder


def test_folder_is_ranked_by_its_second_model(pair):
    """The ratings are the first model's, within the scale; the reasons are the user's own."""
    ran = invoke(pair, "--user", USER, "-k", 4, "--json")
    assert ran.stderr.count("\n") == 1
    assert "ranking.fedmf" in ran.stderr
    assert "fedmf" in ran.stderr
    alone = invoke(pair / "ranking.fedmf", "--user", USER, "-k", 1, "--json")
    assert "prediction" not in json.loads(alone.stdout)["items"][0]
    found = json.loads(ran.stdout)
    ranker = Factors.load(pair / "ranking.fedmf")
    items, scores = ranker.recommend(USER - 1, 4)
    assert found["ranks"]
    assert [one["item"] for one in found["items"]] == RATINGS.item_ids[items].tolist()
    assert [one["score"] for one in found["items"]] == scores.tolist()
    assert [one["prediction"] for one in found["items"]] == [1.0] * 4  # .00 to .04, clipped
    rated = {RATINGS.catalogue.titles[item] for item in RATINGS.of_user(USER - 1)[0]}
    for one, item in zip(found["items"], items, strict=True):
        because = ranker.explain(USER - 1, int(item), 2)[0]
        assert one["because"] == [RATINGS.catalogue.titles[other] for other in because]
        assert set(one["because"]) < rated
    shown = invoke(pair, "--user", USER, "-k", 1).stdout.splitlines()
    assert re.search("rating +score +because you rated", shown[0])
    assert all(part in shown[1] for part in found["items"][0]["because"])


def test_scores_of_0_are_named(pair):
    """FCF scores all items 0 for a user without ratings; FederatedCF ranks by popularity."""
    ranker = Factors.load(pair / "ranking.fedmf")
    users = ranker.user_factors.copy()
    users[USER - 1] = 0.0
    replace(ranker, user_factors=users).save(pair / "ranking.fedmf")
    for arguments in ((pair,), (pair / "ranking.fedmf",)):
        ran = invoke(*arguments, "--user", USER, "-k", 1, "--json")
        assert "all scores are 0" in ran.stderr
    assert "scores" not in invoke(pair, "--user", USER + 1).stderr


def test_unsaved_model_is_reported_with_remedy(tmp_path):
    train = ("train", "--aggregation", "plain", "--rounds", "1", "--out", tmp_path)
    call(*train, "--model", "fedmmf", "--mask", "nn")
    ran = invoke(tmp_path, "--user", USER, code=2)
    assert ran.stdout == ""
    assert "mask nn" in ran.stderr
