"""Command line of `secagg` on a wall clock that runs fast, and stands at a moment.

As a script: `python fast_clock.py FILE WORDS…` runs `secagg WORDS…`. The file has the time at
which the clock stood, the time of the machine since which it runs, its speed and the time at
which it stands again. Deadlines, TLS and signatures have the machine's time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

SPEED = 150_000


class FastClock:
    """Wall clock of a file.

    Parameters
    ----------
    path : Path
    begin : datetime
        Time of a new file.
    """

    def __init__(self, path: Path, begin: datetime | None = None) -> None:
        self._path = path
        if begin is not None:
            self._write(begin, begin)

    def now(self) -> datetime:
        """Return the time."""
        since, began, end = json.loads(self._path.read_text())
        return datetime.fromtimestamp(min(end, since + SPEED * (time.time() - began)), UTC)

    async def sleep_until(self, moment: datetime) -> None:
        """Sleep until the clock shows a moment."""
        while (left := (moment - self.now()).total_seconds()) > 0:
            await asyncio.sleep(max(0.05, left / SPEED))

    def run_to(self, moment: datetime) -> None:
        """Let the clock run until a moment."""
        self._write(self.now(), moment)

    def _write(self, since: datetime, end: datetime) -> None:
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps([since.timestamp(), time.time(), end.timestamp()]))
        os.replace(part, self._path)


if __name__ == "__main__":
    from secagg.cli import main, schedule

    clock = FastClock(Path(sys.argv.pop(1)))
    schedule.now, schedule.sleep_until = clock.now, clock.sleep_until  # type: ignore[assignment]
    main()
