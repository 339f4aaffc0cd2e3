"""Splits: every rating lands on exactly one side, by the rule that the split states."""

from __future__ import annotations

from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import needs_data
from fedmf.data import Catalogue, Ratings, Split, load
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import leave_last, official, random_split, time_split
from fedmf.errors import DataError, SettingError


def build(rows: list[list[int]], n_items: int = 8) -> Ratings:
    """Return ratings whose users rated items 0, 1, … at the times given."""
    counts = [len(row) for row in rows]
    return Ratings(
        name="ml-100k",
        indptr=np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
        items=np.array([item for count in counts for item in range(count)], dtype=np.int32),
        values=1.0 + np.arange(sum(counts)) % 5,
        times=np.array([time for row in rows for time in row], dtype=np.int64),
        n_items=n_items,
        scale=(1.0, 5.0),
        user_ids=np.arange(1, len(rows) + 1),
        item_ids=np.arange(1, n_items + 1),
        catalogue=Catalogue(
            ("",) * n_items, np.zeros(n_items, np.int16), np.zeros((n_items, 0), bool), ()
        ),
    )


def lines(ratings: Ratings) -> list[tuple[int, int, float, int]]:
    columns = (ratings.users, ratings.items, ratings.values, ratings.times)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def assert_partition(ratings: Ratings, split: Split) -> None:
    assert sorted(lines(split.train) + lines(split.test)) == sorted(lines(ratings))
    for part in (split.train, split.test):
        assert (part.n_users, part.n_items) == (ratings.n_users, ratings.n_items)
        assert part.catalogue is ratings.catalogue
        assert lines(part) == [line for line in lines(ratings) if line in set(lines(part))]


some_ratings = st.lists(st.lists(st.integers(0, 4), max_size=8), min_size=1, max_size=8).map(
    build
)


