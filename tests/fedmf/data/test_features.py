"""Features: named columns, each with the value worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedmf.context import ContextTrainer, FedLR
from fedmf.data import Catalogue, Features
from fedmf.data.features import item_features, known_features, tag_features, user_features
from fedmf.data.sets.lastfm import BINS
from fedmf.data.sets.profiles import Profiles
from fedmf.data.sets.simulated import simulate
from fedmf.data.sets.sources import SOURCES
from fedmf.data.sets.tags import read_tags
from fedmf.errors import DataError, SettingError
from fedmf.masks import FedMMF, LocalHead, MeanMask, NNMask, RidgeMask
from fedmf.models import FedMF
from fedmf.training import Trainer


def with_catalogue(years: list[int], genres: list[list[int]], names: tuple[str, ...]):
    catalogue = Catalogue(
        ("A", "B", "C"),
        np.array(years, dtype=np.int16),
        np.array(genres, dtype=np.bool_).reshape(3, len(names)),
        names,
    )
    return replace(simulate(3, 3, 6), catalogue=catalogue)


def test_genres_are_flags_and_known_years_standardised():
    """Genres are flags and the year is standardised over the known ones."""
    ratings = with_catalogue([1990, 0, 2000], [[1, 0], [0, 1], [0, 0]], ("Crime", "Musical"))
    features = item_features(ratings)
    assert features.names == ("genre:Crime", "genre:Musical", "year")
    # mean 1995, deviation 5
    assert features.matrix.tolist() == [[1, 0, -1], [0, 1, 0], [0, 0, 1]]
    plain = item_features(ratings, year=False)
    assert plain.names == ("genre:Crime", "genre:Musical")
    assert plain.matrix.tolist() == [[1, 0], [0, 1], [0, 0]]


def test_catalogue_gives_only_the_columns_it_has():
    """A catalogue without years or genres gives the columns it has."""
    assert item_features(with_catalogue([0] * 3, [[1], [0], [1]], ("Crime",))).names == (
        "genre:Crime",
    )
    assert (
        item_features(with_catalogue([7, 7, 0], [[], [], []], ())).matrix.tolist() == [[0]] * 3
    )
    assert item_features(with_catalogue([0] * 3, [[], [], []], ())).matrix.shape == (3, 0)


def test_user_features_are_age_gender_and_occupation():
    profiles = Profiles(
        np.array([24, 53], dtype=np.int16),
        np.array([1, 0], dtype=np.int8),
        np.array([2, 0], dtype=np.int16),
        ("artist", "lawyer", "writer"),
    )
    features = user_features(profiles)
    jobs = ("occupation:artist", "occupation:lawyer", "occupation:writer")
    assert features.names == ("age", "gender:F", *jobs)
    assert features.matrix.tolist() == [[0.24, 0, 0, 0, 1], [0.53, 1, 1, 0, 0]]


def test_beside_joins_the_columns():
    one = Features(np.ones((2, 1)), ("a",))
    two = Features(np.zeros((2, 2)), ("b", "c"))
    both = one.beside(two)
    assert (both.names, both.matrix.tolist()) == (("a", "b", "c"), [[1, 0, 0]] * 2)
    with pytest.raises(DataError, match=r"2 rows .* 3"):
        one.beside(Features(np.ones((3, 1)), ("a",)))


@pytest.mark.parametrize(
    ("matrix", "names"),
    [
        (np.ones((2, 2)), ("a",)),
        (np.ones(2), ("a",)),
        ([[1, 2], [3, np.nan]], ("a", "b")),
        ([["1"]], ("a",)),
        ([[1j]], ("a",)),
        ([[1], [2, 3]], ("a",)),
        ([[1, 2]], "ab"),
        ([[1]], None),
        ([[1]], (3,)),
    ],
)
def test_features_that_do_not_fit_raise(matrix, names):
    with pytest.raises(DataError):
        Features(matrix, names)


@pytest.mark.parametrize(
    "matrix",
    [[[0, 1], [1, 0]], np.eye(2, dtype=np.float32)[::-1], np.eye(2)[::-1] > 0],
)
def test_numbers_of_any_type_become_float64_and_names_a_tuple(matrix):
    features = Features(matrix, ["a", "b"])
    assert (features.matrix.dtype, features.matrix.tolist()) == (np.float64, [[0, 1], [1, 0]])
    assert features.names == ("a", "b")
    assert not features.matrix.flags.writeable


def test_array_in_place_of_features_is_rejected():
    """An array in place of features raises in every function that takes features."""
    ratings = simulate(6, 12, 40)
    known = item_features(ratings)
    matrix = known.matrix
    base = Trainer(FedMF(k=2), rounds=1).fit(ratings).model_
    takers = [
        lambda: FedMMF(trainer=Trainer(rounds=1)).fit(ratings, features=matrix),
        lambda: LocalHead().fit(base, ratings, matrix),
        lambda: ContextTrainer(FedLR(), rounds=1).fit(ratings, items=known, users=matrix),
        *(partial(mask.fit, matrix, ratings) for mask in (MeanMask(), RidgeMask(), NNMask())),
    ]
    for take in takers:
        with pytest.raises(SettingError, match="ndarray"):
            take()


@pytest.mark.parametrize("name", [*BINS, "own"])
def test_known_features_of_lastfm_are_tags(name, tmp_path, monkeypatch):
    folder = tmp_path / SOURCES["lastfm"].folder
    folder.mkdir()
    words = "".join(f"{n}\tw{n}\n" for n in range(30))
    rows = "".join(f"1\t{n % 25 + 1}\t{n}\t1\t4\t2009\n" for n in range(30))
    (folder / "tags.dat").write_text(f"tagID\ttagValue\n{words}", "latin-1")
    (folder / "user_taggedartists.dat").write_text(
        f"userID\tartistID\ttagID\tday\tmonth\tyear\n{rows}", "latin-1"
    )
    monkeypatch.setenv("FEDMF_DATA", str(tmp_path))
    ratings = replace(simulate(8, 25, 80), name=name)
    found = known_features(ratings)
    wanted = item_features(ratings) if name == "own" else tag_features(read_tags(ratings))
    assert found.names == wanted.names
    np.testing.assert_array_equal(found.matrix, wanted.matrix)
