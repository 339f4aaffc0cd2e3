"""Records beside the sums of `secagg serve`, their chain, and what `secagg verify` detects."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec import structs

from blamed_round import SignedRound, guilty
from cli_processes import invoke
from secagg import Registry, RoundParams, client_id
from secagg.cli.accounts import Account
from secagg.cli.books import Book
from secagg.cli.console import call_clients, called
from secagg.cli.records import OTHER_KEY, Chain, name_of
from secagg.cli.schedule import Period, Schedule
from secagg.cli.sums import Sums, prepare
from secagg.cli.verify import _lines
from secagg.encoding import FixedPoint
from secagg.errors import JournalError, ParameterError, TooFewSurvivors
from secagg.protocol.key_files import registry_to_json
from secagg.server import RoundResult
from secagg.session import (
    Gathering,
    LocalLink,
    MemberDeclined,
    MessageAccepted,
    MessageRejected,
    PhaseClosed,
    Place,
    RoundBegun,
    RoundFailed,
    RoundFinished,
    Session,
    take_part,
)
from secagg.testing import make_identity

NAMES = ("bern", "cork", "delft", "essen")
IDS = {name: client_id(name) for name in NAMES}
GATHERED = {"present": 3, "wanted": 4, "needed": 3, "deadline": 9.0}


def sums(name: str = "counts", schedule: Schedule | None = None) -> Sums:
    registry = Registry({n: make_identity(i).public for i, n in enumerate(NAMES)})
    shape = (5, FixedPoint(8), None, None, "semi-honest", 0.0, 0.0)
    return Sums(registry, *shape, name=name, run=b"", schedule=schedule)


def result(*names: str) -> RoundResult:
    survivors = tuple(sorted(IDS[name] for name in names))
    return RoundResult(sum=np.ones(5), integers=np.ones(5, np.int64), survivors=survivors)


def never_came(name: str, number: int = 0) -> Gathering:
    return Gathering(Place("counts", number, 0), **GATHERED, missing=(IDS[name],))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with four records: whole, of three clients, failed, and whole."""
    call_clients(NAMES)
    plan = Schedule(Period.of("2026-01"))
    book = Book(tmp_path, sums(schedule=plan), None)
    for number, names in enumerate((NAMES, NAMES[:3], (), NAMES)):
        begun = book.begin()
        if number in (1, 2):
            book.note(never_came("essen", number))
        if names:
            book.keep(number, begun, result(*names))
        else:
            error = TooFewSurvivors("too few", phase="gather", survivors=2, needed=3)
            book.keep_failure(number, begun, error)
    return tmp_path


def test_who_was_missing_in_a_month_is_one_command(folder):
    ran = invoke("verify", folder, "--period", "2026-02")
    assert ran.exit_code == 0
    assert ran.stdout.splitlines()[:2] == [
        "2026-02: sum of 3 of 4 vectors",
        "  missing essen: never came",
    ]
    assert "4 records" in ran.stdout
    assert invoke("verify", folder, "--period", "2027-01").exit_code == 2
    found = json.loads(invoke("verify", folder, "--json").stdout)
    outcomes = [record["outcome"] for record in found["records"]]
    assert outcomes == ["full", "partial", "failed", "full"]
    assert found["records"][1]["clients"] == list(NAMES[:3])
    assert found["records"][2]["sum"] is None
    # the last hash is the hash of the last record
    last = json.loads((folder / name_of(3)).read_text())
    assert found["head"] == last["hash"] != last["before"]


def test_verdicts_are_files_beside_the_record_that_judge_reads(tmp_path):
    """A verdict of a failed sum is kept, too."""
    call_clients(NAMES)
    round_ = SignedRound(ids=sorted(IDS.values()))
    found = [guilty(round_, kind) for kind in ("complainer", "answer", "shares")]
    book = Book(tmp_path, sums(), None)
    book.keep(0, book.begin(), replace(result(*NAMES), verdicts=tuple(found[:2])))
    few = {"phase": "gather", "survivors": 2, "needed": 3, "verdicts": (found[2],)}
    book.keep_failure(1, book.begin(), TooFewSurvivors("few", **few))
    first, second = Chain.read(tmp_path).records
    names = {client: name for name, client in IDS.items()}
    kept = {(one.client, one.kind): one.file for one in first.verdicts + second.verdicts}
    assert kept.keys() == {(names[one.client], one.kind) for one in found}
    shown = invoke("verify", tmp_path).stdout.splitlines()
    registry = tmp_path.parent / "clients.json"
    registry.write_text(registry_to_json(dict(round_.registry)))
    for verdict in found:
        name = kept[names[verdict.client], verdict.kind]
        assert (tmp_path / name).read_bytes() == verdict.data
        assert f"  verdict on {names[verdict.client]}: {verdict.kind}" in shown
        assert f"    {name}" in shown
        options = ("--registry", registry, "--corrupt", 0.1, "--json")
        judged = invoke("judge", tmp_path / name, *options).stdout
        assert json.loads(judged)["client"] == verdict.client
    documents = book.documents()
    assert [len(one["verdicts"]) for one in documents] == [2, 1]
    assert documents[1]["verdicts"][0]["file"] == str(tmp_path / name)
    flip(name)(tmp_path)
    assert invoke("verify", tmp_path).exit_code == 2
    (tmp_path / name).unlink()
    assert f"{name}: it is missing" in invoke("verify", tmp_path).stderr


