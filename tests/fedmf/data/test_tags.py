"""Tags and their features, on tiny files of the three formats and, if there, the real ones."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from effort import needs_data
from fedmf.data import load
from fedmf.data.features import tag_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.sets.sources import SOURCES
from fedmf.data.sets.tags import Tags, read_tags
from fedmf.errors import DataError, MissingExtra, SettingError

OLD, TEN, FM = "ml-latest-small", "ml-10m", "lastfm"

# Users 1 to 3 and items 1 to 4 have ratings; item 9 is listed and has none.
TINY = {
    OLD: {
        "movies.csv": "movieId,title,genres\r\n"
        + "".join(f"{item},T,Drama\r\n" for item in (1, 2, 3, 4, 9)),
        "tags.csv": 'userId,movieId,tag,timestamp\r\n3,2,"odd, ""very""",5\r\n'
        "1,2, Funny,6\r\n1,9,dull,7\r\n2,4,funny,8\r\n",
    },
    TEN: {
        "movies.dat": "".join(f"{item}::T::Drama\n" for item in (1, 2, 3, 4, 9)),
        "tags.dat": '3::2::odd, "very"::5\n1::2:: Funny::6\n8::1::by nobody::6\n1::9::dull::7\n'
        "2::4::funny::8\n",
    },
    FM: {
        "tags.dat": 'tagID\ttagValue\r\n1\tfunny\r\n2\todd, "very"\r\n3\tFUNNY\r\n4\tx\r\n',
        "user_taggedartists.dat": "userID\tartistID\ttagID\tday\tmonth\tyear\r\n"
        "3\t2\t2\t1\t4\t2009\r\n1\t2\t1\t1\t4\t2009\r\n2\t4\t3\t1\t4\t2009\r\n"
        "1\t9\t4\t1\t4\t2009\r\n",
    },
}


@pytest.fixture
def tiny(tmp_path):
    """Return a function that writes a set's files, with changes, and reads its tags."""

    def write_and_read(name: str, **changes: str) -> Tags:
        folder = tmp_path / SOURCES[name].folder
        folder.mkdir(exist_ok=True)
        for file, content in TINY[name].items():
            text = changes.get(file.replace(".", "_"), content)
            (folder / file).write_bytes(text.encode("latin-1" if name == FM else "utf-8"))
        return read_tags(replace(simulate(3, 4, 8), name=name), tmp_path)

    return write_and_read


@pytest.mark.parametrize("name", TINY)
def test_tags_are_numbered_as_the_ratings_and_folded(tiny, name):
    tags = tiny(name)
    assert tags.vocabulary == ("funny", 'odd, "very"')
    assert tags.users.tolist() == [2, 0, 1]
    assert tags.items.tolist() == [1, 1, 3]
    assert tags.words.tolist() == [1, 0, 0]
    assert (len(tags), tags.n_users, tags.n_items) == (3, 3, 4)


def test_tag_with_the_separator_is_read(tiny):
    assert tiny(TEN, tags_dat="1::2::a::b::6\n").vocabulary == ("a::b",)


def more(name: str, file: str, line: str) -> dict[str, str]:
    return {file.replace(".", "_"): TINY[name][file] + line}


USED = "user_taggedartists.dat"
MISFITS = [
    (OLD, more(OLD, "tags.csv", "1,8,x,1\r\n"), r"tags\.csv, line 6: item 8"),
    (OLD, more(OLD, "tags.csv", "8,1,x,1\r\n"), "line 6: user 8"),
    (OLD, more(OLD, "tags.csv", "1,1,x,nan\r\n"), "line 6: .*time"),
    (OLD, {"tags_csv": "1,1,x,1\r\n"}, "line 1:"),
    (TEN, more(TEN, "tags.dat", "-1::1::x::1\n"), "line 6: .*user id"),
    (FM, more(FM, "tags.dat", "x\tgood\r\n"), r"tags\.dat, line 6: .*tag id"),
    (FM, {"tags_dat": "1\tgood\r\n"}, r"tags\.dat, line 1:"),
    (FM, more(FM, USED, "1\t1\t7\t1\t4\t2009\r\n"), rf"{USED}, line 6: tag 7"),
    (FM, more(FM, USED, "4\t1\t1\t1\t4\t2009\r\n"), "line 6: user 4"),
]


@pytest.mark.parametrize(("name", "changes", "place"), MISFITS)
def test_file_that_does_not_match_raises_with_its_line(tiny, name, changes, place):
    with pytest.raises(DataError, match=place):
        tiny(name, **changes)


def test_data_set_without_tags_raises_with_remedy():
    with pytest.raises(DataError, match="ml-10m"):
        read_tags(simulate(3, 4, 6))


def assigned(*rows: tuple[int, int, int]) -> Tags:
    """Return tags of 4 users, 5 items and 3 words; item 4 is untagged."""
    users, items, words = np.array(rows).T
    return Tags(users, items, words, 4, 5, ("a", "b", "c"))


ROWS = ((0, 0, 0), (1, 0, 0), (1, 0, 1), (2, 1, 1), (3, 2, 2), (3, 3, 0), (3, 3, 2))


def weights_by_hand(documents: dict[int, list[int]], n: int) -> np.ndarray:
    """TF-IDF by its formula, in plain Python."""
    table = np.zeros((n, 3))
    for document, words in documents.items():
        for word in words:
            df = sum(word in others for others in documents.values())
            table[document, word] += math.log((1 + n) / (1 + df)) + 1
    length = np.sqrt((table**2).sum(axis=1, keepdims=True))
    return table / np.where(length > 0, length, 1)


@pytest.mark.parametrize(
    ("of", "documents", "n"),
    [
        ("items", {0: [0, 0, 1], 1: [1], 2: [2], 3: [0, 2]}, 5),
        ("users", {0: [0], 1: [0, 1], 2: [1], 3: [2, 0, 2]}, 4),
    ],
)
def test_features_are_the_principal_components_of_tf_idf(of, documents, n):
    features = tag_features(assigned(*ROWS), 2, of=of)
    assert features.names == ("tag:0", "tag:1")
    assert features.matrix.shape == (n, 2)
    weights = weights_by_hand(documents, n)
    left, size, _ = np.linalg.svd(weights - weights.mean(axis=0), full_matrices=False)
    expected = (left * size)[:, :2]
    sign = np.sign((features.matrix * expected).sum(axis=0))
    np.testing.assert_allclose(features.matrix, sign * expected, atol=1e-12)
    again = tag_features(assigned(*ROWS), 2, of=of)
    assert np.array_equal(features.matrix, again.matrix)


@pytest.mark.parametrize("components", [0, 3])
def test_too_many_components_raise(components):
    with pytest.raises(SettingError, match="components"):
        tag_features(assigned(*ROWS), components)


def test_scikit_learn_missing_raises_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    with pytest.raises(MissingExtra, match="scikit-learn"):
        tag_features(assigned(*ROWS), 1)


@needs_data
@pytest.mark.parametrize(
    ("name", "n_tags", "n_words", "n_tagged"),
    [(OLD, 3662, 1472, 1554), pytest.param(FM, 184_940, 9718, 12_133, marks=pytest.mark.large)],
)
def test_real_tags_have_the_published_counts(name, n_tags, n_words, n_tagged):
    ratings = load(name)
    tags = read_tags(ratings)
    assert (len(tags), len(tags.vocabulary)) == (n_tags, n_words)
    assert np.unique(tags.items).size == n_tagged
    assert tag_features(tags, 5).matrix.shape == (ratings.n_items, 5)
