"""Lines of commands on standard error: waits, logs with times, and JSON for collectors."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from cli_processes import invoke
from secagg import Identity, client_id
from secagg.cli import waiting
from secagg.cli.console import call_clients
from secagg.cli.files import write_keys
from secagg.cli.lines import log_as
from secagg.cli.notices import notices, tell
from secagg.session import (
    Gathering,
    LocalLink,
    MemberDeclined,
    PhaseClosed,
    PhaseOpened,
    Place,
    RoundFinished,
    Session,
    take_part,
)
from secagg.session.events import Hooks

PLACE = Place("counts", 2, 0)
NAMES = ("bern", "cork", "delft")
IDS = tuple(map(client_id, NAMES))
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Loop:
    """Event loop whose time is at the next call."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []
        self.waited: list[float] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> Loop:
        self.calls.append((seconds, call))
        return self

    def cancel(self) -> None:
        self.calls.clear()

    def go_on(self) -> None:
        seconds, call = self.calls.pop()
        self.waited.append(seconds)
        call()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    call_clients(NAMES)
    found = Loop()
    monkeypatch.setattr(waiting, "get_running_loop", lambda: found)
    return found


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Print without a log before and after each test."""
    log_as(None, json=False)
    yield
    log_as(None, json=False)


def gathering(present: int, missing: tuple[int, ...]) -> Gathering:
    wanted = present + len(missing)
    return Gathering(PLACE, present, wanted, 3, deadline=540.0, missing=missing)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the new lines, without times."""
    return re.sub(TIME.split("T")[1], "TIME", capsys.readouterr().err).splitlines()


def test_log_says_against_whom_a_sum_has_spent(capsys):
    log_as("info", json=False)
    with notices():
        Hooks(())(RoundFinished(PLACE, 1.0, 4, 0, epsilon=1.234))
    (line,) = lines(capsys)
    assert line.endswith("sum 2 is done: 4 clients, 1 s, ε = 1.24 spent against the server")


def test_server_says_whom_it_waits_for_and_since_when(loop, capsys):
    hooks = Hooks(())
    with notices():
        hooks(gathering(2, IDS))
        assert lines(capsys) == []  # most waits are short
        loop.go_on()
        said = "secagg: waiting for bern, cork, delft: 2 of 5 here, 9 min left, since TIME"
        assert lines(capsys) == [said]
        hooks(gathering(3, IDS[:2]))
        assert lines(capsys) == [
            "secagg: waiting for bern, cork: 3 of 5 here, 9 min left, since TIME"
        ]
        for _ in range(8):
            loop.go_on()
        assert loop.waited == [1, 60, 120, 240, 480, 960, 1920, 3600, 3600]
        assert len(lines(capsys)) == 8
        hooks(gathering(5, ()))
        assert (loop.calls, lines(capsys)) == ([], [])
        hooks(PhaseOpened(PLACE, "masked_input", awaited=5, deadline=600.0))
        loop.go_on()
        assert lines(capsys) == [
            "secagg: sum 2, masked_input: waiting for 5 answers, 10 min left, since TIME"
        ]
    assert not loop.calls


def test_arrivals_of_many_clients_have_few_lines(loop, capsys):
    hooks, many = Hooks(()), tuple(range(1000))
    with notices():
        hooks(gathering(0, many))
        loop.go_on()
        for i in range(1, 990):
            hooks(gathering(i, many[i:]))
        said = lines(capsys)
    assert "0, 1, 10, 100," in said[0]
    assert " and 980 more: 0 of 1000 here" in said[0]
    assert len(said) == 1 + 10  # the last ten arrivals


def test_client_says_once_why_it_declines(loop, capsys):
    refused = {"client": IDS[0], "number": 0, "phase": "vector", "check": "file"}
    with notices():
        logging.getLogger("secagg.session").warning("left", extra=refused)
    assert lines(capsys) == []