def test_name_of_a_client_injects_nothing(tmp_path):
    name = "del\x1b[2Jft\n2026-02: sum of 4 vectors"
    keys = {name: make_identity(9).public, "bern": make_identity(0).public}
    registry = Registry(keys | {"cork": make_identity(1).public})
    call_clients([name, "bern", "cork"])
    book = Book(tmp_path, replace(sums(), registry=registry), None)
    book.keep(0, book.begin(), result("bern", "cork"))
    shown = invoke("verify", tmp_path).stdout
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 4


def test_noise_of_helpers_has_its_steps_and_the_parties(folder):
    record = Chain.read(folder).records[0]
    parties = {"against": "an aggregator that does anything"}
    noised = msgspec.structs.replace(
        record, noise=2.5e6, parameters=record.parameters | parties
    )
    assert list(_lines(noised))[1:3] == [
        "  noise of 2.5e+06 steps",
        "  against an aggregator that does anything",
    ]


def test_lines_fit_into_a_narrow_terminal(folder):
    assert all(len(line) <= 60 for line in invoke("verify", folder).stdout.splitlines()[:-1])


def flip(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)

    return change


def swap(folder: Path) -> None:
    first, second = folder / name_of(1), folder / name_of(3)
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)


def gap(folder: Path) -> None:
    (folder / name_of(1)).unlink()
    shutil.copy(folder / name_of(3), folder / name_of(2))


def cut(folder: Path) -> None:
    (folder / name_of(3)).unlink()


ALTERED = {
    "first record": (flip(name_of(0)), name_of(0)),
    "record": (flip(name_of(1)), name_of(1)),
    "last record": (flip(name_of(3)), name_of(3)),
    "hash": (lambda at: append(at / name_of(3), b"\n"), name_of(3)),
    "sum": (flip("sum-2026-02.npy"), "sum-2026-02.npy"),
    "sum deleted": (lambda at: (at / "sum-2026-02.npy").unlink(), "sum-2026-02.npy"),
    "record deleted": (lambda at: (at / name_of(2)).unlink(), name_of(2)),
    "first record deleted": (lambda at: (at / name_of(0)).unlink(), name_of(0)),
    "order": (swap, name_of(1)),
    "order after a gap": (gap, name_of(2)),
    "last record deleted": (cut, "sum-2026-04.npy"),
    "extra": (lambda at: (at / "sum-2026-05.npy").touch(), "sum-2026-05.npy"),
    "extra record": (lambda at: shutil.copy(at / name_of(3), at / name_of(4)), name_of(4)),
    "folder as a record": (lambda at: (at / name_of(4)).mkdir(), name_of(4)),
    "other name": (
        lambda at: (at / name_of(3)).rename(at / "record-00003.json"),
        "record-00003",
    ),
}


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


@pytest.mark.parametrize(("alter", "named"), ALTERED.values(), ids=list(ALTERED))
def test_alteration_is_detected_and_its_file_named(folder, alter, named):
    alter(folder)
    ran = invoke("verify", folder)
    assert ran.exit_code == 2
    assert str(folder / named) in ran.stderr
    assert "all true" not in ran.stdout


@pytest.mark.parametrize("mask", [1, 0x80])
def test_each_byte_of_a_record_counts(folder, mask):
    path = folder / name_of(2)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
        assert name_of(2) in Chain.read(folder).faults, at
    path.write_bytes(b"[" * 9999 + data)
    assert name_of(2) in Chain.read(folder).faults


@pytest.mark.parametrize("length", [0, 1, 40, 99])
def test_record_that_was_cut_off_is_named(folder, length):
    data = (folder / name_of(1)).read_bytes()
    (folder / name_of(1)).write_bytes(data[:length])
    ran = invoke("verify", folder)
    assert ran.exit_code == 2
    # the fault of one record is not charged to the next
    assert [line for line in ran.stderr.splitlines() if "record-" in line][1:] == []


