"""Last.fm: three ways from counts to ratings, worked out by hand, and every damage named."""

from __future__ import annotations

import numpy as np
import pytest

from effort import needs_data
from fedmf.data import SIZES, load
from fedmf.data.sets.lastfm import BINS, HEADER, read
from fedmf.errors import DataError

# User 7 listens to artists 1 to 5, user 2 to artist 3 and, as often, to 4; no user to 9.
COUNTED = {1: 9, 2: 10, 3: 100, 4: 9999, 5: 10_000}
LISTENED = (*((7, artist, count) for artist, count in COUNTED.items()), (2, 3, 1), (2, 4, 1))
COUNTS = b"userID\tartistID\tweight\r\n" + b"".join(b"%d\t%d\t%d\r\n" % row for row in LISTENED)
ARTISTS = (HEADER + "\n").encode() + b"".join(
    f"{number}\t{name}\thttp://example.org/{number}\t\n".encode()
    for number, name in enumerate("ABCDE", start=1)
)
ARTISTS += "9\t三船\u3000浩\ue216\thttp://example.org/9\t\n".encode()


@pytest.fixture
def tiny(tmp_path):
    """Return a function that writes the two files and reads them."""

    def write_and_read(name="lastfm", counts=COUNTS, artists=ARTISTS, size=None):
        for file, content in (("user_artists.dat", counts), ("artists.dat", artists)):
            (tmp_path / file).write_bytes(content)
        return read(name, tmp_path, size)

    return write_and_read


def test_ratings_and_names_of_a_small_set_are_read(tiny):
    ratings = tiny()
    assert ratings.user_ids.tolist() == [2, 7]
    assert ratings.item_ids.tolist() == [1, 2, 3, 4, 5, 9]
    assert ratings.items.tolist() == [2, 3, 0, 1, 2, 3, 4]
    assert ratings.times.tolist() == [0] * 7
    assert (ratings.name, ratings.scale) == ("lastfm", (1.0, 5.0))
    catalogue = ratings.catalogue
    assert catalogue.titles == ("A", "B", "C", "D", "E", "三船\u3000浩\ue216")
    assert catalogue.years.tolist() == [0] * 6
    assert (catalogue.genres.shape, catalogue.genre_names) == ((6, 0), ())


@pytest.mark.parametrize(
    ("name", "of_two", "of_seven"),
    [
        # sorted: 1 1 9 10 100 9999 10000; middle ranks in sevenths 1 1 2.5 3.5 4.5 5.5 6.5
        ("lastfm", [1, 1], [2, 3, 4, 4, 5]),
        ("lastfm-user", [3, 3], [1, 2, 3, 4, 5]),
        ("lastfm-log", [1, 1], [1, 2, 3, 4, 5]),
    ],
)
def test_bins_by_each_method_are_as_by_hand(tiny, name, of_two, of_seven):
    assert tiny(name).values.tolist() == of_two + of_seven
    assert tiny(name).name == name


def test_fifths_of_many_different_counts_are_equally_full():
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(4), 50)
    counts = rng.permutation(10**6)[:200] + 1
    assert np.bincount(BINS["lastfm"](users, counts).astype(int)).tolist() == [0] + [40] * 5
    own = BINS["lastfm-user"](users, counts).astype(int)
    for user in range(4):
        assert np.bincount(own[users == user]).tolist() == [0] + [10] * 5


@pytest.mark.parametrize(
    ("file", "content", "place"),
    [
        ("counts", COUNTS + b"2\t3\t4\r\n", r"user_artists\.dat, line 9:"),
        ("counts", COUNTS + b"2\t8\t4\r\n", "line 9: artist 8"),
        ("counts", COUNTS + b"2\t1\t0\r\n", "line 9:"),
        ("counts", b"userID\tartistID\tweight\r\n", r"/user_artists\.dat"),
        ("artists", ARTISTS[1:], r"artists\.dat, line 1:"),
        ("artists", ARTISTS + b"x\tX\t\t\n", "line 8:"),
        ("artists", ARTISTS + b"9\tX\t\t\n", "line 8: artist 9"),
        ("artists", (HEADER + "\n").encode(), r"/artists\.dat"),
    ],
)
def test_damaged_file_raises_with_its_line(tiny, file, content, place):
    with pytest.raises(DataError, match=place):
        tiny(**{file: content})


def test_file_cut_between_two_lines_raises_by_the_counts(tiny):
    assert len(tiny(size=(2, 6, 7))) == 7
    with pytest.raises(DataError, match="2, 6 and 7"):
        tiny(size=(2, 6, 8))


@needs_data
@pytest.mark.parametrize("name", [*BINS, "filmtrust", "douban"])
def test_real_set_has_the_published_size(name):
    ratings = load(name)
    assert (ratings.n_users, ratings.n_items, len(ratings)) == SIZES[name]
    if name in BINS:
        assert set(np.unique(ratings.values)) == {1, 2, 3, 4, 5}
        assert ratings.catalogue.titles[0] == "MALICE MIZER"
