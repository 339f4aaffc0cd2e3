"""A helper killed before any of its system calls: a list that was answered is never lost.

Files change at system calls only. So kills before each of these, and the runs that end, leave
every state that a journal can be found in. strace kills; without it the tests are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from effort import pure_repeats
from helper_process import ROOT, call
from oneshot_parties import LENIENT, Parties, registry_for, rejects
from secagg import RemoteProtocolError
from secagg.oneshot import Helper, HelperJournal, messages
from secagg.oneshot.messages import Request

CHANGES = (
    "write,pwrite64,fsync,fdatasync,ftruncate,fallocate,link,linkat,unlink,unlinkat,rename,"
    "renameat,renameat2,flock,fcntl"
)
STRACE = ("strace", "-f", "-qq", "-y")


def strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    run = subprocess.run([*STRACE, "-o", os.devnull, "true"], check=False, capture_output=True)  # noqa: S603
    return run.returncode == 0


pytestmark = [
    pure_repeats,
    pytest.mark.skipif(not strace_works(), reason="strace is missing or forbidden"),
]


class Point(NamedTuple):
    """System call by its name, and which one of this name it is, from 1 on."""

    name: str
    count: int

    def killing(self) -> tuple[str, ...]:
        """Return the command that runs a program and kills it before this call."""
        fault = f"inject={self.name}:signal=KILL:when={self.count}"
        return (*STRACE, "-o", os.devnull, "-e", f"trace={self.name}", "-e", fault)


def traced(trace: Path) -> tuple[str, ...]:
    return (*STRACE, "-o", str(trace), "-e", f"trace=openat,{CHANGES}")


def points(trace: Path, first: str) -> list[tuple[Point, str]]:
    """Return the calls that can change a file, with their lines, from that on a path on."""
    found: list[tuple[Point, str]] = []
    counts: Counter[str] = Counter()
    begun = False
    for line in trace.read_text().splitlines():
        match = re.match(r"\d+ +(\w+)\(", line)
        if match is None:
            continue
        counts[match[1]] += 1
        begun = begun or first in line
        if begun and match[1] != "openat":  # a file that it creates is empty until the next
            found.append((Point(match[1], counts[match[1]]), line))
    return found


class Scene:
    """Closed helper whose journal has one list, and requests for two overlapping lists."""

    def __init__(self, folder: Path) -> None:
        self.made = Parties(folder, 2, 2, n_clients=20)
        self.chunk = next(iter(self.made.accumulator(range(8)).boxes(1)))
        (folder / "params").write_bytes(self.made.params.to_bytes())
        (folder / "chunk").write_bytes(self.chunk)
        helper = self.made.helpers[0]
        assert helper.check(self.chunk) == ()
        self.old, self.old_way = self.request([5, 6, 7], 3), self.request([4, 5, 6], 4)
        helper.reserve(self.old)
        self.made.close()
        self.folder, self.journal = folder, self.made.journals[0].path
        self.pristine = self.journal.read_bytes()
        self.wanted, self.way = self.request([0, 1, 2, 3], 0), self.request([1, 2, 3, 4], 1)

    def request(self, ids: Iterable[int], batch: int) -> bytes:
        asked = Request(batch, np.array(list(ids), np.uint64), {})
        return messages.write_request(asked, self.made.params)

    def renew(self) -> None:
        """Put the journal back as it was before the request."""
        for file in self.journal.parent.glob(f"{self.journal.name}*"):
            file.unlink()
        self.journal.write_bytes(self.pristine)
        self.journal.chmod(0o600)

    def run(self, *under: str) -> bytes | None:
        return call(self.folder, self.journal, self.wanted, under=under)

    def answered(self) -> bytes:
        """Return what reached the aggregator before the process ended."""
        there = self.folder / "answer"
        return there.read_bytes() if there.exists() else b""

    def check(self, answer: bytes) -> bool:
        """Validate what is left; return True if the request's list was in the journal.

        One of two lists with a common client opens, and never the other. It is the one that
        was answered, if one was.
        """
        with HelperJournal.open(self.journal) as journal:
            params = self.made.params
            helper = Helper(params, journal, registry=registry_for(params), policy=LENIENT)
            assert helper.check(self.chunk) == ()
            rejects("spent", lambda: helper.open(self.old_way))
            helper.open(self.old)
            try:
                helper.open(self.way)
            except RemoteProtocolError as error:
                assert error.check == "spent"
                assert helper.open(self.wanted) == answer
                return True
            assert not self.answered()
            rejects("spent", lambda: helper.open(self.wanted))
            return False


@pytest.mark.slow
def test_killed_before_every_system_call_of_a_reservation(ram_path: Path) -> None:
    scene = Scene(ram_path)
    answer = scene.run(*traced(ram_path / "trace"))
    assert answer
    kept = []
    for point, line in points(ram_path / "trace", str(scene.journal)):
        scene.renew()
        assert scene.run(*point.killing()) is None, line
        kept.append(scene.check(answer))
    assert kept == sorted(kept)  # once it is on the disk, it stays
    assert set(kept) == {False, True}


@pytest.mark.large
def test_list_is_synced_before_its_answer_leaves(ram_path: Path) -> None:
    """A loss of power is no kill: what was not synced can be lost, in any order."""
    scene = Scene(ram_path)
    assert scene.run(*traced(ram_path / "trace"))
    dirty: set[str] = set()
    synced = set()
    for point, line in points(ram_path / "trace", str(scene.journal)):
        file = re.search(r"<([^>]*)>", line)
        where = file[1] if file else ""
        if point.name in ("write", "pwrite64") and where.startswith(str(scene.journal)):
            dirty.add(where)
        elif point.name in ("fsync", "fdatasync"):
            dirty.discard(where)
            synced.add(where)
        elif point.name == "write" and where == str(ram_path / "answer"):
            assert not dirty
            assert {str(scene.journal), f"{scene.journal}-wal"} <= synced
            return
    pytest.fail("no answer was written")


CREATE = (
    "import sys, os; from secagg.oneshot import HelperJournal\n"
    "with HelperJournal.create(sys.argv[1], 'x25519') as made:\n"
    "    os.write(1, made.public[0])"
)


@pytest.mark.slow
def test_killed_before_every_system_call_of_a_creation(ram_path: Path) -> None:
    """Keys that were printed are in a journal; a journal that is there is whole."""
    folder = ram_path / "new"

    def create(*under: str) -> tuple[int, bytes]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        done = subprocess.run(  # noqa: S603
            [*under, sys.executable, "-B", "-c", CREATE, str(folder / "helper")],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout

    assert create(*traced(ram_path / "trace"))[0] == 0
    states = []
    for point, line in points(ram_path / "trace", str(folder)):
        code, printed = create(*point.killing())
        assert code == -signal.SIGKILL, line
        states.append((folder / "helper").exists())
        if states[-1]:
            with HelperJournal.open(folder / "helper") as journal:
                assert printed in (b"", journal.public[0])
        else:
            assert not printed
            HelperJournal.create(folder / "helper", "x25519").close()
    assert states == sorted(states)
    assert set(states) == {False, True}
