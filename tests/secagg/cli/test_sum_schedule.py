"""Calendar of `secagg serve --every`, and the first period in the session's folder."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg import ParameterError
from secagg.cli import schedule
from secagg.cli.schedule import Every, Period, Schedule

EVERY = st.sampled_from(get_args(Every))
MOMENTS = st.datetimes(
    datetime(1000, 2, 1),
    datetime(9000, 1, 1),
    timezones=st.just(UTC),
)
LABELS = {
    "2026-02": ("2026-02-01T00:00", "2026-03-01T00:00"),
    "2024-02": ("2024-02-01T00:00", "2024-03-01T00:00"),
    "2025-12": ("2025-12-01T00:00", "2026-01-01T00:00"),
    "2024-02-29": ("2024-02-29T00:00", "2024-03-01T00:00"),
    "2026-12-31T23": ("2026-12-31T23:00", "2027-01-01T00:00"),
    "2026-12-31T23-59": ("2026-12-31T23:59", "2027-01-01T00:00"),
    # ISO 8601: the week with the first Thursday is week 1
    "2026-W01": ("2025-12-29T00:00", "2026-01-05T00:00"),
    "2026-W53": ("2026-12-28T00:00", "2027-01-04T00:00"),
    "2021-W01": ("2021-01-04T00:00", "2021-01-11T00:00"),
}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("label", LABELS)
def test_labels_have_the_periods_of_the_calendar(label):
    period = Period.of(label)
    assert [period.begin, period.end] == [utc(text) for text in LABELS[label]]
    assert period.label == label


@pytest.mark.parametrize(
    "label",
    [
        "",
        "2026-3",
        "2026-13",
        "2026-W54",
        "2025-W53",
        "2026-02-29",
        "2026-03-01T24",
        " 2026-03",
    ],
)
def test_text_that_is_no_period_is_rejected(label):
    with pytest.raises(ParameterError):
        Period.of(label)


@given(EVERY, MOMENTS, st.integers(-1000, 1000))
def test_periods_divide_the_time(every, moment, steps):
    period = Period.at(every, moment)
    assert period.begin <= moment < period.end
    assert Period.at(every, period.begin) == period == Period.at(every, period.end).plus(-1)
    assert Period.of(period.label) == period
    assert Period.at(every, moment.astimezone()) == period
    there = period.plus(steps)
    assert there.plus(-steps) == period
    assert (there.label > period.label) == (steps > 0)  # so files sort by time
    assert Period.at(every, there.end - timedelta(microseconds=1)) == there


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """Wall clock with the time in the list; a sleep moves it on, by half at first."""
    at, naps = [utc("2026-03-01T00:00")], []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)
        at[0] += timedelta(seconds=seconds / (1 + (len(naps) == 1)))

    monkeypatch.setattr(schedule, "now", lambda: at[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return at


def test_first_period_is_the_last_that_has_ended(clock, tmp_path):
    kept = Schedule.opened("month", tmp_path / "state")
    assert kept.period(0).label == "2026-02"
    assert not list(tmp_path.iterdir())  # a command that fails at once decides nothing
    kept.keep(tmp_path / "state")
    # a restart gives sum 0 the same period, however late
    clock[0] = utc("2027-01-01T00:00")
    assert Schedule.opened("month", tmp_path / "state") == kept
    assert kept.period(11).label == "2027-01"
    Schedule(Period.of("2030-01")).keep(tmp_path / "state")
    assert Schedule.opened("month", tmp_path / "state") == kept
    with pytest.raises(ParameterError, match="month"):
        Schedule.opened("week", tmp_path / "state")
    with pytest.raises(ParameterError):
        schedule.refuse_schedule(tmp_path / "state")
    (tmp_path / "state" / schedule.FILE).write_text('{"first": 7}')
    with pytest.raises(ParameterError, match=schedule.FILE):
        Schedule.opened("month", tmp_path / "state")


def test_session_without_a_schedule_gets_none(clock, tmp_path):
    (tmp_path / "session").write_text("")
    with pytest.raises(ParameterError):
        Schedule.opened("month", tmp_path)
    schedule.refuse_schedule(tmp_path)


def test_sleep_ends_when_the_wall_clock_shows_the_moment(clock):
    # the wall clock may go slower than the sleep, and may be set
    asyncio.run(schedule.sleep_until(utc("2026-03-01T01:00")))
    assert clock[0] == utc("2026-03-01T01:00")
    asyncio.run(schedule.sleep_until(utc("2026-02-01T00:00")))
    assert clock[0] == utc("2026-03-01T01:00")
    with pytest.raises(ParameterError, match="fortnight"):
        schedule.as_every("fortnight")
