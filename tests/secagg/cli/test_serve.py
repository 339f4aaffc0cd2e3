"""`secagg serve` before anybody sends a vector, and after a sum that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from secagg import BudgetSpent, Identity, ParameterError, Registry, TooFewSurvivors, client_id
from secagg.cli import app, sums
from secagg.cli.console import call_clients
from secagg.cli.files import create_identity, read_registry, write_keys
from secagg.cli.notices import notices
from secagg.cli.sums import Aggregator, Sums, prepare, summed
from secagg.encoding import FixedPoint
from secagg.errors import ClippingWarning
from secagg.server import RoundResult
from secagg.session import (
    ClientConvicted,
    HelperFailed,
    MessageRejected,
    Place,
    RoundFailed,
    Session,
)
from secagg.session.events import Hooks
from secagg.testing import make_identity

FINISHED = RoundResult(sum=np.ones(5), integers=np.ones(5, np.int64), survivors=(1, 2, 3))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with registries of two, three and four clients."""
    monkeypatch.chdir(tmp_path)
    for count in (2, 3, 4):
        keys = {f"client {i}": Identity.generate().public for i in range(count)}
        write_keys(tmp_path / f"{count}.json", keys)
    return tmp_path


def serve(*more: object, registry: str = "4.json") -> Result:
    size = ("--length", 5, "--clip", 8, "--port", 0, "--operator-port", 0, "--deadline", 1e-3)
    return CliRunner().invoke(app, list(map(str, ("serve", registry, *size, *more))))


def rejected(ran: Result, *named: str) -> None:
    """Check that a command ended with an error before it listened."""
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    assert all(one in ran.stderr for one in named), ran.stderr


def test_helper_that_is_away_ends_the_server_at_once(folder, monkeypatch):
    monkeypatch.setattr(sums, "_PATIENCE", 1e-9)
    create_identity(folder / "a.pem")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    keygen = ["helper", "keygen", "journal", "--suite", "x25519", "--json"]
    entry = json.loads(CliRunner().invoke(app, keygen).stdout)
    (folder / "h.json").write_text(json.dumps([entry | {"url": url}]))
    helpers = ("--helpers", "h.json", "--identity", "a.pem", "--threshold", 1)
    ran = serve("--out", "sums", *helpers)
    assert (ran.exit_code, ran.stdout) == (2, "")
    retry, end = ran.stderr.splitlines()
    assert url in retry
    assert url in end
    assert "secagg helper serve" in end


def test_folder_of_the_sums_is_made_first(folder):
    (folder / "file").write_text("")
    for out in ("file", "file/sums"):
        rejected(serve("--out", out), "--out", out)
    prepare(folder / "new" / "sums", 1, None)
    assert (folder / "new" / "sums").is_dir()


def test_earlier_sums_are_not_overwritten(folder):
    (folder / "sums").mkdir()
    (folder / "sums" / "sum-1.npy").write_text("earlier")
    prepare(folder / "sums", 1, None)
    rejected(serve("--out", "sums", "--rounds", 2, "--folder", "state"), "sum-1.npy", "--out")
    (folder / "state").mkdir()
    with pytest.raises(ParameterError):
        prepare(folder / "sums", 2, folder / "state")
    (folder / "state" / "session").write_text("")
    prepare(folder / "sums", 2, folder / "state")


@pytest.mark.parametrize(
    ("resumable", "error"),
    [
        (False, TooFewSurvivors("too few", phase="gather", survivors=0, needed=3)),
        (True, TooFewSurvivors("too few", phase="gather", survivors=0, needed=3)),
        (True, BudgetSpent("gather no more")),
    ],
    ids=["no folder", "folder", "no budget"],
)
def test_sum_that_fails_leaves_the_earlier_ones(folder, monkeypatch, resumable, error):
    sessions, expected = [], []

    async def second_fails(_, session, number, aggregator):
        sessions.append(session)
        assert len(expected) == len(sessions)  # each sum waits for all clients
        if number == 1:
            raise error
        return FINISHED

    monkeypatch.setattr(Sums, "next", second_fails)
    monkeypatch.setattr(Session, "expect_all", lambda session: expected.append(session))
    more = ("--folder", "state") if resumable else ()
    ran = serve("--out", "sums", "--rounds", 3, "--json", *more)
    assert ran.exit_code == 2
    first, failed = json.loads(ran.stdout)["sums"]
    assert (first["out"], first["survivors"]) == ("sums/sum-0.npy", 3)
    assert (failed["out"], failed["outcome"]) == (None, "failed")
    assert ran.stderr.splitlines()[-1].startswith("secagg: gather")
    # where the same command can try again, the clients wait for it
    again = resumable and not isinstance(error, BudgetSpent)
    assert [one.closed for one in sessions] == [not again] * 2


MISSING = {
    "nobody": (4, 0, "sum of 4 vectors"),
    "two": (4, 2, "sum of 2 of 4 vectors, missing c0, c1"),
    "twenty": (30, 20, ", c9"),
    "many": (40, 25, " and 5 more"),
}


@pytest.mark.parametrize(("clients", "gone", "end"), MISSING.values(), ids=list(MISSING))
def test_line_of_a_sum_names_who_is_missing(clients, gone, end):
    names = [f"c{i}" for i in range(clients)]
    registry = Registry({name: make_identity(i).public for i, name in enumerate(names)})
    result = replace(FINISHED, survivors=tuple(map(client_id, names[gone:])))
    call_clients(names)
    assert summed(result, registry).endswith(end)
    call_clients([])  # then they have ids
    if gone == 2:
        ids = sorted(str(client_id(name)) for name in names[:2])
        assert summed(result, registry).endswith(", ".join(ids))


