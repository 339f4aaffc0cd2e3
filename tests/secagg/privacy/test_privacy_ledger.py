"""Ledger of a client: durable before any message, whole, and shared by processes."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from threading import Thread

import msgspec
import pytest

from forked import in_fork
from secagg import BudgetSpent, JournalError, ParameterError, _files
from secagg.privacy import Budget, Loss, PrivacyLedger, plan

pytest.importorskip("dp_accounting")
pytestmark = pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="no lock of folders")

BUDGET = Budget(2, 1e-6)
# μ² = 1 / 40: the budget, 1 / 2.23², has room for 8 sums
LOSS = Loss.of_shares(Fraction(10_000), 100, 1000, Fraction(25_000))
SUMS = 8


@pytest.fixture
def path(tmp_path):
    PrivacyLedger(tmp_path / "privacy.ledger", BUDGET).spend(LOSS)
    return tmp_path / "privacy.ledger"


def spend_all(ledger: PrivacyLedger) -> int:
    """Return the number of sums until the budget ends."""
    for done in range(99):
        try:
            ledger.spend(LOSS)
        except BudgetSpent:
            return done
    return 99


@pytest.mark.parametrize("name", [None, "privacy.ledger"])
def test_budget_ends_and_nothing_is_spent_after(tmp_path, name):
    ledger = PrivacyLedger(name and tmp_path / name, BUDGET)
    for _ in range(SUMS):
        assert ledger.allows(LOSS)
        ledger.spend(LOSS)
    assert not ledger.allows(LOSS)
    with pytest.raises(BudgetSpent):
        ledger.spend(LOSS)
    spent = ledger.spent
    assert (ledger.sums, spent.squares) == (SUMS, LOSS.squares * SUMS)
    assert spent.law.squares == pytest.approx(LOSS.law.squares * SUMS, rel=1e-12, abs=0)
    assert spent.failure == pytest.approx(LOSS.failure * SUMS, rel=1e-12, abs=0)
    # a smaller sum still fits, as in a series whose noise grows
    ledger.spend(Loss.of_shares(Fraction(10_000), 100, 1000, Fraction(5)))
    assert 1.8 < ledger.spent.epsilon(BUDGET.delta) <= BUDGET.epsilon


def test_check30_server_that_lies_about_parameters_ends_the_budget_earlier(path):
    """Each sum costs what its own parameters say: other sessions, less noise, or no noise."""
    announced = plan(9, 20, norm=1, epsilon=2, delta=1e-6, rounds=20, colluders=2)
    honest = announced.params(session=b"1", security="active")
    ledger = PrivacyLedger(path.with_name("liar"), BUDGET)
    exact = replace(honest, noise=None)
    done = []
    for session in range(6):
        # the same name twice; then σ falls, as if the plan were for fewer sums
        for lie in (1, 1, 2, 4):
            weaker = replace(announced.noise, sigma=announced.noise.sigma / lie)
            params = replace(honest, session=b"%d" % session, noise=weaker)
            if ledger.allows(params):
                ledger.spend(params)
                done.append(params)
                continue
            for use in (ledger.check, ledger.spend):
                with pytest.raises(BudgetSpent):
                    use(params)
        for use in (ledger.check, ledger.spend):
            with pytest.raises(BudgetSpent):
                use(exact)
    assert ledger.sums == len(done)
    assert ledger.spent.squares == Loss.of(*done).squares
    assert 1.9 < ledger.spent.epsilon(BUDGET.delta) <= BUDGET.epsilon
    # 1 + 1 + 4 + 16 parts of 20 in the first session alone: the last lie never had room
    assert 10 < len(done) < 20


def test_spent_stays_spent_over_restarts(path):
    for sums in range(2, SUMS + 1):
        PrivacyLedger(path, BUDGET).spend(LOSS)
        assert PrivacyLedger(path, BUDGET).sums == sums
    with pytest.raises(BudgetSpent):
        PrivacyLedger(path, BUDGET).spend(LOSS)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_sum_is_on_the_disk_before_the_message(path):
    """A client that dies after `spend` has spent; the child ends without another line."""
    in_fork(os.fork, lambda: PrivacyLedger(path, BUDGET).spend(LOSS))
    assert PrivacyLedger(path, BUDGET).sums == 2


def test_processes_and_threads_spend_one_budget(path):
    """Two processes and two threads take the 7 sums that are left, and no more."""
    ledger = PrivacyLedger(path, BUDGET)
    reader, writer = os.pipe()
    children = []
    for _ in range(2):
        children.append(os.fork())
        if children[-1] == 0:
            try:
                os.write(writer, bytes([spend_all(PrivacyLedger(path, BUDGET))]))
            finally:
                os._exit(0)
    os.close(writer)
    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(spend_all, [ledger] * 2))
    with os.fdopen(reader, "rb") as pipe:
        counts = pipe.read()
    for child in children:
        os.waitpid(child, 0)
    assert len(counts) == 2
    assert done + sum(counts) == SUMS - 1
    assert ledger.sums == SUMS


def test_thread_waits_for_a_thread_without_a_file():
    """A thread that spends while another compares with the budget is not forgotten."""
    others = []

    class Slow(Budget):
        def allows(self, loss: Loss) -> bool:
            if not others:
                others.append(Thread(target=ledger.spend, args=[LOSS]))
                others[0].start()
                others[0].join(0.05)
            return super().allows(loss)

    ledger = PrivacyLedger(None, Slow(2, 1e-6))
    ledger.spend(LOSS)
    others[0].join()
    assert ledger.sums == 2


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_full_disk_spends_nothing_or_all(path, monkeypatch, step):
    ledger = PrivacyLedger(path, BUDGET)
    before = path.read_bytes()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(_files.os, step, full)
        with pytest.raises(JournalError):
            ledger.spend(LOSS)
    assert path.read_bytes() == before
    ledger.spend(LOSS)
    assert ledger.sums == 2


def test_file_left_by_a_crash_is_no_ledger(path):
    (path.parent / f"{path.name}.0123.part").write_bytes(b"half")
    assert PrivacyLedger(path, BUDGET).sums == 1


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_check30_torn_file(path, kept):
    ledger = PrivacyLedger(path, BUDGET)
    path.write_bytes(path.read_bytes()[:kept])
    for use in (lambda: PrivacyLedger(path, BUDGET), lambda: ledger.spend(LOSS)):
        with pytest.raises(JournalError):
            use()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content | {"sums": 0},
        lambda content: content | {"squares": 0},
        lambda content: content | {"squares": float(content["squares"])},
        lambda content: content | {"extra": 1},
        lambda content: content | {"kind": "secagg privacy ledger 2"},
        lambda content: dict(reversed(content.items())),
        lambda content: [content],
    ],
)
def test_altered_file(path, change):
    content = change(json.loads(path.read_bytes()))
    path.write_bytes(msgspec.json.encode(content) + b"\n")
    with pytest.raises(JournalError):
        PrivacyLedger(path, BUDGET)


def test_files_of_another_spelling(path):
    """The bytes are canonical: the same content with a space is another file."""
    text = path.read_text()
    assert text.count('"sums":1,') == 1
    path.write_text(text.replace('"sums":1,', '"sums": 1,'))
    with pytest.raises(JournalError):
        PrivacyLedger(path, BUDGET)


def test_file_of_a_later_release(path):
    """Even with a right checksum, another kind of file is not read."""
    content = json.loads(path.read_bytes()) | {"kind": "secagg privacy ledger 2", "check": ""}
    check = sha256(msgspec.json.encode(content)).hexdigest()
    path.write_bytes(msgspec.json.encode(content | {"check": check}) + b"\n")
    with pytest.raises(JournalError):
        PrivacyLedger(path, BUDGET)


def test_check30_copied_file(path):
    """A copy would spend the budget again: under another name, or in another folder."""
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    for copy in (path.with_name("copy.ledger"), elsewhere / path.name):
        shutil.copy(path, copy)
        with pytest.raises(JournalError):
            PrivacyLedger(copy, BUDGET)
    moved = path.parent.rename(path.parent.with_name("moved"))
    assert PrivacyLedger(moved / path.name, BUDGET).sums == 1


def test_deleted_file_is_not_begun_anew(path):
    ledger = PrivacyLedger(path, BUDGET)
    path.unlink()
    for use in (lambda: ledger.spend(LOSS), lambda: ledger.allows(LOSS), lambda: ledger.sums):
        with pytest.raises(JournalError):
            use()
    assert not path.exists()


def test_budget_of_the_file_stays(path):
    with pytest.raises(ParameterError):
        PrivacyLedger(path, Budget(3, 1e-6))


def test_unit_of_the_file_stays(path):
    with pytest.raises(ParameterError):
        PrivacyLedger(path, BUDGET, unit="record")
    records = PrivacyLedger(path.with_name("records.ledger"), BUDGET, unit="record")
    records.spend(LOSS)
    with pytest.raises(ParameterError):
        PrivacyLedger(path.with_name("records.ledger"), BUDGET)
    # the loss of parameters is a client's
    params = plan(9, 20, norm=1, epsilon=2, delta=1e-6, rounds=20, colluders=2).params()
    for use in (records.allows, records.check, records.spend):
        with pytest.raises(ParameterError):
            use(params)
    assert records.sums == 1
    with pytest.raises(ParameterError):
        PrivacyLedger(None, BUDGET, unit="site")


def test_check30_ledger_in_memory_is_not_doubled_by_a_fork():
    ledger = PrivacyLedger(None, BUDGET)
    for use in (lambda: ledger.spend(LOSS), lambda: ledger.allows(LOSS), lambda: ledger.sums):
        assert in_fork(os.fork, use) == "LocalProtocolError"
    ledger.spend(LOSS)
    assert ledger.sums == 1


def test_folder_that_is_missing(tmp_path):
    with pytest.raises(JournalError):
        PrivacyLedger(tmp_path / "none" / "privacy.ledger", BUDGET)


@pytest.mark.parametrize("arguments", [(3, BUDGET), ("x.ledger", 2), (None, (2, 1e-6))])
def test_arguments_of_a_ledger(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError):
        PrivacyLedger(*arguments)
    for call in (PrivacyLedger(None, BUDGET).spend, PrivacyLedger(None, BUDGET).allows):
        with pytest.raises(ParameterError):
            call(0.1)


def test_without_locks_of_folders(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_DIRECTORY")
    with pytest.raises(JournalError):
        PrivacyLedger(tmp_path / "privacy.ledger", BUDGET)
