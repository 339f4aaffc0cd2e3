import numpy as np
import pytest

from benches.papers.subset import most_rated
from effort import needs_data
from fedmf.data import Catalogue, from_triples, load
from fedmf.errors import SettingError


@pytest.fixture
def ratings():
    """Users 10, 20, 30, 40 and items 1, 2, 3, 4; item 4 is not rated."""
    pairs = [(10, 1), (10, 2), (20, 3), (20, 2), (30, 2), (30, 3), (30, 1), (40, 1), (40, 2)]
    users, items = (np.array(column) for column in zip(*pairs, strict=True))
    n = np.arange(len(pairs))
    genres = np.array([[True, False], [False, True], [True, True], [False, False]])
    catalogue = Catalogue(
        ("one", "two", "three", "four"), np.arange(4, dtype=np.int16), genres, ("a", "b")
    )
    return from_triples(
        users, items, n / 2, scale=(0.0, 5.0), name="tiny", times=n, item_ids=np.arange(1, 5),
        catalogue=catalogue,
    )  # fmt: skip


def test_subset_has_the_top_items_and_their_top_raters(ratings):
    """Items 2 (4 ratings) and 1 (3); users 10, 30 and 40 rated both, 20 only one."""
    few = most_rated(ratings, 2, 3)
    assert few.item_ids.tolist() == [1, 2]
    assert few.user_ids.tolist() == [10, 30, 40]
    assert few.catalogue.titles == ("one", "two")
    assert few.catalogue.years.tolist() == [0, 1]
    assert few.catalogue.genres.tolist() == [[True, False], [False, True]]
    assert few.scale == ratings.scale
    assert few.name == "the most rated of tiny"
    found = [[few.of_user(u)[part].tolist() for part in (0, 1)] for u in range(3)]
    assert found == [[[0, 1], [0.0, 0.5]], [[1, 0], [2.0, 3.0]], [[0, 1], [3.5, 4.0]]]
    assert few.times.tolist() == [0, 1, 4, 6, 7, 8]


def test_ties_of_many_are_broken_by_the_lower_number(ratings):
    """Short arrays are sorted stably by any algorithm."""
    users = np.concatenate([np.arange(300), np.arange(0, 300, 7)])
    items = np.where(np.arange(users.size) < 300, 1, 2)
    n = np.arange(users.size)
    many = from_triples(
        users, items, n % 5, scale=(0.0, 5.0), name="many", times=n, item_ids=ratings.item_ids,
        catalogue=ratings.catalogue,
    )  # fmt: skip
    assert most_rated(many, 2, 43).user_ids.tolist() == list(range(0, 300, 7))
    others = [user for user in range(300) if user % 7]
    found = most_rated(many, 2, 143).user_ids.tolist()
    assert found == sorted([*range(0, 300, 7), *others[:100]])


def test_users_are_chosen_by_the_chosen_items(ratings):
    """User 30 has most ratings, but of item 2 no more than user 10."""
    assert most_rated(ratings, 1, 1).user_ids.tolist() == [10]


@pytest.mark.parametrize(("n_items", "n_users"), [(0, 1), (4, 1), (1, 5), (1, 0)])
def test_numbers_out_of_range_raise(ratings, n_items, n_users):
    with pytest.raises(SettingError):
        most_rated(ratings, n_items, n_users)


@needs_data
def test_subset_of_ml_latest_small_has_known_size():
    corner = most_rated(load("ml-latest-small"))
    assert (corner.n_items, corner.n_users, corner.n_ratings) == (40, 50, 1758)
    assert "Forrest Gump (1994)" in corner.catalogue.titles
