"""Ids that are whole numbers, written with or without .0: one rule for files and frames."""

from __future__ import annotations

import warnings

import pytest

from fedmf import DataWarning, read_ratings
from rating_sources import KINDS, source_of

# what a column has, the ids that are read, and if 7 and 7.0 are different ids
COLUMNS = {
    "with": (["7.0", "8.0", "9.0"], [7, 8, 9], False),
    "both": (["7", "7.0", "8.0"], [7, 8], False),
    "negative": (["-7.0", "-7", "0.0"], [-7, 0], False),
    "18 digits": (["999999999999999999.0", "1", "1.0"], [1, 999999999999999999], False),
    "19 digits": (["1234567890123456789", "1", "2"], ["1", "1234567890123456789", "2"], False),
    "a name, both": (["7", "7.0", "Ada"], ["7", "7.0", "Ada"], True),
    "a name, negative": (["-7.0", "-7", "Ada"], ["-7", "-7.0", "Ada"], True),
    "leading zeros": (["007", "7", "8"], ["007", "7", "8"], False),
    "exponents": (["1e3", "1000", "7"], ["1000", "1e3", "7"], False),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("name", COLUMNS)
def test_whole_numbers_are_read_alike_however_they_are_written(tmp_path, kind, side, name):
    entries, ids, twice = COLUMNS[name]
    columns = {"user": [1, 2, 3], "item": [4, 5, 6], side: entries, "rating": [1, 2, 3]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_ratings(source_of(kind, tmp_path, columns), scale=(1, 5))
    read = found.user_ids if side == "user" else found.item_ids
    assert read.tolist() == ids
    assert [one.category for one in caught] == [DataWarning] * twice
    where = ["line", "row"][kind != "csv"]
    for one in caught:
        assert one.filename == __file__
        assert f"{side} has" in str(one.message)
        assert str(one.message).count(f"({where} ") == 2


def test_the_warning_counts_the_pairs_and_names_the_first_lines(tmp_path):
    ids = ["a", "7", "8", "8.0", "7.0"]
    text = "".join(f"{one},{item},3\n" for item, one in enumerate(ids))
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + text)
    with pytest.warns(DataWarning, match=r"'7' \(line 3\) and '7.0' \(line 6\) and 1 more"):
        read_ratings(tmp_path / "ratings.csv", scale=(1, 5))
