"""``fedmf data``: its tables, JSON and errors."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import fedmf.data
from fedmf.cli.data import figures
from fedmf.data import NAMES, load
from fedmf.data.sets.movielens import FORMATS
from fedmf.data.sets.sources import SOURCES
from fedmf_command import call
from file_server import FILES, GOOD, NAME, md5, serving

run = partial(call, "data")


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> Path:
    """Make a tiny set the known one, with nothing here yet; return the cache."""
    monkeypatch.delenv("FEDMF_DATA", raising=False)
    monkeypatch.setenv("FEDMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setitem(FORMATS, NAME, replace(FORMATS[NAME], counts=(2, 2, 2)))
    files = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    known = replace(SOURCES[NAME], files=files | {"tags.csv": ""}, md5=md5(GOOD))
    monkeypatch.setattr(fedmf.data.loading, "SOURCES", {**SOURCES, NAME: known})
    return tmp_path / "cache"


def put(folder: Path, **changes: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(changes.get(name.replace(".", "_"), content))


def test_list_shows_folder_or_fetch_command(tiny):
    put(tiny / NAME)
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert tuple(rows) == NAMES
    sizes = {"users": 300, "items": 500, "ratings": 20_000}
    assert rows["simulated"] == {"name": "simulated", **sizes, "source": None, "folder": None}
    assert rows[NAME]["folder"] == str(tiny / NAME)
    assert rows["ml-10m"]["ratings"] == 10_000_054
    assert [rows[name]["source"] for name in ("lastfm", "lastfm-log")] == ["lastfm"] * 2
    shown = run("list")
    assert "missing: fedmf data fetch lastfm" in shown.stdout
    assert "built in" in shown.stdout


def test_describe_counts_users_items_and_ratings(tiny):
    put(tiny / NAME)
    figures = json.loads(run("describe", NAME, "--json").stdout)
    assert (figures["users"], figures["items"], figures["ratings"]) == (2, 2, 2)
    assert figures["density"] == 0.5
    assert figures["histogram"] == {"0.5": 1, "5.0": 1}
    assert figures["per_user"] == [1, 1, 1]
    assert (figures["singletons"], figures["unrated"]) == (2, 0)
    assert (figures["without_year"], figures["without_genre"]) == (1, 1)
    assert "redistribute it under the same terms" in figures["terms"]


def test_describe_prints_the_simulated_set(tiny):
    shown = run("describe", "simulated")
    for part in ("20,000", "13.333%", "items with one rater", "Film-Noir", "█"):
        assert part in shown.stdout
    most = json.loads(run("describe", "simulated", "--json").stdout)["histogram"]
    assert sum(most.values()) == 20_000
    lone = figures(load("simulated").take([0]))
    assert (lone["singletons"], lone["unrated"], lone["per_user"][0]) == (1, 499, 0)


def test_fetch_prints_terms_and_set_is_found_afterwards(tiny):
    """Fetch shows the terms and then every command finds the set."""
    with serving() as server:
        server.content = GOOD
        done = run("fetch", NAME, "--url", server.url("good"), "--json")
        again = run("fetch", NAME, "--url", server.url("missing"))
    assert json.loads(done.stdout) == {"name": NAME, "folder": str(tiny / NAME)}
    assert "Free for research" in done.stderr
    assert "ml-latest-small-README.html" in done.stderr
    assert again.stdout == f"{NAME}: {tiny / NAME}\n"
    assert len(load(NAME)) == 2
    found = json.loads(run("verify", NAME, "--json").stdout)
    assert found["files"].pop("tags.csv") == "no checksum on record"
    assert found["files"] == dict.fromkeys(("ratings.csv", "movies.csv"), "as known")
    assert (found["folder"], found["ratings"]) == (str(tiny / NAME), 2)
    assert "is valid: 2 users, 2 items, 2 ratings" in run("verify", NAME).stdout


def test_fetch_of_a_present_set_changes_nothing(tiny, tmp_path, monkeypatch):
    put(tmp_path / "mine" / NAME)
    monkeypatch.setenv("FEDMF_DATA", str(tmp_path / "mine"))
    with serving() as server:
        done = run("fetch", NAME, "--url", server.url("missing"))
    assert done.stdout == f"{NAME}: {tmp_path / 'mine' / NAME}\n"
    assert NAME in done.stderr
    assert not tiny.exists()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"movies_csv": FILES["movies.csv"].replace(b"A", b"Z")}, "movies.csv in "),
        ({"tags_csv": FILES["tags.csv"] + b"1,1\r\n"}, "tags.csv, line 3: "),
    ],
)
def test_verify_of_changed_files_exits_with_2(tiny, changes, place):
    put(tiny / NAME, **changes)
    done = run("verify", NAME, code=2)
    assert "movies.csv" in done.stdout
    assert done.stderr.startswith(f"fedmf: {place}")
    assert done.stderr.count("\n") == 1


def test_verify_reports_a_missing_file(tiny):
    put(tiny / NAME)
    (tiny / NAME / "tags.csv").unlink()
    done = run("verify", NAME, code=2)
    assert f"tags.csv in {tiny / NAME} " in done.stderr
    shutil.rmtree(tiny / NAME)
    assert "run 'fedmf data fetch ml-latest-small'" in run("verify", NAME, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("fetch", "simulated"), "simulated"),
        (("verify", "simulated"), "simulated"),
        (("fetch", "ml-100"), "'ml-100k'"),
        (("describe", "none.parquet"), "none.parquet"),
        (("fetch", "ml-1m", "--url", "http://example.org/x"), "http://example.org/x"),
        (("describe", "simulated", "--scale", "1,5"), "--scale"),
    ],
)
def test_bad_arguments_exit_with_2(tiny, arguments, named):
    done = run(*arguments, code=2)
    assert done.stdout == ""
    assert named in done.stderr.splitlines()[-1]


@pytest.fixture
def own(tmp_path) -> Path:
    path = tmp_path / "own.csv"
    rows = "ada;alien;4;7\nada;dune;5;8\nbo;dune;1;9\n"
    path.write_text(f"who;film;stars;day\n{rows}")
    return path


COLUMNS = ("--columns", "who,film,stars")
SCALE = ("--scale", "1,5")


def test_describe_counts_a_file(own):
    found = run("describe", str(own), *COLUMNS, *SCALE, "--json")
    figures = json.loads(found.stdout)
    assert (figures["users"], figures["items"], figures["ratings"]) == (2, 2, 3)
    assert figures["terms"] is None
    shown = run("describe", str(own), *COLUMNS, *SCALE)
    assert "own.csv" in shown.stdout
