"""The MovieLens readers, on tiny files of the same formats and on the real ones, if there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from effort import needs_data
from fedmf.data import load
from fedmf.data.sets.movielens import FORMATS, read
from fedmf.errors import DataError


def item_100k(number: int, title: str, *genres: str) -> str:
    flags = "|".join(str(int(genre in genres)) for genre in FORMATS["ml-100k"].genres)
    return f"{number}|{title}|01-Jan-1995||http://example.org/{number}|{flags}"


TWO_FRIENDS = "1984 (1956) or Two Friends (1986) (V)"

# Per data set: the files, in the original encodings and line ends. Item 3 has no rating.
TINY: dict[str, dict[str, bytes]] = {
    "ml-100k": {
        "u.data": b"7\t2\t5\t881250949\n4\t1\t1\t881250950\n7\t1\t3\t881250940\n",
        "u.item": "\n".join(
            [
                item_100k(1, "Cité, La (1995)", "Drama", "Sci-Fi"),
                item_100k(2, "unknown", "unknown"),
                item_100k(3, f"{TWO_FRIENDS} "),
                "",
            ]
        ).encode("latin-1"),
        "u.info": b"2 users\n3 items\n3 ratings\n",
    },
    "ml-1m": {
        "ratings.dat": b"7::2::5::1\n4::1::1::0\n7::1::3::0\n",
        "movies.dat": (
            "1::Cité, La (1995)::Drama|Sci-Fi\n2::Wings: (1927)::War\n3::X (1980)::Comedy\n"
        ).encode("latin-1"),
    },
    "ml-10m": {
        "ratings.dat": b"7::2::5::1\n4::1::0.5::0\n7::1::3.5::0\n",
        "movies.dat": (
            "1::Cité, La (1995)::Drama|Sci-Fi\n"
            "2::Pull My Daisy (1958)::(no genres listed)\n"
            "3::X (1980)::Children|IMAX\n"
        ).encode(),
    },
    "ml-latest-small": {
        "ratings.csv": (
            b"userId,movieId,rating,timestamp\r\n7,2,5.0,9\r\n4,1,0.5,8\r\n7,1,3.5,7\r\n"
        ),
        "movies.csv": (
            "movieId,title,genres\r\n"
            '1,"Cité, ""La"" (1995)",Drama|Sci-Fi\r\n'
            "2,Nocturnal Animals,(no genres listed)\r\n"
            "3,Fawlty Towers (1975-1979),Comedy\r\n"
        ).encode(),
    },
}
NAMES = tuple(TINY)
WITH_UNRATED = ("ml-100k", "ml-10m")  # the sets that number items without a rating too


@pytest.fixture
def tiny(tmp_path, request):
    """Return a function that writes one tiny data set, with changes, and reads it."""

    def write_and_read(name: str, counts=None, **changes: bytes | None):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for file, original in TINY[name].items():
            content = changes.get(file.replace(".", "_"), original)
            if content is not None:
                (folder / file).write_bytes(content)
        return read(replace(FORMATS[name], counts=counts), folder)

    return write_and_read


@pytest.mark.parametrize("name", NAMES)
def test_tiny_set_is_read(tiny, name):
    ratings = tiny(name)
    n_items = 3 if name in WITH_UNRATED else 2
    assert ratings.name == name
    assert ratings.user_ids.tolist() == [4, 7]
    assert ratings.item_ids.tolist() == [1, 2, 3][:n_items]
    assert ratings.indptr.tolist() == [0, 1, 3]
    assert ratings.items.tolist() == [0, 1, 0]
    assert ratings.n_items == len(ratings.catalogue) == n_items
    values, scale = ([0.5, 5.0, 3.5], (0.5, 5.0)), ([1.0, 5.0, 3.0], (1.0, 5.0))
    stars = name in ("ml-10m", "ml-latest-small")
    assert (ratings.values.tolist(), ratings.scale) == (values if stars else scale)
    if name == "ml-100k":
        assert ratings.times.tolist() == [881250950, 881250949, 881250940]


def genres_of(ratings, item: int) -> set[str]:
    catalogue = ratings.catalogue
    return {catalogue.genre_names[column] for column in np.flatnonzero(catalogue.genres[item])}


def test_titles_years_and_genres(tiny):
    full, million, ten, latest = (tiny(name) for name in NAMES)
    assert full.catalogue.titles[::2] == ("Cité, La (1995)", TWO_FRIENDS)
    assert full.catalogue.years.tolist() == [1995, 0, 1986]
    first = {"Drama", "Sci-Fi"}
    assert [genres_of(full, item) for item in range(3)] == [first, {"unknown"}, set()]
    assert million.catalogue.titles[1] == "Wings: (1927)"
    assert [genres_of(million, item) for item in range(2)] == [first, {"War"}]
    assert latest.catalogue.titles == ('Cité, "La" (1995)', "Nocturnal Animals")
    assert latest.catalogue.years.tolist() == [1995, 0]
    assert genres_of(latest, 1) == set()
    assert ten.catalogue.years.tolist() == [1995, 1958, 1980]
    assert [genres_of(ten, item) for item in range(3)] == [first, set(), {"Children", "IMAX"}]
    counts = [len(ratings.catalogue.genre_names) for ratings in (full, million, ten, latest)]
    assert counts == [19, 18, 19, 19]


def test_year_of_a_series_is_its_first(tiny):
    both = TINY["ml-latest-small"]["ratings.csv"] + b"7,3,1.0,1\r\n"
    assert tiny("ml-latest-small", ratings_csv=both).catalogue.years.tolist() == [1995, 0, 1975]


LATEST, HEAD, ITEM = "ml-latest-small", b"movieId,title,genres\r\n", item_100k(1, "A") + "\n"
ITEM_DAMAGE = [
    ("ml-100k", "u_item", b"1|A|B||C|0|0\n", r"u\.item, line 1:"),
    ("ml-100k", "u_item", ITEM.replace("|0|0", "|0|2").encode(), "line 1: .* flags"),
    ("ml-100k", "u_item", ITEM.encode() * 2, "line 2: item 1"),
    ("ml-100k", "u_item", ITEM.encode(), r"u\.data, line 1: item 2"),
    ("ml-1m", "movies_dat", b"1::A::Drama\n2::B\n", r"movies\.dat, line 2:"),
    ("ml-1m", "movies_dat", b"1::A::Drama\n2::B::Wa\n", "line 2: genre 'Wa'"),
    ("ml-1m", "movies_dat", b"1::A::Drama\n2::B\x00::War\n", "line 2:"),
    ("ml-10m", "movies_dat", b"1::A::Drama\n2::\xe9::War\n", "line 2: byte 0xe9"),
    (LATEST, "movies_csv", b"1,A,Drama\r\n", r"movies\.csv, line 1:"),
    (LATEST, "movies_csv", HEAD + b'1,"A,B\r\n', "line 2:"),
    (LATEST, "movies_csv", HEAD + b"1,A,War\r\n", r"ratings\.csv, line 2: item 2"),
]


@pytest.mark.parametrize(("name", "file", "content", "place"), ITEM_DAMAGE)
def test_damaged_item_raises_with_file_and_line(tiny, name, file, content, place):
    with pytest.raises(DataError, match=place):
        tiny(name, **{file: content})


@pytest.mark.parametrize(("name", "file"), [("ml-1m", "ratings.dat"), (LATEST, "movies.csv")])
def test_missing_or_empty_file_raises_with_its_name(tiny, tmp_path, name, file):
    with pytest.raises(DataError, match=f"{name}/{file} "):
        tiny(name, **{file.replace(".", "_"): b""})
    (tmp_path / name / file).unlink()
    with pytest.raises(DataError, match=f"{file} .*{name}: "):
        tiny(name, **{file.replace(".", "_"): None})


@pytest.mark.parametrize("name", NAMES)
def test_file_cut_between_two_lines_raises_by_the_counts(tiny, name):
    form = FORMATS[name]
    content = TINY[name][form.ratings]
    shorter = content[: content[:-1].rindex(b"\n") + 1]
    n_items = 3 if name in WITH_UNRATED else 2
    assert len(tiny(name, counts=(2, n_items, 3))) == 3
    with pytest.raises(DataError, match=f" {n_items} and 2 "):
        tiny(name, counts=(2, n_items, 3), **{form.ratings.replace(".", "_"): shorter})


def test_u_info_replaces_the_published_counts(tiny):
    assert len(tiny("ml-100k", counts=(943, 1682, 100_000))) == 3
    with pytest.raises(DataError, match=r"ml-100k .* 2 users, 3 items and 4 ratings"):
        tiny("ml-100k", u_info=b"2 users\n3 items\n4 ratings\n")
    with pytest.raises(DataError, match=r"u\.info"):
        tiny("ml-100k", u_info=b"2 users\n3 items\n")


# The real data: name, ratings, users, items, mean rating.
REAL = [
    ("ml-100k", 100_000, 943, 1682, 3.52986),
    pytest.param("ml-1m", 1_000_209, 6040, 3706, 3.58156, marks=pytest.mark.large),
    ("ml-latest-small", 100_836, 610, 9724, 3.50156),
]


@needs_data
@pytest.mark.parametrize(("name", "n_ratings", "n_users", "n_items", "mean"), REAL)
def test_real_set_has_the_published_size(name, n_ratings, n_users, n_items, mean):
    ratings = load(name)
    assert (len(ratings), ratings.n_users, ratings.n_items) == (n_ratings, n_users, n_items)
    assert ratings.values.mean() == pytest.approx(mean, abs=1e-5)
    assert (ratings.catalogue.years == 0).sum() == {"ml-latest-small": 12, "ml-100k": 1}.get(
        name, 0
    )
    assert ratings.catalogue.titles[0] == "Toy Story (1995)"
    assert {"Animation", "Comedy"} <= genres_of(ratings, 0)
    assert ratings.catalogue.genres.any(axis=0).all()
