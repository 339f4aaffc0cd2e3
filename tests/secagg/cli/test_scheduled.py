"""`secagg serve --every`: a sum for each period, after failures, kills and long absences."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cli_processes import invoke
from secagg import TooFewSurvivors, client_id
from secagg.cli import schedule
from secagg.cli import serve as serving
from secagg.cli.files import create_identity, write_keys
from secagg.cli.records import Chain, Record
from secagg.cli.schedule import Period, Schedule
from secagg.cli.sums import Aggregator, Sums
from secagg.errors import LinkError
from secagg.server import RoundResult
from secagg.session import Session
from secagg.testing import make_identity

NAMES = ("bern", "cork", "delft")
WHOLE = RoundResult(
    sum=np.ones(5),
    integers=np.ones(5, np.int64),
    survivors=tuple(sorted(map(client_id, NAMES))),
)
TOO_FEW = TooFewSurvivors("too few", phase="gather", survivors=1, needed=3)


class Killed(BaseException):
    """End of the process in the middle of a sum."""


class Clock:
    """Wall clock that only sleeps move on."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 5, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    async def sleep_until(self, moment: datetime) -> None:
        self.at = max(self.at, moment)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.chdir(tmp_path)
    write_keys(tmp_path / "r.json", {n: make_identity(i).public for i, n in enumerate(NAMES)})
    made = Clock()
    monkeypatch.setattr(schedule, "now", made.now)
    monkeypatch.setattr(schedule, "sleep_until", made.sleep_until)
    return made


def serve(*more: object, every: str = "month", folder: str = "state") -> tuple[int, str, str]:
    shape = ("--length", 5, "--clip", 8, "--out", "sums", "--port", 0, "--operator-port", 0)
    given = ("--every", every, "--folder", folder, "--deadline", 1e-3)
    ran = invoke("serve", "r.json", *shape, *given, *more)
    return ran.exit_code, ran.stdout, ran.stderr


def sums_give(
    monkeypatch: pytest.MonkeyPatch, give: Callable[[int], RoundResult | BaseException]
) -> list[int]:
    """Let the sums of a session be what a function gives; return the numbers asked for."""
    asked: list[int] = []

    async def found(
        _: object, session: Session, number: int, aggregator: object
    ) -> RoundResult:
        asked.append(number)
        assert f" {number} rounds" in repr(session)  # the session is at this number
        outcome = give(number)
        if isinstance(outcome, Killed):
            await session.close()  # the system closes the files of a killed process
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(Sums, "next", found)
    return asked


def records() -> list[Record]:
    return Chain.read(Path("sums")).records


def test_each_period_has_a_sum_after_its_end(clock, monkeypatch):
    began: list[str] = []

    def give(number: int) -> RoundResult:
        began.append(schedule.iso(clock.now()))
        return WHOLE

    sums_give(monkeypatch, give)
    status, out, _ = serve("--rounds", 3)
    assert status == 0
    assert [line.partition(":")[0] for line in out.splitlines()] == [
        "sums/sum-2026-02.npy",
        "sums/sum-2026-03.npy",
        "sums/sum-2026-04.npy",
    ]
    # the last complete period at once, and each other when it has ended
    assert began == ["2026-03-05T12:00:00Z", "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"]
    assert [one.period for one in records()] == ["2026-02", "2026-03", "2026-04"]
    assert invoke("verify", "sums").exit_code == 0


def test_sum_that_fails_does_not_end_the_server(clock, monkeypatch):
    sums_give(monkeypatch, lambda number: TOO_FEW if number == 1 else WHOLE)
    status, out, _ = serve("--rounds", 3, "--json")
    assert status == 2
    found = json.loads(out)["sums"]
    assert [one["outcome"] for one in found] == ["full", "failed", "full"]
    failed = records()[1]
    assert (failed.period, failed.sum, failed.clients) == ("2026-03", None, ())
    assert not Path("sums/sum-2026-03.npy").exists()
    assert failed.why
    # the failed period is over for good, also for the next process
    sums_give(monkeypatch, lambda number: TOO_FEW)
    assert serve("--rounds", 4)[0] == 2
    asked = sums_give(monkeypatch, lambda number: WHOLE)
    assert serve("--rounds", 5)[0] == 2
    assert asked == [4]


