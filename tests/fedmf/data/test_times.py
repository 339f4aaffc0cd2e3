"""Times within one second: ``duplicates="last"`` keeps the later, whatever writes them."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf import read_ratings
from fedmf.data.times import Times

COLUMNS = ("user", "item", "rating", "time")
NOON = 1_714_564_800  # 2024-05-01 12:00:00

# the later time, the earlier, and the seconds of the later
PAIRS = {
    "milliseconds": ("2024-05-01 12:00:00.900", "2024-05-01 12:00:00.100", NOON),
    "nanoseconds": ("2024-05-01T12:00:00.000000009", "2024-05-01T12:00:00.000000001", NOON),
    "with zones": ("2024-05-01T13:00:00.9+01:00", "2024-05-01T12:00:00.1+00:00", NOON),
    "no fraction": ("2024-05-01T12:00:00.001", "2024-05-01T12:00:00", NOON),
    "seconds": ("1714564800.9", "1714564800.1", NOON),
    "number and date": ("1714564800.9", "2024-05-01 12:00:00.1", NOON),
    "integer and fraction": ("1714564800.5", "1714564800", NOON),
    "before 1970": ("-1.25", "-1.75", -2),
    "milliseconds since 1970": ("1714564800900", "1714564800100", 1_714_564_800_900),
}


def kept(source):
    found = read_ratings(source, COLUMNS, scale=(1, 5), duplicates="last")
    return found.values.tolist(), found.times.tolist()


@pytest.mark.parametrize("later_first", [True, False])
@pytest.mark.parametrize("kind", PAIRS)
def test_last_of_texts_is_the_later_within_a_second(tmp_path, kind, later_first):
    later, earlier, seconds = PAIRS[kind]
    rows = [("a", "x", 5, later), ("a", "x", 1, earlier)][:: 1 if later_first else -1]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=COLUMNS)
    path = tmp_path / "ratings.csv"
    frame.to_csv(path, index=False)
    assert kept(path) == kept(frame) == ([5], [seconds])


AT = np.array([NOON * 10**9 + 900, NOON * 10**9 + 100], dtype="datetime64[ns]")
FRAMES = {
    "ns": (lambda pd: pd.Series(AT), NOON),
    "zoned": (lambda pd: pd.Series(AT).dt.tz_localize("UTC"), NOON),
    "before 1970": (lambda pd: pd.Series(np.array([-100, -900], dtype="datetime64[ms]")), -1),
    "floats": (lambda pd: pd.Series([1000.9, 1000.1]), 1000),
    "negative floats": (lambda pd: pd.Series([-1.1, -1.9]), -2),
    "decimals": (lambda pd: pd.Series([decimal.Decimal("7.9"), decimal.Decimal("7.1")]), 7),
    "mixed": (lambda pd: pd.Series(["1970-01-01T00:00:07.9", 7], dtype=object), 7),
    "dates": (lambda pd: pd.Series([datetime.date(1970, 1, day) for day in (3, 2)]), 172_800),
}


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
@pytest.mark.parametrize("kind", FRAMES)
def test_last_of_frames_is_the_later_within_a_second(kind, package):
    pandas = pytest.importorskip("pandas")
    columns = {"user": ["a", "a"], "item": ["x", "x"], "rating": [5, 1]}
    make, seconds = FRAMES[kind]
    frame = pandas.DataFrame({**columns, "time": make(pandas)})
    # Arrow has no column of these
    if package == "pyarrow" and kind != "mixed":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    assert kept(frame) == ([5], [seconds])


PARTS = st.tuples(st.integers(0, 10**18 - 1), st.text("0123456789", min_size=1, max_size=12))


@given(st.lists(PARTS, min_size=1, max_size=20), st.integers(0, 19))
def test_times_order_as_their_numbers(numbers, split):
    times = Times()
    texts = [f"{number}.{digits}" for number, digits in numbers]
    assert times.add(texts[:split]) is None
    assert times.add(texts[split:]) is None
    seconds, nanos = times.arrays()
    assert seconds.tolist() == [number for number, _ in numbers]
    wanted = [int(decimal.Decimal(f"0.{digits}") * 10**9) for _, digits in numbers]
    assert (nanos.tolist() if nanos is not None else [0] * len(numbers)) == wanted


@pytest.mark.parametrize(
    "wrong", ["soon", "nan", "inf", "1e30", str(2**63), "12:00", "31/05/2024", "2024-13-01", ""]
)
def test_text_that_is_no_time_has_its_position(wrong):
    times = Times()
    assert times.add(["7", "7.5", "2024-05-31"]) is None
    assert times.add(["8", "9", wrong, "1.5"]) == 2


@pytest.mark.parametrize("exponent", [19, 30, 308, 309, 400, 9999, 999_999, 10**9, 10**17])
@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_time_of_many_digits_is_rejected_before_they_are_made(exponent, sign, monkeypatch):
    """The integer of 1e999999 has a million digits, and others do not fit into the memory."""

    def made(text):
        raise AssertionError(f"the digits of {text} are made")

    monkeypatch.setattr("fedmf.data.times.Decimal", made)
    assert Times().add(["7", f"{sign}1e{exponent}"]) == 1
