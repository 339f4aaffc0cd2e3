"""Driver of a run: from the keys to the exact sum, with the costs of each process."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psycopg

from benches.collection.kills import Killer, Kills
from benches.collection.load import Load
from benches.collection.parties import Parties
from benches.collection.programs import Program, library_memory
from benches.one_shot_parties import Sum
from benches.one_shot_scale import check
from secagg.collect import State, batches, open_database, sessions
from secagg.collect.close import result


@dataclass(frozen=True, kw_only=True)
class Row:
    """Figures of a run.

    Attributes
    ----------
    load : Load
    postgres : str
        Version.
    report_bytes, disk, wal : int
        Bytes of a report; of the database's folder when all reports were there.
    taking, summing : float
        Seconds from the first report to the last acknowledgement; from the start of ``close``
        to its end.
    cpu : dict of float
        Processor time of all processes of a kind, in seconds, without their start.
    memory : dict of int
        Largest peak memory of a process of a kind beyond the library, in bytes.
    counts : dict of int
        Answers to the generators.
    kills : dict of (int, int)
        Kills of each kind, and kills inside a transaction, a lease or a request.
    failed_closes : int
        Ends of ``close`` by an error, after which the command was run again.
    """

    load: Load
    postgres: str
    report_bytes: int
    disk: int
    taking: float
    summing: float
    cpu: dict[str, float]
    memory: dict[str, int]
    counts: dict[str, int]
    kills: dict[str, tuple[int, int]]
    failed_closes: int


def run(load: Load, folder: Path, cache: Path | None = None) -> Row:
    """Run a collection and check the sum; return the figures."""
    base = library_memory()
    with Parties(load, folder, cache) as parties:
        parties.start()
        show("everybody is ready")
        kills, cpu = Kills(parties, load.kills), dict[str, float]()
        version, began, at_first = (
            parties.database.version,
            time.monotonic(),
            _database(parties),
        )
        with Killer(kills.take if load.kills else None):
            for one in parties.generators:
                assert one.wait() == 0, one.tail()
        taking, disk = time.monotonic() - began, parties.database.disk()
        if not load.kills:
            with parties.database.connect() as connection:
                # what a small run would leave to the time after it
                connection.execute("CHECKPOINT")
        show(f"{load.clients} reports were acknowledged after {taking:.1f} s")
        cpu["serve"] = _total(parties.serves)
        began, failed = time.monotonic(), 0
        parties.closer.start()
        with Killer(kills.close if load.kills else None):
            _await_closing(parties)
            with suppress(FileNotFoundError):
                parties.closer.mark()
            ended, close_seconds = Event(), [0.0]
            watching = Thread(target=_watch, args=(parties.closer, ended, close_seconds))
            watching.start()
            while parties.closer.wait():
                failed += 1
                parties.closer.start()
            ended.set()
            watching.join()
        summing = time.monotonic() - began
        show(f"the sum was there after {summing:.1f} s")
        everybody = {
            "serve": parties.serves,
            "work": parties.works,
            "close": [parties.closer],
            "helper": parties.helpers,
            "generator": parties.generators,
        }
        for programs in everybody.values():
            for one in programs:
                one.measure()
        cpu["work"] = _total(parties.works)
        cpu["close"] = close_seconds[0]
        cpu["helper"] = _total(parties.helpers) / len(parties.helpers)
        cpu["postgres"] = _database(parties) - at_first
        counts, cpu["generator"] = Counter[str](), 0.0
        for path in sorted(folder.glob("sent-*.json")):
            sent = json.loads(path.read_text(encoding="utf-8"))
            cpu["generator"] += sent.pop("seconds")
            counts.update(sent)
        report_bytes = _check(parties)
        memory = {
            kind: max(0, max(one.memory for one in programs) - base)
            for kind, programs in everybody.items()
        }
    return Row(
        load=load,
        postgres=version,
        report_bytes=report_bytes,
        disk=disk,
        taking=taking,
        summing=summing,
        cpu=cpu,
        memory=memory,
        counts=dict(counts),
        kills=kills.counted,
        failed_closes=max(0, failed - kills.counted.get("close", (0, 0))[0]),
    )


def show(line: str) -> None:
    """Print progress to standard error."""
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


def _database(parties: Parties) -> float:
    return parties.database.seconds()


def _total(programs: list[Program]) -> float:
    return sum(one.seconds() for one in programs)


def _await_closing(parties: Parties) -> None:
    """Wait until the batch is not open any more."""
    while parties.closer.is_running:
        with suppress(psycopg.Error), parties.database.connect() as connection:
            while parties.closer.is_running:
                rows = connection.execute("SELECT state FROM secagg_batches").fetchall()
                if rows != [("open",)]:
                    return
                time.sleep(0.02)


def _watch(program: Program, ended: Event, seconds: list[float]) -> None:
    """Note the processor time of a process until its end, a hundredth of a second behind."""
    while not ended.wait(0.01):
        with suppress(FileNotFoundError, ProcessLookupError, IndexError):
            seconds[0] = program.seconds()


def _check(parties: Parties) -> int:
    """Raise an error unless sum, list, rows and journals are right; return a report's bytes."""
    database = open_database(parties.database.url)
    try:
        with database.transaction() as tx:
            (batch,) = batches.in_states(tx, *State)
            known = tx.number("SELECT count(*) FROM secagg_clients")
        found = result(database, batch.number)
        with database.transaction() as tx:
            session = sessions.get(tx, batch.session)
    finally:
        database.close()
    assert found is not None
    assert batch.state == State.DONE, batch
    assert known == batch.reports == parties.load.clients, (known, batch)
    parts = []
    for at in range(parties.load.generators):
        with np.load(parties.folder / f"sent-{at}.npz") as sent:
            parts.append(Sum(sent["integers"], sent["ids"]))
    survivors = np.array(found.survivors, np.uint64)
    check(Sum(found.integers, survivors), parts)
    (path,) = parties.out.glob("sum-*.npy")
    assert np.array_equal(np.load(path), found.sum)
    for program, journal in zip(parties.helpers, parties.journals, strict=True):
        program.kill()
        with closing(sqlite3.connect(journal)) as connection:
            lists = connection.execute("SELECT ids FROM lists").fetchall()
        assert lists == [(survivors.astype("<u8").tobytes(),)], f"{len(lists)} lists"
    return session.params.layout.report
