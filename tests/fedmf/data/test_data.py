"""Data sets by name: the names that `load` knows, and its error for an unknown name."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fedmf.data import NAMES, load, source_of
from fedmf.data.sets.simulated import simulate
from fedmf.data.sets.sources import SOURCES
from fedmf.errors import DataError


def test_simulated_needs_no_folder_and_is_small(monkeypatch):
    monkeypatch.delenv("FEDMF_DATA", raising=False)
    ratings = load("simulated")
    assert (ratings.n_users, ratings.n_items, len(ratings)) == (300, 500, 20_000)
    assert ratings.name == "simulated"
    assert np.array_equal(ratings.values, simulate(300, 500, 20_000, seed=0).values)


def test_simulated_ratings_are_equal_in_another_process():
    """The demo's figures are quoted: neither hash seeds nor the order of calls may matter."""
    code = (
        "from fedmf.data import load; r = load('simulated'); "
        "print(*r.items[:50], *r.values[:50])"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    here = load("simulated")
    assert done.stdout.split() == [str(x) for x in (*here.items[:50], *here.values[:50])]


@pytest.mark.parametrize(
    ("name", "guess"),
    [("ML-100K", "ml-100k"), ("ml-1m ", "ml-1m"), ("simulate", "simulated"), ("netflix", None)],
)
def test_unknown_name_raises_with_known_names_and_a_guess(name, guess):
    with pytest.raises(DataError) as caught:
        load(name)
    assert all(known in str(caught.value) for known in NAMES)
    assert str(caught.value).count("'") == (4 if guess else 2)
    assert f"'{guess or name}'" in str(caught.value)


def test_each_set_in_files_has_a_source():
    assert {name for source in SOURCES.values() for name in source.sets} == {*NAMES[1:]}
    with pytest.raises(DataError):
        source_of("simulated")
