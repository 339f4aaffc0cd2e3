"""One-shot sums of up to a million clients: ``python -m benches.scale one-shot``.

Aggregator, two helpers of which both open, and two generators of clients run in a process each.
Every sum, and the list of its clients, is compared with the generators' plain integers.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benches.one_shot_parties import (
    ENCODING,
    GENERATORS,
    HELPERS,
    Aggregator,
    Generator,
    Opener,
    Sum,
)
from secagg.bench.roles import Role
from secagg.bench.ss import Progress
from secagg.errors import SecAggError
from secagg.kit.table import Column, Table, duration, micro, volume
from secagg.oneshot import OneShotParams
from secagg.protocol.shape import Security

NAME = "one-shot"
LENGTH = 1000


@dataclass(frozen=True)
class Case:
    """Size and variant of a large one-shot sum."""

    clients: int
    security: Security
    length: int = LENGTH


@dataclass(frozen=True)
class Row:
    """Costs of a large one-shot sum: seconds of processor time, and bytes.

    Processor time is that of all clients together; helpers and generators of one of the two.
    `elapsed` is wall-clock time. Memory is the peak of a process beyond the library itself.
    """

    case: Case
    survivors: int
    elapsed: float
    client_seconds: float
    generator_seconds: float  # vectors, keys and the plain sum, without `client_seconds`
    server_seconds: float
    helper_seconds: float
    server_memory: int
    helper_memory: int
    generator_memory: int
    report_bytes: int


def cases() -> Iterator[Case]:
    """Yield the sums of the table, small ones first."""
    for clients in (1_000, 10_000, 100_000, 1_000_000):
        yield Case(clients, "semi-honest")
        yield Case(clients, "active")


def run(case: Case, show: Progress) -> Row:
    """Run and check a sum; return its costs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # left after the parties have ended, which ends the threads that wait for them
        pool = stack.enter_context(ThreadPoolExecutor(GENERATORS + HELPERS + 1))
        openers = [
            stack.enter_context(Role(f"helper {j}", partial(Opener, folder, j)))
            for j in range(1, HELPERS + 1)
        ]
        params = OneShotParams(
            n_clients=case.clients,
            length=case.length,
            encoding=ENCODING,
            helpers=tuple(one.do(Opener.begin).result for one in openers),
            threshold=HELPERS,
            min_clients=-(-7 * case.clients // 10),
            security=case.security,
            suite="x25519",
            session=b"benches.scale",
        )
        server = stack.enter_context(Role("aggregator", partial(Aggregator, folder, params)))
        generators = [
            stack.enter_context(Role(f"generator {g}", partial(Generator, folder, params, g)))
            for g in range(GENERATORS)
        ]
        for one in openers:
            one.do(Opener.connect)
        start = time.perf_counter()
        enrolled = list(pool.map(lambda one: one.do(Generator.enrol), generators))
        keys = [one.result for one in enrolled]
        loading = [pool.submit(one.do, Opener.load, params, keys) for one in openers]
        server_seconds = server.do(Aggregator.begin, keys).seconds
        helper_seconds = [one.result().seconds for one in loading]

        def add() -> tuple[Sum, float]:
            done, seconds = 0, 0.0
            while True:
                leaf = server.do(Aggregator.add_leaf)
                done, seconds = done + leaf.result, seconds + leaf.seconds
                show("report", done, case.clients)
                if done == case.clients:
                    found = server.do(Aggregator.finish)
                    return found.result, seconds + found.seconds

        serving = [pool.submit(one.do, Opener.serve) for one in openers]
        sending = [pool.submit(one.do, Generator.send) for one in generators]
        adding = pool.submit(add)
        everybody: list[Future[Any]] = [*serving, *sending, adding]
        for ended in wait(everybody, return_when=FIRST_EXCEPTION).done:
            ended.result()
        elapsed = time.perf_counter() - start
        found, seconds = adding.result()
        sent = [one.result() for one in sending]
        check(found, [one.result[0] for one in sent])
        clients = sum(one.result[1] for one in sent)
        everything = sum(one.seconds for one in (*enrolled, *sent))
        served = [
            before + one.result().seconds
            for before, one in zip(helper_seconds, serving, strict=True)
        ]
        return Row(
            case=case,
            survivors=found.ids.size,
            elapsed=elapsed,
            client_seconds=clients,
            generator_seconds=everything - clients,
            server_seconds=server_seconds + seconds,
            helper_seconds=max(served),
            server_memory=server.memory,
            helper_memory=max(one.memory for one in openers),
            generator_memory=max(one.memory for one in generators),
            report_bytes=params.layout.report,
        )


def check(found: Sum, parts: Iterable[Sum]) -> None:
    """Raise SecAggError unless a sum and its clients are those of all `parts` together."""
    parts = list(parts)
    if not np.array_equal(found.integers, sum(part.integers for part in parts)):
        raise SecAggError("the sum is not exact: please report this, with the command")
    if not np.array_equal(found.ids, np.sort(np.concatenate([part.ids for part in parts]))):
        raise SecAggError("the sum has other clients: please report this, with the command")


COLUMNS = (
    *map(Column, ("security", "n", "in the sum")),
    Column("wall clock", duration),
    *(Column(head, micro) for head in ("a client", "aggregator", "a helper", "generation")),
    *(Column(f"memory: {head}", volume) for head in ("aggregator", "a helper", "a generator")),
)


def table(rows: Iterable[Row]) -> Table:
    """Return the table of docs/scale.md, with times per client but for the wall clock."""
    lines = []
    for row in rows:
        n = row.case.clients
        times = row.client_seconds, row.server_seconds, row.helper_seconds
        lines.append(
            (
                *(row.case.security, n, row.survivors, row.elapsed),
                *(seconds / n for seconds in (*times, row.generator_seconds)),
                *(row.server_memory, row.helper_memory, row.generator_memory),
            )
        )
    return Table(columns=COLUMNS, rows=lines)
