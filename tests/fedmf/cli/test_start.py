"""``fedmf train --start``: the settings of the start, and the comparison with it."""

from __future__ import annotations

import json
import shutil
from functools import partial

import numpy as np
import pytest

from fedmf.cli.start import compared
from fedmf.data import from_triples
from fedmf.data.splits import random_split
from fedmf.fcf import FederatedCF, Implicit, views
from fedmf.models import FedALS
from fedmf.training import Trainer, ranking, rmse
from fedmf_command import call

PLAIN = ("--aggregation", "plain", "--rounds", "2")
ALS = ("--model", "fedals", "-k", "3", "--reg", "0.3")


invoke = partial(call, "train", *PLAIN)


def settings_of(folder):
    settings = json.loads((folder / "history.json").read_text())["settings"]
    return settings | settings["hyper_parameters"] | settings["options"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of small trainings, by their options."""
    made = {}

    def run(*options):
        if options not in made:
            out = tmp_path_factory.mktemp("run")
            invoke(*options, "--no-ranking", "--out", out)
            made[options] = out
        return made[options]

    return run


@pytest.mark.parametrize(
    ("first", "given", "meant"),
    [
        (ALS, (), {"model": "fedals", "k": 3, "reg": 0.3}),
        (ALS, ("--reg", "0.2"), {"k": 3, "reg": 0.2}),
        ((*ALS, "--seed", "3"), ("--seed", "0"), {"seed": 0}),
        ((*ALS, "--cohort", "0.5", "--dropout", "0.1"), (), {"cohort": 0.5, "dropout": 0.1}),
        (("--model", "fedmf", "--rate", "0.3"), (), {"model": "fedmf", "rate": 0.3}),
        (ALS, ("--model", "fedbpmf"), {"model": "fedbpmf", "k": 3}),
        (ALS, ("--model", "fedmf"), {"k": 3, "reg": 0.12}),
        (("--model", "implicit", "-k", "2", "--reg", "3"), (), {"k": 2, "reg": 3}),
        (("--model", "fcf", "-k", "2", "--rate", "0.3"), (), {"model": "fcf", "rate": 0.3}),
    ],
)
def test_settings_not_given_are_those_of_the_start(first, given, meant, runs, tmp_path):
    start = runs(*first)
    done = invoke("--start", start, *given, "--no-ranking", "--out", tmp_path)
    found = settings_of(tmp_path)
    assert {name: found[name] for name in meant} == meant
    before = settings_of(start)
    said = next(line for line in done.stderr.splitlines() if line.startswith("as in "))
    for option, value in zip(given[::2], given[1::2], strict=True):
        name = option.lstrip("-").replace("-", "_")
        changed = before.get(name) not in (None, found[name])
        assert (f"{option} {value} for {before.get(name)}" in said) == changed


@pytest.mark.parametrize("history", [None, "[]", '{"settings": {"model": "mf"}}'])
def test_start_without_settings_says_so(history, runs, tmp_path):
    shutil.copytree(runs(*ALS), tmp_path / "start")
    file = tmp_path / "start" / "history.json"
    file.unlink()
    if history is not None:
        file.write_text(history)
    done = invoke("--start", tmp_path / "start", *ALS)
    assert f"are not in {file}" in done.stderr


def test_options_are_not_those_of_the_model_that_ranks(tmp_path):
    """history.json has the settings of model.fedmf."""
    invoke(*ALS, "--out", tmp_path)
    start = ("--start", tmp_path / "ranking.fedmf", "--model", "implicit", "-k", "8")
    done = invoke(*start, "--out", tmp_path / "other")
    assert "are not in" in done.stderr
    assert settings_of(tmp_path / "other")["reg"] is None


WORSE = ("--reg", "5", "-k", "3")


@pytest.mark.parametrize(
    ("first", "given", "kept", "named"),
    [
        (ALS, WORSE, True, ""),
        (ALS, (*WORSE, "--force"), False, ""),
        ((*ALS[:-1], "5"), ("--reg", "0.3"), False, "model.fedmf"),
        (("--model", "implicit", "-k", "8"), ("--reg", "100000"), True, "model.fedmf"),
        (("--model", "implicit", "-k", "8", "--reg", "100000"), ("--reg", "1"), False, ""),
    ],
)
def test_worse_model_does_not_replace_its_start(first, given, kept, named, runs, tmp_path):
    """Not in the start's own folder, unless --force is given."""
    out = tmp_path / "own"
    shutil.copytree(runs(*first), out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    done = invoke("--start", out / named, *given, "--out", out, "--json", code=1 if kept else 0)
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    assert (after == before) == kept
    assert ("--force" in done.stderr) == kept
    found = json.loads(done.stdout)["result"]["since_start"]
    shown = f"started from {found['measure']} {found['start']:.4f}, now {found['now']:.4f}"
    assert shown in done.stderr
    if kept and named:
        other = invoke("--start", out, *given, "--out", tmp_path / "other")
        assert shown in other.stderr
        assert (tmp_path / "other" / "model.fedmf").exists()


def table(users, films, seed):
    rng = np.random.default_rng(seed)
    who, what = np.repeat(users, len(films)), np.tile(films, len(users))
    taken = rng.random(who.size) < 0.6
    values = 1 + (who + what)[taken] % 5
    return from_triples(who[taken], what[taken], values.astype(float), scale=(1, 5))


def test_only_ratings_count_that_the_start_has_not_seen():
    """The start has another split of fewer users and items, which have other numbers."""
    whole = table(np.arange(40), np.arange(30), 1)
    few = (whole.user_ids[whole.users] % 5 > 0) & (whole.item_ids[whole.items] % 3 > 0)
    earlier = from_triples(
        whole.user_ids[whole.users][few],
        whole.item_ids[whole.items][few],
        whole.values[few],
        scale=(1, 5),
    )
    train = random_split(earlier, seed=5).train
    start = Trainer(FedALS(k=2), rounds=2).fit(train).model_
    parts = random_split(whole, seed=0)
    now = Trainer(FedALS(k=2), rounds=1).fit(parts.train).model_
    seen = set(zip(train.user_ids[train.users], train.item_ids[train.items], strict=True))
    users, items = start.user_ids.tolist(), start.item_ids.tolist()
    pairs = [
        (value, users.index(user), items.index(item), at)
        for at, (user, item, value) in enumerate(
            zip(
                whole.user_ids[parts.test.users].tolist(),
                whole.item_ids[parts.test.items].tolist(),
                parts.test.values.tolist(),
                strict=True,
            )
        )
        if (user, item) not in seen and user in users and item in items
    ]
    values, rows, columns, at = map(np.array, zip(*pairs, strict=True))
    found = compared(start, now, whole, parts)
    assert found.ratings == len(pairs) < parts.test.n_ratings
    assert found.start == pytest.approx(rmse(values, start.predict(rows, columns)))
    guesses = now.predict(parts.test.users[at], parts.test.items[at])
    assert found.now == pytest.approx(rmse(values, guesses))


def test_start_that_has_seen_everything_is_not_compared():
    whole = table(np.arange(20), np.arange(12), 2)
    start = Trainer(FedALS(k=2), rounds=2).fit(whole).model_
    parts = random_split(whole, seed=0)
    assert compared(start, start, whole, parts) is None


def test_models_that_rank_are_compared_beyond_what_the_start_knows():
    """Items that the start has seen are hidden from both, and it scores no new item."""
    whole = views(table(np.arange(40), np.arange(30), 3))
    first = random_split(whole, seed=1).train.take(np.arange(400))
    start = FederatedCF(Implicit(k=2), rounds=2, min_raters=1).fit(first).model_
    parts = random_split(whole, seed=0)
    now = FederatedCF(Implicit(k=2), rounds=2, min_raters=1).fit(parts.train).model_
    found = compared(start, now, whole, parts)
    assert found.measure == "precision"
    known = set(zip(first.users, first.items, strict=True))
    fair = [pair not in known for pair in zip(parts.test.users, parts.test.items, strict=True)]
    rest = parts.test.take(np.array(fair))
    assert 0 < found.ratings == rest.n_ratings < parts.test.n_ratings
    sought = set(zip(rest.users, rest.items, strict=True))
    pairs = zip(whole.users, whole.items, strict=True)
    hidden = whole.take(np.array([pair not in sought for pair in pairs]))
    assert found.now == ranking(now, rest, hidden).precision
    assert compared(start, start, whole, parts).start == found.start
    assert found.worse == (round(found.now, 4) < round(found.start, 4))
