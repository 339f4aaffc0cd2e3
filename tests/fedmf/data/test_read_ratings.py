"""Ratings from CSV and Parquet files, frames and Arrow tables; errors have the place."""

from __future__ import annotations

import csv
import io
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedmf import read_ratings
from fedmf.errors import DataError, MissingExtra, SettingError
from rating_sources import KINDS, source_of

COLUMNS = ("user", "item", "rating")
ROWS = [("Bo", "Dune", 4.0), ("Ada", "Emma", 2.5), ("Bo", "Alien", 5.0)]
PLAIN = "user,item,rating\nBo,Dune,4\nAda,Emma,2.5\nBo,Alien,5\n"


@pytest.fixture
def write(tmp_path):
    def written(text, name="ratings.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def triples(ratings):
    users, items = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items]
    return list(zip(users.tolist(), items.tolist(), ratings.values.tolist(), strict=True))


SORTED = [("Ada", "Emma", 2.5), ("Bo", "Dune", 4), ("Bo", "Alien", 5)]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        PLAIN.removesuffix("\n"),
        PLAIN.replace("\n", "\n\n"),
        PLAIN.replace(",", ", "),
        PLAIN.replace(",", " , ").replace("\n", " \n"),
        'note;"item";user;rating\n"a;b";Dune;Bo;4\n;Emma;Ada;2.5\n"x\ny";Alien;"Bo";5\n',
    ],
)
def test_csv_of_any_dialect_gives_the_same_ratings(write, text):
    ratings = read_ratings(write(text), scale=(1, 5))
    assert triples(ratings) == SORTED
    assert ratings.scale == (1.0, 5.0)


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_line_breaks_of_csv_end_a_line(write, mark):
    text = f"user,item,rating\na{mark}b,x,3\nc,x,"
    ratings = read_ratings(write(f"{text}4\n"), scale=(1, 5))
    assert ratings.user_ids.tolist() == [f"a{mark}b", "c"]
    with pytest.raises(DataError, match="line 3"):
        read_ratings(write(f"{text}9\n"), scale=(1, 5))


