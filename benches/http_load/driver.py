"""Driver of a run: it starts all processes, kills the server, and checks the sums."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benches.http_load.load import HelperKeys, Load
from secagg.oneshot import HelperJournal

_ROOT = Path(__file__).parents[2]
_LINE = 1 << 20
HELPERS = {"round": 0, "semi-honest": 3, "active": 4}
"""Number of helpers of each kind of sum."""


@dataclass
class Figures:
    """Figures of a run, over all lives of the server.

    Attributes
    ----------
    phases, answers : dict of list of float
        Seconds by phase: until it closed, and until each answer was accepted.
    memory : list of dict
        Memory of the server after each round, with the number of its life.
    kills : list of tuple
        Life, round, step and answers at each kill.
    cpu : dict of float
        Processor time of each life of the server, in seconds.
    events, members : Counter
        Counts of the server and of the members.
    began, ended : float
    """

    phases: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    memory: list[dict[str, float]] = field(default_factory=list)
    kills: list[tuple[int, int, str, int]] = field(default_factory=list)
    cpu: dict[int, float] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    members: Counter[str] = field(default_factory=Counter)
    survivors: list[int] = field(default_factory=list)
    load_average: list[float] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0


class Server:
    """Server program, run again whenever it was killed."""

    def __init__(self, load: Load, folder: Path, dying: Process | None) -> None:
        self.figures = Figures()
        self._load, self._folder, self._dying = load, folder, dying
        self._place, self._answers = (-1, 0), 0

    async def run(self) -> None:
        """Run the program until all rounds are finished."""
        for life in range(self._load.kills + 1):
            process = await start("server", str(self._folder))
            try:
                while line := await process.stdout.readline():  # type: ignore[union-attr]
                    kind, event = json.loads(line)
                    self._note(life, kind, event)
                    if life < self._load.kills and self._is_due(life):
                        kill(process)
                        number, step = self._place
                        step_name = self._load.steps[step]
                        self.figures.kills.append((life, number, step_name, self._answers))
                        break
                else:
                    await process.wait()
            finally:
                await end(process)
            if len(self.figures.kills) == life:
                break
        assert process.returncode == 0, "the server program failed"

    def _is_due(self, life: int) -> bool:
        number, step, answers = self._load.kill(life)
        if self._place == (number, step):
            return self._answers >= answers
        return self._place > (number, step)

    def _note(self, life: int, kind: str, event: dict[str, Any]) -> None:
        figures = self.figures
        match kind:
            case "Endorsed" if self._dying is not None and self._dying.returncode is None:
                kill(self._dying)
            case "PhaseOpened":
                figures.began = figures.began or time.monotonic()
                self._place = event["place"]["number"], self._load.steps.index(event["phase"])
                self._answers = 0
            case "MessageAccepted":
                self._answers += 1
                figures.answers[event["phase"]].append(event["seconds"])
                figures.events["bytes up"] += event["size"]
            case "MessageRejected":
                figures.events[f"rejected {event['check']}"] += 1
            case "PhaseClosed":
                figures.phases[event["phase"]].append(event["seconds"])
                figures.events["bytes down"] += event["bytes_down"]
            case "HelperFailed":
                name = f"helper {event['helper']} failed, {event['phase']}, {event['check']}"
                figures.events[name] += 1
            case "RoundFailed":
                figures.events[f"failed {event['error']} {event['check']}"] += 1
            case "RoundFinished" if not event["stored"]:
                figures.survivors.append(event["survivors"])
                figures.load_average.append(os.getloadavg()[0])
                show(f"round {event['place']['number']}: {event['survivors']} survivors")
            case "Sum":
                figures.memory.append(event | {"life": life})
                figures.cpu[life] = event["cpu"]
                figures.ended = time.monotonic()


async def drive(load: Load, folder: Path) -> Figures:
    """Run all processes and return the figures.

    AssertionError is raised if a sum is not exact, or if two copies of a post had different
    responses; ExceptionGroup if a process failed.
    """
    load = make_helpers(load, folder)
    load.write(folder)
    where = str(folder)
    programs = [["members", where, str(i)] for i in range(load.processes)]
    programs += [["helper", where, str(j)] for j in range(1, len(load.helpers) + 1)]
    if load.kind == "active":
        programs[-1].append("lie")
    processes = await asyncio.gather(*(start(*program) for program in programs))
    try:
        for one in processes:
            assert await one.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
        dying = processes[-1] if load.kind == "semi-honest" else None
        server = Server(load, folder, dying)
        async with asyncio.TaskGroup() as group:  # without its members a server waits for ever
            counts = [group.create_task(result(one)) for one in processes[: load.processes]]
            group.create_task(server.run())
        assert dying is None or await dying.wait() < 0, "the last helper did not die"
        for count in counts:
            server.figures.members.update(count.result())
    finally:
        await asyncio.gather(*map(end, processes))
    for number in sorted({int(one["number"]) for one in server.figures.memory}):
        check_sum(load, folder, number)
    check_statuses(server.figures.members)
    return server.figures


def make_helpers(load: Load, folder: Path) -> Load:
    """Return the settings with the keys of new helpers, and with free ports."""
    helpers = []
    for number in range(1, HELPERS[load.kind] + 1):
        with HelperJournal.create(folder / f"helper-{number}") as journal:
            box, identity = (key.hex() for key in journal.public)
        helpers.append(HelperKeys(box=box, identity=identity, port=free_port()))
    return replace(load, port=free_port(), helpers=tuple(helpers))


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def check_sum(load: Load, folder: Path, number: int) -> None:
    """Raise AssertionError unless the sum of a round is that of its survivors, bit by bit."""
    with np.load(folder / f"sum-{number}.npz") as found:
        integers, survivors = found["integers"], found["survivors"].tolist()
    assert len(set(survivors)) == len(survivors) >= load.min_survivors
    assert np.array_equal(integers, load.sum(number, survivors)), f"sum {number} is wrong"


def check_statuses(counts: Counter[str]) -> None:
    """Raise AssertionError if the server failed, or took a repeated post as another one."""
    for name in counts:
        assert not name.startswith(("unequal", "status 500")), f"{counts[name]} times {name}"


def show(line: str) -> None:
    """Print progress to standard error."""
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


async def start(program: str, *arguments: str) -> Process:
    """Start a program of this package."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"benches.http_load.{program}",
        *arguments,
        stdout=PIPE,
        limit=_LINE,
        cwd=_ROOT,
    )


async def result(process: Process) -> dict[str, int]:
    """Return what a process of members counted until its end."""
    out, _ = await process.communicate()
    assert process.returncode == 0, "a process of members failed"
    found: dict[str, int] = json.loads(out)
    return found


async def end(process: Process) -> None:
    """Kill a process that still runs, and wait for its end."""
    if process.returncode is None:
        kill(process)
    await process.wait()


def kill(process: Process) -> None:
    """Kill a process, without asking first whether it has ended, as `Process.kill` does.

    asyncio would then not learn how it ended.
    """
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
