"""Schedule of ``secagg serve --every``: the calendar in UTC, the wall clock, and the sleep.

A sum is of a period that has ended. Sum 0 of a session is of the period `Schedule.first`, and
sum i of the i-th period thereafter. The first period stands in the session's folder, so a
restarted server gives each sum the same period as before.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Self

from secagg._files import private_folder, replace_file
from secagg.errors import ParameterError
from secagg.kit.table import as_json

Every = Literal["month", "week", "day", "hour", "minute"]
_FORMATS: dict[Every, str] = {
    "month": "%Y-%m",
    "week": "%G-W%V",
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%dT%H",
    # a colon has no place in a file's name on Windows
    "minute": "%Y-%m-%dT%H-%M",
}
_LENGTHS: dict[Every, timedelta] = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
}
_NAP = 60.0
"""Longest sleep in seconds: the wall clock may be set, and the machine may be suspended."""
FILE = "schedule.json"


def now() -> datetime:
    """Return the time in UTC; all commands read the wall clock here."""
    return datetime.now(UTC)


async def sleep_until(moment: datetime) -> None:
    """Sleep until the wall clock shows a moment."""
    while (left := (moment - now()).total_seconds()) > 0:
        await asyncio.sleep(min(left, _NAP))


def iso(moment: datetime) -> str:
    """Return a moment in ISO 8601, in UTC and whole seconds: "2026-03-01T00:00:05Z"."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_every(name: str) -> Every:
    """Return the kind of period of a name, or raise `ParameterError`."""
    for every in _FORMATS:
        if name == every:
            return every
    raise ParameterError(f"every must be {', '.join(_FORMATS)}, not {name!r}")


@dataclass(frozen=True)
class Period:
    """Period of the calendar in UTC: a month, an ISO week, a day, an hour or a minute.

    Attributes
    ----------
    every : str
        Kind of the period.
    begin : datetime
        First moment.
    """

    every: Every
    begin: datetime

    @classmethod
    def at(cls, every: Every, moment: datetime) -> Self:
        """Return the period with a moment."""
        begin = moment.astimezone(UTC).replace(second=0, microsecond=0)
        if every != "minute":
            begin = begin.replace(minute=0)
        if every not in ("minute", "hour"):
            begin = begin.replace(hour=0)
        if every == "month":
            begin = begin.replace(day=1)
        if every == "week":
            begin -= timedelta(days=begin.weekday())
        return cls(every, begin)

    @classmethod
    def of(cls, label: str) -> Self:
        """Return the period of a label; raise `ParameterError` if there is none."""
        for every, form in _FORMATS.items():
            # a week has a date only with a day
            day, its_day = ("-1", "-%u") if every == "week" else ("", "")
            with suppress(ValueError):
                begin = datetime.strptime(label + day, form + its_day)
                found = cls(every, begin.replace(tzinfo=UTC))
                if found.label == label:  # strptime takes "2026-3", too
                    return found
        raise ParameterError(f"{label!r} is no period, such as 2026-03, 2026-W07 or 2026-03-01")

    @property
    def label(self) -> str:
        """Name of the period, such as "2026-03", "2026-W07" or "2026-03-01T14"."""
        # strftime writes a year before 1000 with fewer digits on some systems
        year = self.begin.isocalendar().year if self.every == "week" else self.begin.year
        form = re.sub("%[GY]", f"{year:04}", _FORMATS[self.every])
        return self.begin.strftime(form)

    @property
    def end(self) -> datetime:
        """First moment after the period."""
        return self.plus(1).begin

    def plus(self, periods: int) -> Self:
        """Return the period so many periods later, or earlier if the number is negative."""
        if self.every == "month":
            year, month = divmod(12 * self.begin.year + self.begin.month - 1 + periods, 12)
            begin = self.begin.replace(year=year, month=month + 1)
        else:
            begin = self.begin + periods * _LENGTHS[self.every]
        return type(self)(self.every, begin)


@dataclass(frozen=True)
class Schedule:
    """Periods of a session's sums.

    Attributes
    ----------
    first : Period
        Period of sum 0.
    """

    first: Period

    @classmethod
    def opened(cls, every: Every, folder: Path) -> Self:
        """Return the schedule of a session's folder, or of a new session; see `keep`.

        The first period of a new session is the last period that has ended.

        Raises
        ------
        ParameterError
            The folder is of a session with another schedule, or without a schedule.
        """
        path = folder / FILE
        if not path.exists():
            if (folder / "session").exists():
                raise ParameterError(
                    f"--folder {folder} is of a session without a schedule; leave out --every, "
                    "or take another --folder and another --out"
                )
            return cls(Period.at(every, now()).plus(-1))
        try:
            first = Period.of(json.loads(path.read_bytes())["first"])
        except (ValueError, KeyError, TypeError):
            raise ParameterError(
                f"{path} was altered; restore the file, or take another --folder and --out"
            ) from None
        if first.every != every:
            raise ParameterError(
                f"--folder {folder} is of a session with --every {first.every}; take that, or "
                "another --folder and another --out"
            )
        return cls(first)

    def keep(self, folder: Path) -> None:
        """Store the schedule of a new session, before the first sum."""
        path = folder / FILE
        if not path.exists():
            private_folder(folder)
            document = {"every": self.first.every, "first": self.first.label}
            replace_file(path, as_json(document) + "\n")

    def period(self, number: int) -> Period:
        """Return the period of a sum."""
        return self.first.plus(number)


def refuse_schedule(folder: Path) -> None:
    """Raise `ParameterError` if a session's folder has a schedule, and the server has none."""
    if (folder / FILE).exists():
        raise ParameterError(
            f"--folder {folder} is of a session with a schedule; give --every as before, or "
            "take another --folder"
        )