TABLE = dict(zip(COLUMNS, zip(*ROWS, strict=True), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_sources_of_every_kind_give_the_same_ratings(kind, tmp_path):
    assert triples(read_ratings(source_of(kind, tmp_path, TABLE), scale=(1, 5))) == SORTED


class Streams:
    """A table that has nothing but the stream of Arrow."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_arrow_streams_are_read(tmp_path):
    assert (
        triples(read_ratings(Streams(source_of("pyarrow", tmp_path, TABLE)), scale=(1, 5)))
        == SORTED
    )


def test_lazy_frames_and_other_objects_raise(tmp_path):
    with pytest.raises(DataError, match="collect"):
        read_ratings(source_of("polars", tmp_path, TABLE).lazy(), scale=(1, 5))
    series = [pytest.importorskip(kind).Series(["a"]) for kind in ("pandas", "polars")]
    for other in (7, *series):
        with pytest.raises(DataError):
            read_ratings(other, scale=(1, 5))


@pytest.mark.parametrize(
    "make",
    [list, np.array, iter, dict.fromkeys, lambda names: {n: n for n in names}.values()],
)
def test_columns_in_an_order_are_read(write, make):
    assert triples(read_ratings(write(PLAIN), make(COLUMNS), scale=(1, 5))) == SORTED


def test_entries_that_are_no_times_raise(write):
    text = "user,item,rating,at\na,x,1,{}\na,y,2,{}\n"
    columns = ("user", "item", "rating", "at")
    for wrong, said in (("soon", "'soon'"), ("1e30", "'1e30'"), ("", "at is empty")):
        with pytest.raises(DataError, match=f"line 3.*{said}"):
            read_ratings(write(text.format("7", wrong)), columns, scale=(1, 5))


TWICE = "user,item,rating,time\nAda,Dune,5,9\nBo,Dune,1,1\nAda,Dune,2,3\nAda,Emma,4,1\n"


def test_duplicates_follow_the_option(write):
    path = write(TWICE)
    with pytest.raises(DataError, match=r"Ada.*Dune.*line 2 .*line 4"):
        read_ratings(path, scale=(1, 5))
    others = [("Ada", "Emma", 4), ("Bo", "Dune", 1)]
    timed = ("user", "item", "rating", "time")
    for columns, duplicates, value in [
        (timed[:3], "last", 2),
        (timed, "last", 5),
        (timed, "mean", 3.5),
    ]:
        found = read_ratings(path, columns, scale=(1, 5), duplicates=duplicates)
        assert sorted(triples(found)) == sorted([("Ada", "Dune", value), *others])
    with pytest.raises(SettingError):
        read_ratings(path, scale=(1, 5), duplicates="first")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "empty"),
        ("user,item,rating\n", "no rating"),
        (PLAIN.replace("2.5", ""), "line 3.*rating is empty"),
        (PLAIN.replace("2.5", "7"), "line 3.* 7 .*1 to 5.*4 to 7"),
        (PLAIN.replace(",", ";").replace("2.5", "2,5"), "line 3: .*decimal points"),
        (PLAIN.replace("\nAda", "\n\nAda").replace("2.5", "6"), "line 4"),
        (PLAIN.replace("Ada", '"A\nb"').replace("Alien,5", "Alien,6"), "line 5"),
    ],
)
def test_wrong_files_raise_with_the_place(write, text, place):
    with pytest.raises(DataError, match=place):
        read_ratings(write(text), scale=(1, 5))
    with pytest.raises(DataError, match=r"scale.*2\.5 to 5"):
        read_ratings(write(PLAIN))


def test_missing_and_damaged_files_raise(write, tmp_path):
    with pytest.raises(DataError):
        read_ratings(tmp_path / "none.csv", scale=(1, 5))
    pytest.importorskip("pyarrow")
    for path in (tmp_path / "none.parquet", write("no Parquet", "text.parquet")):
        with pytest.raises(DataError):
            read_ratings(path, scale=(1, 5))


def test_parquet_without_pyarrow_raises_missing_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pip install pyarrow"):
        read_ratings(tmp_path / "a.parquet", scale=(1, 5))


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
NAME = WORD.filter(lambda one: one == one.strip() and "\r" not in one)
STARS = st.floats(0.5, 5)
LINES = st.dictionaries(st.tuples(NAME, NAME), STARS, min_size=1, max_size=12)


@given(LINES, st.sampled_from([",", ";", "\t", "|"]))
def test_written_csv_is_read_back(tmp_path_factory, lines, mark):
    """But for names of several lines that look like ratings themselves."""
    names = [name for pair in lines for name in pair]
    assume(not any("\n" in name and mark in name for name in names))
    path = tmp_path_factory.getbasetemp() / "round-trip.csv"
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=mark, quoting=csv.QUOTE_ALL)
    writer.writerow(("user", "item", "rating"))
    writer.writerows((*pair, repr(value)) for pair, value in lines.items())
    path.write_bytes(text.getvalue().encode())
    found = triples(read_ratings(path, scale=(0.5, 5)))
    assert {(str(u), str(i)): v for u, i, v in found} == lines
    assert np.array(found, dtype=object).shape == (len(lines), 3)


@pytest.mark.parametrize(
    ("rating", "number"),
    [(0.1, 3), (0.2, 3), (0.7, 6), (2.3, 7), (3.3, 6), (9.9, 10), (-0.1, 6), (1.7, 8)],
)
@pytest.mark.parametrize("end", [0, 1])
def test_mean_of_equal_ratings_stays_within_the_scale(rating, number, end, write):
    """Their sum is rounded, so that the mean may be above or below them all."""
    rows = "".join(f"a,x,{rating}\n" for _ in range(number))
    scale = (rating, rating + 5) if end == 0 else (rating - 5, rating)
    found = read_ratings(write(f"user,item,rating\n{rows}"), scale=scale, duplicates="mean")
    low, high = scale
    assert low <= found.values[0] <= high
    assert found.values[0] == pytest.approx(rating)