@given(some_ratings, st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_random_split_is_a_partition_of_the_promised_size(ratings, fraction, seed):
    split = random_split(ratings, fraction, seed)
    assert_partition(ratings, split)
    assert len(split.test) == round(fraction * len(ratings))


@given(some_ratings, st.integers(1, 9))
def test_leave_last_tests_the_last_k_of_those_with_more(ratings, k):
    split = leave_last(ratings, k)
    assert_partition(ratings, split)
    for user in range(ratings.n_users):
        row = slice(ratings.indptr[user], ratings.indptr[user + 1])
        # sorted() is stable: of equal times the later in the file stays the later
        both = zip(ratings.times[row], ratings.items[row], strict=True)
        by_time = sorted(both, key=itemgetter(0))
        expected = [item for _, item in by_time[-k:]] if len(by_time) > k else []
        assert sorted(split.test.of_user(user)[0]) == sorted(expected)


def test_random_split_depends_on_the_seed_alone():
    ratings = simulate(30, 40, 700)
    once, again, other = (random_split(ratings, seed=seed) for seed in (1, 1, 2))
    assert lines(once.test) == lines(again.test)
    assert lines(once.test) != lines(other.test)


PAIR = build([[1, 2]])


@pytest.mark.parametrize(
    ("parted", "wrong"),
    [
        (random_split, {"test_fraction": 0.0}),
        (random_split, {"test_fraction": True}),
        (random_split, {"seed": -1}),
        (time_split, {"test_fraction": 1.0}),
        (leave_last, {"k": 1.5}),
        (official, {"fold": 6}),
        (random_split, {"ratings": Split(PAIR, PAIR)}),
        (time_split, {"ratings": Split(PAIR, PAIR)}),
        (official, {"fold": 1, "ratings": Split(PAIR, PAIR)}),
    ],
)
def test_wrong_argument_of_a_split_raises_with_its_name(parted, wrong):
    name = "Split" if "ratings" in wrong else min(wrong)
    with pytest.raises(SettingError, match=name):
        parted(**{"ratings": PAIR} | wrong)


def written(root: Path, base: list[str], test: list[str], fold: int = 1) -> Path:
    folder = root / "ml-100k"
    folder.mkdir()
    for part, rows in (("base", base), ("test", test)):
        (folder / f"u{fold}.{part}").write_text("".join(row + "\n" for row in rows))
    return root


ONE_USER = ["1\t1\t1\t5", "1\t2\t2\t6", "1\t3\t3\t7"]  # what build([[5, 6, 7]]) holds


def test_official_equals_the_files(tmp_path):
    ratings = build([[5, 6, 7]])
    split = official(ratings, 3, written(tmp_path, ONE_USER[1:], ONE_USER[:1], fold=3))
    assert_partition(ratings, split)
    assert split.test.items.tolist() == [0]


def test_official_with_a_file_cut_between_lines_raises(tmp_path):
    written(tmp_path, ONE_USER[1:2], ONE_USER[:1])
    with pytest.raises(DataError, match="2 of the 3"):
        official(build([[5, 6, 7]]), 1, tmp_path)


@pytest.mark.parametrize(
    ("test", "line"),
    [
        (["1\t1\t1\t5", "1\t4\t4\t8"], 2),
        (["1\t1\t4\t5"], 1),  # the value differs
        (["1\t1\t1\t5", "1\t3\t3\t7"], 2),  # also in u1.base
        (["2\t9\t1\t5"], 1),  # beyond the last
    ],
)
def test_official_with_a_wrong_line_raises_with_its_number(tmp_path, test, line):
    written(tmp_path, ONE_USER[1:], test)
    with pytest.raises(DataError, match=rf"u1\.test, line {line}: "):
        official(build([[5, 6, 7]]), 1, tmp_path)


def test_official_with_other_data_raises(tmp_path):
    with pytest.raises(DataError):
        official(simulate(5, 5, 10), 1, tmp_path)


@needs_data
def test_official_folds_of_the_real_data_are_a_cross_validation():
    ratings = load("ml-100k")
    tested = np.zeros((5, len(ratings)), dtype=bool)
    place = {pair: j for j, pair in enumerate(zip(ratings.users, ratings.items, strict=True))}
    for fold in range(1, 6):
        split = official(ratings, fold)
        assert (len(split.train), len(split.test)) == (80_000, 20_000)
        pairs = zip(split.test.users, split.test.items, strict=True)
        tested[fold - 1, [place[pair] for pair in pairs]] = True
    assert (tested.sum(axis=0) == 1).all()


@needs_data
def test_leave_last_three_gives_the_counts_of_the_thesis():
    split = leave_last(load("ml-latest-small"), 3)
    assert (len(split.train), len(split.test)) == (99_006, 1_830)


def ranked(ratings: Ratings) -> bool:
    """Return whether two or more users have the times c, c + 1, … each, in any order."""
    rows = [sorted(ratings.times[a:b].tolist()) for a, b in pairwise(ratings.indptr)]
    rows = [row for row in rows if row]
    start = min(row[0] for row in rows)
    return len(rows) > 1 and all(row == list(range(start, start + len(row))) for row in rows)


@given(some_ratings, st.floats(0.01, 0.99))
def test_time_split_tests_the_last_of_all(ratings, fraction):
    if ratings.n_ratings == 0 or np.ptp(ratings.times) == 0 or ranked(ratings):
        with pytest.raises(DataError):
            time_split(ratings, fraction)
        return
    split = time_split(ratings, fraction)
    assert_partition(ratings, split)
    assert split.test.n_ratings == round(fraction * ratings.n_ratings)
    if split.test.n_ratings and split.train.n_ratings:
        assert split.train.times.max() <= split.test.times.min()


def test_equal_times_are_split_in_the_order_of_users():
    split = time_split(build([[1, 5, 5], [5, 0]]), 0.4)
    assert lines(split.test) == [(0, 2, 3.0, 5), (1, 0, 4.0, 5)]


@pytest.mark.parametrize("start", [0, 1])
def test_time_split_refuses_the_ranks_of_several_users(start):
    ranks = [[start + 1, start], [start, start + 2, start + 1], []]
    with pytest.raises(DataError, match="ranks"):
        time_split(build(ranks), 0.4)


@pytest.mark.parametrize("rows", [[[0, 1, 2, 3]], [[0, 1], [2, 3]], [[0, 1], [0, 2]]])
def test_times_that_order_all_ratings_are_no_ranks(rows):
    """A single user's ranks, the ranks among all ratings, and one that is missing."""
    assert len(time_split(build(rows), 0.25).test) == 1


@needs_data
def test_fourth_column_of_ml_1m_is_refused_where_it_has_ranks():
    ratings = load("ml-1m")
    if ratings.times.max() > 10**6:
        pytest.skip("this copy has real times")
    with pytest.raises(DataError, match="ml-1m"):
        time_split(ratings)