def test_killed_server_asks_for_the_same_period_and_makes_up_for_the_rest(clock, monkeypatch):
    asked = sums_give(monkeypatch, lambda number: Killed() if number == 1 else WHOLE)
    with pytest.raises(Killed):
        serve("--rounds", 9)
    assert (asked, [one.period for one in records()]) == ([0, 1], ["2026-02"])
    clock.at += timedelta(days=100)
    began: list[datetime] = []

    def give(number: int) -> RoundResult:
        began.append(clock.now())
        return WHOLE

    asked = sums_give(monkeypatch, give)
    assert serve("--rounds", 6)[0] == 0
    assert asked == [1, 2, 3, 4, 5]
    months = [f"2026-0{month}" for month in range(2, 8)]
    assert [one.period for one in records()] == months
    assert len(set(began)) == 2  # all but the last at once
    assert invoke("verify", "sums").exit_code == 0


def test_server_that_was_killed_before_its_first_record_keeps_the_period(clock, monkeypatch):
    sums_give(monkeypatch, lambda number: Killed())
    with pytest.raises(Killed):
        serve()
    clock.at += timedelta(days=40)
    sums_give(monkeypatch, lambda number: WHOLE)
    assert serve("--rounds", 1)[0] == 0
    assert [one.period for one in records()] == ["2026-02"]


AWAY = {
    "next period": (1.0, "patience", 2),
    "deadlines": (5.0, "patience", 5),
    "refused": (5.0, "signature", 1),
}


@pytest.mark.parametrize(("seconds", "check", "tries"), AWAY.values(), ids=list(AWAY))
def test_away_helper_is_waited_for_until_the_next_period(
    clock, monkeypatch, capsys, seconds, check, tries
):
    """At least for some seconds; a helper that refuses does not come."""
    moments = [0.0]

    class Away:
        schedule = Schedule(Period.of("2026-02"))

        async def next(self, *_: object) -> RoundResult:
            moments.append(moments[-1] + 1.0)
            clock.at += timedelta(days=20)
            raise LinkError("no answer", check=check)

    async def run() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: moments[-1])
        await serving._next(Away(), None, 0, None, seconds)

    with pytest.raises(LinkError):
        asyncio.run(run())
    assert len(moments) == 1 + tries
    assert capsys.readouterr().err.count("no answer") == tries - 1


def test_helper_that_is_away_ends_a_new_server_only(clock, monkeypatch):
    create_identity(Path("a.pem"))
    keygen = ("helper", "keygen", "journal", "--suite", "x25519", "--json")
    entry = json.loads(invoke(*keygen).stdout) | {"url": "http://127.0.0.1:1"}
    Path("h.json").write_text(json.dumps([entry]))
    helpers = ("--helpers", "h.json", "--identity", "a.pem", "--threshold", 1)
    reached: list[float] = []

    @asynccontextmanager
    async def reach(_: object, params: object, patience: float) -> AsyncIterator[None]:
        reached.append(patience)
        yield

    monkeypatch.setattr(Aggregator, "reach", reach)
    asked = sums_give(monkeypatch, lambda number: WHOLE)
    for rounds in (1, 2):
        assert serve("--rounds", rounds, *helpers)[0] == 0
    assert (len(reached), asked) == (1, [0, 1])


REJECTED = {
    "no folder": (("--every", "month"), "--folder"),
    "other word": (("--every", "fortnight", "--folder", "state"), "fortnight"),
    "other schedule": (("--every", "week", "--folder", "state"), "month"),
    "no schedule": (("--folder", "state"), "--every"),
    "other folder": (("--every", "month", "--folder", "new"), "record-0000.json"),
}


@pytest.mark.parametrize(("more", "named"), REJECTED.values(), ids=list(REJECTED))
def test_schedule_of_another_session_is_rejected(clock, monkeypatch, more, named):
    sums_give(monkeypatch, lambda number: WHOLE)
    assert serve("--rounds", 1)[0] == 0
    Path("state/session").touch()  # the stub of the sums does not need the session's file
    asked = sums_give(monkeypatch, lambda number: WHOLE)
    shape = ("--length", 5, "--clip", 8, "--out", "sums", "--port", 0, "--operator-port", 0)
    ran = invoke("serve", "r.json", *shape, *more)
    assert (ran.exit_code, ran.stderr.count("\n"), asked) == (2, 1, [])
    assert named in ran.stderr