def test_least_number_of_clients_is_demanded_of_the_session(folder):
    class Asked:
        async def round(self, params, message, *, min_clients):
            return params.threshold, min_clients

    registry = read_registry(folder / "4.json")
    shape = (5, FixedPoint(8), None, None, "semi-honest", 0.0, 0.0)
    sums = Sums(registry, *shape, name="s", run=b"", min_clients=4)
    assert asyncio.run(sums.next(Asked(), 0, None)) == (4, 4)
    for wrong in (1, 5):
        rejected(serve("--out", "sums", "--min-clients", wrong), "--min-clients", str(wrong))


@pytest.mark.parametrize(
    ("length", "more", "suite", "why"),
    [
        (5, (), "x25519", "would add 4.83 kB to a vector of 15 B"),
        (5000, (), "hybrid", "adds 4.83 kB to a vector of 14.4 kB"),
        (5, ("--suite", "hybrid"), "hybrid", "--suite"),
        (5000, ("--suite", "x25519"), "x25519", "--suite"),
    ],
)
def test_suite_is_shown_and_kept_in_the_record(folder, monkeypatch, length, more, suite, why):
    ran_with = []

    async def finished(own, *_):
        ran_with.append(own.params(0, None).suite)
        return FINISHED

    monkeypatch.setattr(Sums, "next", finished)
    ran = serve("--out", "sums", "--length", length, "--json", *more)
    shown = json.loads(ran.stdout)
    assert (ran.exit_code, shown["suite"], ran_with) == (3, suite, [suite])
    assert why in shown["suite_why"]
    assert f"suite: {suite}, {shown['suite_why']}" in ran.stderr.splitlines()
    record = json.loads(Path(shown["sums"][0]["record"]).read_text())
    assert record["parameters"]["suite"] == suite


def test_suite_of_one_shot_sums_is_of_the_helpers_keys(folder, monkeypatch):
    async def nothing(*_):
        raise BudgetSpent("enough")

    async def waited(*_):
        pass

    create_identity(folder / "a.pem")
    keygen = ["helper", "keygen", "journal", "--suite", "x25519", "--json"]
    entry = json.loads(CliRunner().invoke(app, keygen).stdout)
    (folder / "h.json").write_text(json.dumps([entry | {"url": "http://127.0.0.1:9"}]))
    helpers = ("--helpers", "h.json", "--identity", "a.pem", "--threshold", 1)
    rejected(serve("--out", "sums", *helpers, "--suite", "hybrid"), "--suite", "secagg helper")
    monkeypatch.setattr(Aggregator, "ensure", waited)
    monkeypatch.setattr(Sums, "next", nothing)
    for more in ((), ("--suite", "x25519")):
        ran = serve("--out", "sums", *helpers, *more)
        assert "suite: x25519, of the helpers' keys" in ran.stderr.splitlines()


def test_two_clients_are_too_few(folder):
    rejected(serve("--out", "sums", registry="2.json"), "2 clients", "identity register")


def test_notices_have_names_and_no_fields_of_events(capsys):
    call_clients(["alice", 7])
    alice, place = client_id("alice"), Place("session", 2, 0)
    hooks, log = Hooks(()), logging.getLogger("secagg.session")
    with notices():
        failed = {"place": place, "error": "E", "phase": "gather", "check": ""}
        last = {"left_out": (alice, 7), "survivors": 2, "needed": 3}
        hooks(RoundFailed(**failed, final=False, **last))
        hooks(RoundFailed(**failed, final=True, left_out=()))
        unanswered = failed | {"phase": "advertise_keys"}
        hooks(RoundFailed(**unanswered, final=False, left_out=(), survivors=0, needed=3))
        hooks(MessageRejected(place=place, phase="report", client=7, size=1, check="late"))
        hooks(HelperFailed(place=place, helper=2, phase="open", check="deadline"))
        hooks(ClientConvicted(place=place, client=alice, kind="shares"))
        where = {"client": alice, "phase": "answer", "check": "size"}
        log.warning("left", extra=where)
        logging.getLogger("secagg.http").error("an error of secagg.http: E")
        warnings.warn("one element was clipped", ClippingWarning, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == [
        "secagg: sum 2 failed (gather, too few clients: 2, and 3 are needed); trying again "
        f"without client alice ({alice}), client 7",
        "secagg: sum 2 failed (advertise_keys, too few clients: 0, and 3 are needed); clients "
        "that declined it say why at their end; trying again",
        "secagg: a message of client 7 was rejected (report, late)",
        "secagg: going on without helper 2 (open, deadline)",
        f"secagg: client alice ({alice}) dealt shares that do not give the secret that it "
        "published (a verdict)",
        f"secagg: client alice ({alice}) left this sum (answer, size)",
        "secagg: an error of secagg.http: E",
        "secagg: one element was clipped",
    ]
    assert not log.handlers


def test_notices_of_a_study_have_sites_and_steps(capsys):
    call_clients(["north"])
    north, place = client_id("north"), Place("study", 1, 0)
    hooks, log = Hooks(()), logging.getLogger("secagg.session")
    with notices(study=True) as noted:
        failed = {"place": place, "error": "E", "phase": "gather", "check": "", "final": False}
        hooks(RoundFailed(**failed, left_out=(north,), survivors=2, needed=3))
        where = {"client": north, "number": 1, "phase": "unmasking", "check": "unbegun"}
        log.warning("left", extra=where | {"hint": "; run each client once"})
    assert capsys.readouterr().err.splitlines() == [
        "secagg: step 2 failed (gather, too few sites: 2, and 3 are needed); trying again "
        "without site north",
        "secagg: site north left step 2 (unmasking, unbegun); run each site once",
    ]
    assert noted.hint == "; run each site once"
