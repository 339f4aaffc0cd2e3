"""Ids as numbers: the order of numpy's unique, and the memory of long texts."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf import read_ratings
from fedmf.data import from_triples
from fedmf.data.coded import is_text, text_ids
from fedmf.errors import DataError
from fedmf.models import Factors
from fedmf.models.warm import matched
from rating_sources import source_of

TEXTS = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=6)


@given(
    st.lists(TEXTS, min_size=1, max_size=30), st.sampled_from([list, tuple, object, np.str_])
)
def test_texts_are_numbered_as_numpy_sorts_them(users, kind):
    given_ids = kind(users) if kind in (list, tuple) else np.array(users, dtype=kind)
    ratings = from_triples(given_ids, range(len(users)), [3] * len(users), scale=(1, 5))
    wanted, numbers = np.unique(np.array(users), return_inverse=True)
    assert ratings.user_ids.tolist() == wanted.tolist()
    assert ratings.user_ids.dtype == wanted.dtype
    assert ratings.users.tolist() == sorted(numbers.tolist())
    assert ratings.items.tolist() == np.argsort(numbers, kind="stable").tolist()


LONG = "x" * 100_000
MANY = [f"u{row % 3000}" for row in range(30_000)]


@pytest.mark.parametrize("source", ["csv", "pandas", "polars", "pyarrow", "list", "array"])
@pytest.mark.parametrize("side", ["user", "item"])
def test_long_id_costs_its_own_size(tmp_path, source, side):
    """In a table of fixed width, 3,000 ids of 100,000 characters take 1.2 GB."""
    long = [*MANY[:15_000], LONG, *MANY[15_000:]]
    other = list(range(len(long)))
    users, items = (long, other) if side == "user" else (other, long)
    columns = {"user": users, "item": items, "rating": [3] * len(users)}
    if source in ("list", "array"):
        make = list if source == "list" else lambda ids: np.array(ids, dtype=object)
        given_ids, read = list(map(make, columns.values())), from_triples
    else:
        given_ids, read = [source_of(source, tmp_path, columns)], read_ratings
    tracemalloc.start()
    ratings = read(*given_ids, scale=(1, 5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ids = ratings.user_ids if side == "user" else ratings.item_ids
    assert ids.tolist() == sorted({*MANY, LONG})
    assert peak < 30e6


def test_a_model_keeps_long_ids(tmp_path):
    users = [*(f"u{row}" for row in range(15)), LONG]
    items = [f"i{row}" for row in range(16)]
    ratings = from_triples(users, items, [1, 2, 3, 4] * 4, scale=(1, 5))
    assert ratings.user_ids.dtype.kind == "T"
    factors = Factors.of(np.ones((16, 1)), np.ones((16, 1)), ratings)
    path = tmp_path / "model.fedmf"
    factors.save(path)
    assert path.stat().st_size < 200_000
    loaded = Factors.load(path)
    assert loaded.user_ids.tolist() == sorted({*users})
    assert np.load(factors.export(tmp_path / "factors"))["user_ids"].tolist() == sorted(
        {*users}
    )
    short = from_triples(["u0", "v"], ["i0", "i1"], [1, 2], scale=(1, 5))
    assert [one.tolist() for one in matched(short.user_ids, loaded.user_ids)] == [[0], [0]]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ([], "U"),
        (["a"], "U"),
        (["a"] * 10_000, "U"),
        (["a", LONG], "U"),
        (["a"] * 20 + [LONG], "T"),
        (["a"] * 10_000 + ["x" * 100], "T"),
        (["a"] * 20 + ["\ud800" * 100_000], "U"),
    ],
)
def test_only_wasted_memory_changes_the_array(texts, kind):
    ids = text_ids(texts)
    assert (ids.dtype.kind, ids.tolist()) == (kind, texts)
    assert is_text(ids)


@pytest.mark.parametrize("many", [3, 3000])
def test_item_ids_may_be_long(many):
    known = sorted([*(f"i{row}" for row in range(many)), LONG])
    ratings = from_triples(["a", "b"], ["i1", LONG], [1, 2], scale=(1, 5), item_ids=known)
    assert ratings.item_ids[ratings.items].tolist() == ["i1", LONG]
    with pytest.raises(DataError, match="item_ids"):
        from_triples(["a"], ["other"], [1], scale=(1, 5), item_ids=known)
    with pytest.raises(DataError):
        from_triples(["a"], [7], [1], scale=(1, 5), item_ids=known)
