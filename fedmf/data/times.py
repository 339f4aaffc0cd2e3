"""Times of ratings: seconds since 1970, and the nanoseconds that order within a second."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

Nanos = NDArray[np.int32] | NDArray[np.int64]

FRACTION = re.compile(r"[.,]([0-9]{1,9})")
DECIMAL = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})")
BILLION = 10**9
UNITS = {  # times of 1973 to 2286 as numbers
    "seconds": (10**8, 10**10),
    "milliseconds": (10**11, 10**13),
    "microseconds": (10**14, 10**16),
    "nanoseconds": (10**17, 2**63 - 1),
}


class Times:
    """Times in the order of addition, 8 bytes each, or 12 with parts of seconds."""

    def __init__(self) -> None:
        self._seconds = array("q")
        self._nanos = array("i")  # as long as `_seconds`, once a time has a part of a second

    def add(self, texts: Sequence[str]) -> int | None:
        """Append texts; return the position of the first text that is no time, or None."""
        before = len(self._seconds)
        try:
            self._seconds.extend(map(int, texts))
        except (OverflowError, ValueError):
            del self._seconds[before:]
            return self._add_slowly(texts)
        if self._nanos:
            self._nanos.extend([0] * len(texts))
        return None

    def _add_slowly(self, texts: Sequence[str]) -> int | None:
        for position, text in enumerate(texts):
            try:
                seconds, nanos = moment(text)
            except (OverflowError, ValueError):
                return position
            if nanos and not self._nanos:
                self._nanos = array("i", bytes(4 * len(self._seconds)))
            if self._nanos or nanos:
                self._nanos.append(nanos)
            self._seconds.append(seconds)
        return None

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32] | None]:
        """Return the seconds and, if a time has a part of a second, the nanoseconds."""
        nanos = np.frombuffer(self._nanos, dtype=np.int32) if self._nanos else None
        return np.frombuffer(self._seconds, dtype=np.int64), nanos


def moment(text: str) -> tuple[int, int]:
    """Return the seconds from 1970 and the nanoseconds of a number or a date in ISO 8601.

    A date without a zone is in UTC. Raises ValueError if the text is neither, or OverflowError
    if the seconds have more than 64 bits.
    """
    if found := DECIMAL.fullmatch(text):  # the common form, without the time of Decimal
        return int(found[1]), int(found[2].ljust(9, "0"))
    try:
        return int(np.int64(int(text))), 0
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return _date(text)
    np.int64(math.floor(number))  # first: the integer of 1e999999 has a million digits
    exact = Decimal(text)
    seconds = math.floor(exact)
    return int(np.int64(seconds)), int((exact - seconds) * BILLION)


def _date(text: str) -> tuple[int, int]:
    when = datetime.fromisoformat(text)
    whole = when.replace(microsecond=0, tzinfo=when.tzinfo or UTC)
    digits = FRACTION.search(text)
    nanos = int(digits[1].ljust(9, "0")) if digits else 0
    return int(whole.timestamp()), nanos


def of_column(column: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return the seconds and, if there are any, the nanoseconds of dates or of floats.

    Parameters
    ----------
    column : datetime64 of any unit, or floats, all finite
    """
    if column.dtype.kind == "M":
        whole = column.astype("datetime64[s]")
        nanos = (column - whole).astype("timedelta64[ns]").astype(np.int64)
        seconds = whole.astype(np.int64)
    else:
        floor = np.floor(column)
        nanos = ((column - floor) * BILLION).astype(np.int64)
        seconds = floor.astype(np.int64)
    return seconds, nanos if nanos.any() else None


def mixed_units(times: NDArray[np.int64], place: Callable[[int], str]) -> str | None:
    """Return a warning if times since 1970 are in different units, or None.

    A split by time would put all times in seconds before all times in milliseconds. `place`
    returns the place of a row, such as "line 7".
    """
    seen = []
    for unit, (low, high) in UNITS.items():
        here = (times >= low) & (times < high)
        if here.any():
            least, most = times[here].min(), times[here].max()
            first = place(int(np.argmax(here)))
            seen.append(f"{least} to {most} are like {unit} ({first})")
    if len(seen) < 2:
        return None
    return f"{', '.join(seen)}: convert them to one unit, as they order the ratings"