def test_end_that_is_cut_off_with_its_sum_shows_in_the_last_hash(folder):
    before = json.loads(invoke("verify", folder, "--json").stdout)["head"]
    cut(folder)
    (folder / "sum-2026-04.npy").unlink()
    ran = invoke("verify", folder, "--json")
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["head"] != before


def test_part_of_a_killed_write_is_no_fault_and_goes(folder):
    part = folder / f"sum-2026-05.npy.{'0' * 16}.part"
    part.touch()
    assert invoke("verify", folder).exit_code == 0
    Book(folder, sums(schedule=Schedule(Period.of("2026-01"))), None)
    assert not part.exists()


def test_server_goes_on_after_the_last_record(folder):
    plan = Schedule(Period.of("2026-01"))
    again = Book(folder, sums(schedule=plan), None)
    assert list(again.numbers(6)) == [4, 5]
    assert again.status == 2
    with pytest.raises(ParameterError, match="counts"):
        Book(folder, sums("other"), None)
    # a --folder of other sums would give the next sum a period far from the last
    for other in (None, Schedule(Period.of("2026-03"))):
        with pytest.raises(ParameterError, match="2026-01"):
            Book(folder, sums(schedule=other), None)
    flip(name_of(1))(folder)
    with pytest.raises(JournalError, match=name_of(1)):
        Book(folder, sums(schedule=plan), None)


def test_sum_that_failed_is_tried_again_without_a_schedule(tmp_path):
    book = Book(tmp_path, sums(), None)
    error = TooFewSurvivors("too few", phase="gather", survivors=2, needed=3)
    book.keep_failure(0, book.begin(), error)
    prepare(tmp_path, 2, None)
    again = Book(tmp_path, sums(), None)
    assert (list(again.numbers(2)), again.status) == ([0, 1], 2)
    again.keep(0, again.begin(), result(*NAMES))
    assert (list(Book(tmp_path, sums(), None).numbers(2)), again.status) == ([1], 0)
    # a server without the folder of the session would begin with sum 0 again
    for columns, rounds in (((), 2), (("a",), 2), ((), None)):
        with pytest.raises(ParameterError, match=str(tmp_path)):
            prepare(tmp_path, rounds, None, columns)
    again.keep(1, again.begin(), result(*NAMES[1:]))
    assert again.status == 3
    assert [one.number for one in Chain.read(tmp_path).records] == [0, 0, 1]
    assert invoke("verify", tmp_path).exit_code == 0


def test_one_far_record_is_one_fault(folder):
    shutil.copy(folder / name_of(3), folder / name_of(99_999))
    assert len(Chain.read(folder).faults) == 2


def test_record_of_another_format_is_named(folder):
    chain = Chain.read(folder)
    chain.append(structs.replace(chain.records[-1], format=2, record=4))
    assert "format 2" in Chain.read(folder).faults[name_of(4)]


def test_second_server_with_one_folder_overwrites_nothing(tmp_path):
    first, second = (Book(tmp_path, sums(), None) for _ in range(2))
    first.keep(0, first.begin(), result(*NAMES))
    with pytest.raises(JournalError, match=name_of(0)):
        second.keep(0, second.begin(), result(*NAMES[1:]))
    error = TooFewSurvivors("too few", phase="gather", survivors=2, needed=3)
    with pytest.raises(JournalError, match=name_of(0)):
        second.keep_failure(0, second.begin(), error)
    assert invoke("verify", tmp_path).exit_code == 0


def test_sum_with_a_client_that_left_the_registry_is_not_full(tmp_path):
    keys = {n: make_identity(i).public for i, n in enumerate((*NAMES[:3], "fulda"))}
    book = Book(tmp_path, replace(sums(), registry=Registry(keys)), None)
    book.keep(0, book.begin(), result(*NAMES))
    (record,) = Chain.read(tmp_path).records
    assert (record.outcome, len(record.missing)) == ("partial", 1)


def place(attempt: int) -> Place:
    return Place("counts", 0, attempt)


def closed(attempt: int, phase: str, *names: str) -> PhaseClosed:
    missing = tuple(IDS[name] for name in names)
    counts = {"seconds": 1.0, "answered": 1, "bytes_down": 1, "bytes_up": 1}
    return PhaseClosed(place(attempt), phase, missing=missing, **counts)


def failed(attempt: int, *, final: bool = False) -> RoundFailed:
    return RoundFailed(place(attempt), "TooFewSurvivors", "report", "", (), final)


def begun(attempt: int, *, resumed: bool = False) -> RoundBegun:
    return RoundBegun(place(attempt), "one-shot", 4, 3, 5, resumed)


