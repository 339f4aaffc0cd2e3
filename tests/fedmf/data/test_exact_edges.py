"""Edges of data where a number would change: float ids, wide headers, parts of seconds."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedmf import read_ratings
from fedmf.data.times import moment
from fedmf.errors import DataError

pd = pytest.importorskip("pandas")

FLOAT_IDS = [
    np.array([2.0**60, 7.0]),
    np.array([7.0, -(2.0**53)]),
    np.array([2.0**24, 7], np.float32),
    np.array([1e30, 7], np.float32),
    np.array([2048, 7], np.float16),
    pd.Series([2**60 + 1, 2**60 + 2, None]).to_numpy()[:2],
]


@pytest.mark.parametrize("ids", FLOAT_IDS)
@pytest.mark.parametrize("column", ["user", "item"])
def test_float_ids_that_stand_for_several_integers_raise(ids, column):
    frame = pd.DataFrame({"user": [1, 2], "item": [7, 8], "rating": [3, 4]})
    frame[column] = ids
    with pytest.raises(DataError, match=f"{column}.*2\\^"):
        read_ratings(frame, scale=(1, 5))


@pytest.mark.parametrize(
    ("kind", "largest"), [("f2", 2047), ("f4", 2**24 - 1), ("f8", 2**53 - 1)]
)
def test_smaller_float_ids_are_integers(kind, largest):
    ids = np.array([largest, largest - 1], kind)
    frame = pd.DataFrame({"user": ids, "item": [7, 8], "rating": [3, 4]})
    assert read_ratings(frame, scale=(1, 5)).user_ids.tolist() == [largest - 1, largest]


FILMS = [f"film_{i:05d}" for i in range(12_000)]
WIDE = {
    "a column for each item": "user," + ",".join(FILMS),
    "one long word with spaces": "x " * 100_000,
    "JSON in a line": "[" + '{"user":1},' * 20_000 + "]",
    "below a title": "films\n" + "y" * 200_000,
    "an open quote": '"' + "x" * 200_000,
}


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_first_lines_beyond_a_field_of_csv_raise(text, tmp_path: Path):
    path = tmp_path / "r.csv"
    path.write_text(f"{text}\n")
    with pytest.raises(DataError):
        read_ratings(path, scale=(1, 5))


@given(st.integers(0, 10**18 - 1), st.text("0123456789", min_size=1, max_size=12))
@example(0, "000000001")
@example(1_700_000_000, "37")
def test_parts_of_seconds_are_exact(seconds, digits):
    exact = Decimal(f"0.{digits}") * 10**9
    assert moment(f"{seconds}.{digits}") == (seconds, int(exact))