def test_client_says_that_it_waits(loop, capsys):
    log_as("info", json=False)

    async def run() -> None:
        session = Session(["bern"])
        member = take_part(LocalLink(session, "bern"), "bern", lambda *_: None)
        joined = asyncio.ensure_future(member)
        await asyncio.sleep(0)
        await session.close()
        await joined

    with notices():
        asyncio.run(run())
    assert lines(capsys)[0].endswith(" info: waiting for a sum to begin, since TIME")


LEVELS = {
    "debug": ["debug", "info", "warning"],
    "info": ["info", "warning"],
    "warning": ["warning"],
    "error": [],
}


@pytest.mark.parametrize("level", LEVELS)
def test_log_has_times_and_levels(level, loop, capsys):
    log_as(level, json=False)
    with notices():
        log = logging.getLogger("secagg.session")
        log.debug("D")
        Hooks(())(MemberDeclined(PLACE, "share_keys", IDS[0]))
        log.warning("W")
        logging.getLogger("psycopg.pool").info("a connection is lent")
        tell("said in any case")
    *logged, said = capsys.readouterr().err.splitlines()
    assert [re.fullmatch(rf"{TIME} (\w+): .+", line)[1] for line in logged] == LEVELS[level]
    assert said.endswith("warning: said in any case")
    assert logging.getLogger("secagg.session").level == logging.NOTSET


EVIL = '"\n\x1b[2J\u202e<b>,=1'


def test_json_log_has_a_document_a_line_and_names(loop, capsys):
    log_as(None, json=True)
    call_clients([*NAMES, EVIL])
    with notices():
        hooks = Hooks(())
        hooks(gathering(1, (*IDS, client_id(EVIL))))
        hooks(PhaseClosed(PLACE, "open", 1.0, 2, (3,), 0, 0))
        hooks(MemberDeclined(PLACE, "share_keys", client_id(EVIL)))
    written = capsys.readouterr().err
    assert written.isascii()
    gathered, closed, declined = map(json.loads, written.splitlines())
    assert all(re.fullmatch(TIME, one["time"]) for one in (gathered, closed, declined))
    assert (gathered["event"], gathered["level"], gathered["session"]) == (
        "Gathering",
        "info",
        "counts",
    )
    assert gathered["missing"][:3] == list(NAMES)
    assert gathered["missing"][3].isprintable()
    assert closed["missing"] == ["3"]  # a helper
    assert declined["client"].isprintable()
    assert declined["message"].isprintable()


def test_lines_of_other_threads_have_the_same_form(loop, capsys):
    log_as(None, json=True)
    with notices():
        warning = logging.getLogger("psycopg.pool").warning
        thread = Thread(target=warning, args=("no connection:\n\trefused",))
        thread.start()
        thread.join()
    assert json.loads(capsys.readouterr().err)["message"] == "no connection: refused"


def serve(folder: Path, *more: str) -> tuple[int, list[str]]:
    write_keys(folder / "r.json", {name: Identity.generate().public for name in NAMES})
    size = ["--length", "5", "--clip", "8", "--deadline", "0.001", "--out", str(folder / "s")]
    ports = ["--port", "0", "--operator-port", "0"]
    ran = invoke("serve", folder / "r.json", *size, *ports, *more)
    return ran.exit_code, ran.stderr.splitlines()


def test_all_lines_of_a_server_are_json(tmp_path):
    code, written = serve(tmp_path, "--log-json")
    found = [json.loads(line) for line in written]
    assert code == 2
    assert {"Gathering", "RoundFailed"} <= {one.get("event") for one in found}
    assert any(one["message"].startswith("members: http") for one in found)
    assert found[-1]["level"] == "error"
    # a next command has no log
    assert serve(tmp_path, "--out", str(tmp_path))[1][0].startswith("members: http")


def test_unknown_level_ends_a_server(tmp_path):
    code, written = serve(tmp_path, "--log", "loud")
    assert (code, len(written)) == (2, 1)
    assert "--log" in written[0]
    assert "debug" in written[0]
