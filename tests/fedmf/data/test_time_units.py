"""Times since 1970 in different units: a warning, from files, frames and columns alike."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fedmf import DataWarning, from_triples, read_ratings
from rating_sources import source_of

COLUMNS = ("user", "item", "rating", "time")
S = 874_724_710  # the first second of ml-100k

# times, and the units that the warning names
TIMES = {
    "seconds": ([S, S + 1, 1_700_000_000], ()),
    "nanoseconds": ([S * 10**9, S * 10**9 + 1, 17 * 10**17], ()),
    "ranks": ([1, 2, 10_000], ()),
    "before 1970": ([-S, S, S + 1], ()),
    "a third in seconds": ([S * 1000, S, S * 1000 + 7], ("seconds", "milliseconds")),
    "a third in milliseconds": ([S, S * 1000, S + 7], ("seconds", "milliseconds")),
    "without seconds": ([S * 10**3, S * 10**9, S * 10**3], ("milliseconds", "nanoseconds")),
    "three": ([S, S * 10**3, S * 10**6], ("seconds", "milliseconds", "microseconds")),
    "late seconds": ([9_999_999_999, 10**11, 9_999_999_999], ("seconds", "milliseconds")),
}


def warned(read):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read()
    assert all((one.category, one.filename) == (DataWarning, __file__) for one in caught)
    return found, [str(one.message) for one in caught]


@pytest.mark.parametrize("source", ["csv", "frame", "texts", "floats", "columns"])
@pytest.mark.parametrize("name", TIMES)
def test_times_in_different_units_warn_with_a_line_of_each(tmp_path, source, name):
    times, units = TIMES[name]
    columns = ([1] * 3, [1, 2, 3], [3] * 3)
    if source == "columns":
        found, said = warned(lambda: from_triples(*columns, scale=(1, 5), times=times))
    else:
        kind = {"texts": str, "floats": np.float64}.get(source, np.int64)
        table = dict(zip(COLUMNS, (*columns, np.array(times).astype(kind)), strict=True))
        given = source_of("csv" if source == "csv" else "pandas", tmp_path, table)
        found, said = warned(lambda: read_ratings(given, COLUMNS, scale=(1, 5)))
    assert found.times.astype(float).tolist() == list(map(float, times))
    assert len(said) == bool(units)
    for text in said:
        place = {"csv": "(line ", "columns": "(times["}.get(source, "(row ")
        assert text.count(place) == len(units)
        assert [unit for unit in units if f" {unit} (" in text] == list(units)


def test_dates_are_seconds_beside_numbers_of_milliseconds():
    times = np.array(["2024-05-31", S * 1000, "2024-06-01"], dtype=object)
    columns = dict(zip(COLUMNS, ([1] * 3, [1, 2, 3], [3] * 3, times), strict=True))
    frame = pytest.importorskip("pandas").DataFrame(columns)
    with pytest.warns(DataWarning, match="milliseconds"):
        read_ratings(frame, COLUMNS, scale=(1, 5))