BERN, CORK, DELFT, ESSEN = (IDS[name] for name in NAMES)
REASONS = {
    "never came": ([never_came("essen"), begun(0)], "essen: never came"),
    "came at last": (
        [never_came("essen"), begun(0), closed(0, "report", "essen")],
        "in report",
    ),
    "declined": (
        [begun(0), MemberDeclined(place(0), "report", ESSEN), closed(0, "report", "essen")],
        "essen: declined in report",
    ),
    "rejected": (
        [
            begun(0),
            MessageRejected(place(0), "report", ESSEN, 9, "length"),
            failed(0),
            begun(1),
        ],
        "essen: rejected in report, check length",
    ),
    "late": (
        [
            begun(0),
            closed(0, "report", "essen"),
            MessageRejected(place(0), "report", ESSEN, 9, "late"),
        ],
        "essen: dropped out in report, check late",
    ),
    "wrong shares": (
        [
            begun(0),
            MessageAccepted(place(0), "share_keys", ESSEN, 9, 1.0),
            RoundFailed(place(0), "RemoteProtocolError", "unmasking", "sum", (ESSEN,), False),
            begun(1),
        ],
        "essen: rejected in unmasking, check sum",
    ),
    "helpers reject": (
        [begun(0), MessageAccepted(place(0), "report", ESSEN, 9, 1.0), closed(0, "report")],
        f"essen: rejected by the helpers; {OTHER_KEY}",
    ),
    "helper away": ([never_came("essen"), begun(0), closed(0, "open", "essen")], "never came"),
    "reported at last": (
        [
            begun(0),
            closed(0, "report", "essen"),
            failed(0),
            begun(1),
            MessageAccepted(place(1), "report", ESSEN, 9, 1.0),
        ],
        f"essen: rejected by the helpers; {OTHER_KEY}",
    ),
    "earlier attempt": ([begun(1)], "essen: not known"),
    "earlier process": ([begun(1, resumed=True)], "essen: not known"),
}


@pytest.mark.parametrize(("events", "end"), REASONS.values(), ids=list(REASONS))
def test_reason_of_a_missing_client_is_that_of_the_events(events, end):
    call_clients(NAMES)
    account = Account(called)
    for event in events:
        account(event)
    (missing,) = account.missing(IDS.values(), {BERN, CORK, DELFT})
    assert str(missing).endswith(end)


def test_convicted_client_of_an_earlier_sum_is_missing_for_that_reason():
    call_clients(NAMES)
    account = Account(called, {ESSEN})
    account(begun(0))
    for survivors in ({BERN, CORK, DELFT}, ()):
        found = {one.why for one in account.missing([ESSEN], survivors)}
        assert found == {"convicted"}


def test_kill_between_sum_and_record_is_mended(tmp_path):
    call_clients(NAMES)
    out = tmp_path / "sums"
    out.mkdir()

    def train(message: bytes, params: RoundParams) -> np.ndarray:
        return np.full(5, 0.5)

    async def run(*, killed: bool) -> None:
        async with Session(NAMES, folder=tmp_path / "state", name="counts") as session:
            book = Book(out, sums(), None)
            session.watch(book.note)
            links = {} if not killed else {n: LocalLink(session, n) for n in NAMES}
            joined = [asyncio.create_task(take_part(links[n], n, train)) for n in links]
            (number,) = book.numbers(1)
            begun = book.begin()
            result = await sums().next(session, number, None)
            if not killed:
                book.keep(number, begun, result)
        await asyncio.gather(*joined)

    asyncio.run(run(killed=True))
    assert list(out.iterdir()) == []
    asyncio.run(run(killed=False))
    (record,) = Chain.read(out).records
    assert (record.clients, record.resumed, record.begun) == (NAMES, True, None)
    assert np.load(out / "sum-0.npy").tolist() == [2.0] * 5
    assert invoke("verify", out).exit_code == 0


def test_times_of_an_earlier_process_are_not_invented(tmp_path):
    call_clients(NAMES)
    book = Book(tmp_path, sums(), None)
    for number, events in enumerate(
        (
            [RoundFinished(Place("counts", 0, 0), 0.0, 4, 0, stored=True)],
            [begun(0, resumed=True), RoundFinished(place(0), 1.0, 4, 0)],
            [begun(1), RoundFinished(place(1), 1.0, 4, 0)],
            [begun(0), RoundFinished(place(0), 1.0, 4, 0)],
        )
    ):
        start = book.begin()
        for event in events:
            book.note(event)
        book.keep(number, start, result(*NAMES))
    stored, again, resumed, own = Chain.read(tmp_path).records
    assert (stored.begun, stored.ended, stored.attempts) == (None, None, ())
    for one in (again, resumed):
        assert (one.begun, one.resumed) == (None, True)
    assert [one.attempt for one in resumed.attempts] == [1]
    assert None not in (resumed.ended, own.begun, own.ended)
    assert not own.resumed
