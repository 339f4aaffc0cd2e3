"""FilmTrust and Douban: small files, damage, sizes, and the remedy for a missing folder."""

from __future__ import annotations

import pytest

from fedmf.data import load
from fedmf.data.sets.plain import read
from fedmf.errors import DataError

GOOD = "1 10 0.5\n1 11 4\n2 10 2.5\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ratings.txt").write_text(GOOD)
    return tmp_path


def test_lines_become_ratings(folder):
    ratings = read("filmtrust", folder, (2, 2, 3))
    assert ratings.values.tolist() == [0.5, 4, 2.5]
    assert (ratings.user_ids.tolist(), ratings.item_ids.tolist()) == ([1, 2], [10, 11])
    assert ratings.scale == (0.5, 4.0)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("filmtrust", GOOD.replace("2.5", "2.4"), 3),
        ("douban", GOOD, 1),
        ("filmtrust", GOOD.replace("1 11 4", "1 11"), 2),
    ],
)
def test_damage_raises_with_the_line(folder, name, text, line):
    (folder / "ratings.txt").write_text(text)
    with pytest.raises(DataError, match=f"ratings.txt, line {line}:"):
        read(name, folder)


def test_other_sizes_raise(folder):
    with pytest.raises(DataError, match="35494"):
        read("filmtrust", folder)


@pytest.mark.parametrize("name", ["filmtrust", "douban"])
def test_missing_folder_names_the_page(name, tmp_path):
    with pytest.raises(DataError, match="https:") as caught:
        load(name, tmp_path)
    assert "fetch" not in str(caught.value)
