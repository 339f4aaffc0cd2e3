"""Runs of the variants on one network of processes, in turn."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.flower_rounds.app.meter import RESULT
from benches.flower_rounds.app.work import mean
from benches.flower_rounds.variants import VARIANTS, write_app
from secagg.errors import SecAggError
from tests.support.flower_net import Network

HELPERS = 3
"""Number of helpers of `OneShot`, of which two open."""
TIMEOUT = 600.0
"""Seconds for an exchange, in every variant."""
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison.

    Attributes
    ----------
    lengths : tuple of int
        Numbers of elements of a model, d.
    nodes, runs, rounds : int
        Numbers of SuperNodes, of runs of each variant and length, and of rounds in a run.
    poll : float
        Seconds between two looks for replies of `SecAgg` and `OneShot`.
    """

    lengths: tuple[int, ...] = (100_000, 1_000_000)
    nodes: int = 8
    runs: int = 5
    rounds: int = 2
    poll: float = 0.5  # the default of `SecAgg` and `OneShot`

    @property
    def total(self) -> int:
        """Number of runs of all variants and lengths."""
        return self.runs * len(self.lengths) * len(VARIANTS)


@dataclass(frozen=True)
class Round:
    """Figures of one round.

    Attributes
    ----------
    variant : str
    length, run, number : int
        Elements of the model, number of the run from 0, and of the round from 1.
    seconds : float
        Wall-clock seconds, from one model to the next.
    exchanges : int
        Batches of messages to the nodes.
    down, up : float
        Bytes to a node, and from a node.
    processor : float
        Processor seconds of all processes of the network in the run, ÷ rounds.
    load : float
        Load average of one minute, at the end.
    error : float
        Largest error of an element of the model.
    """

    variant: str
    length: int
    run: int
    number: int
    seconds: float
    exchanges: int
    down: float
    up: float
    processor: float
    load: float
    error: float


def measure(settings: Settings, rounds: list[Round], show: Callable[[int], None]) -> None:
    """Append the figures of all rounds to a list, run by run, so that Ctrl-C loses one run.

    Raises
    ------
    SecAggError
        A run failed, or its model has an error above the bound of the variant.
    """
    with Network(settings.nodes, helpers=HELPERS) as network:
        apps = {name: write_app(name, network.folder / "apps") for name in VARIANTS}
        done = 0
        for run in range(settings.runs):
            for length in settings.lengths:
                for name in VARIANTS:
                    rounds += _run(network, settings, apps[name], name, length, run)
                    done += 1
                    show(done)


def _run(
    network: Network, settings: Settings, app: Path, name: str, length: int, run: int
) -> list[Round]:
    """Run a variant once and return its rounds."""
    folder = network.folder / f"{name}-{length}-{run}"
    folder.mkdir()
    before = _processor_seconds(network.left())
    number = network.begin(
        app,
        folder=str(folder),
        nodes=settings.nodes,
        length=length,
        rounds=settings.rounds,
        poll=settings.poll,
        timeout=TIMEOUT,
    )
    result = folder / RESULT
    end = time.monotonic() + settings.rounds * 4 * TIMEOUT
    while not result.exists():
        if time.monotonic() > end:
            raise SecAggError(f"{name} has no result: {network.server_log(number)[-4000:]}")
        time.sleep(0.2)
    processor = _processor_seconds(network.left()) - before
    figures = json.loads(result.read_text(encoding="utf-8"))
    if figures["failure"]:
        raise SecAggError(f"{name} failed: {figures['failure']}")
    errors = model_errors(folder, range(settings.nodes), settings.rounds, length)
    check_errors(name, errors)
    return [
        Round(
            variant=name,
            length=length,
            run=run,
            number=place,
            seconds=one["seconds"],
            exchanges=one["exchanges"],
            down=one["down"] / settings.nodes,
            up=one["up"] / settings.nodes,
            processor=processor / settings.rounds,
            load=one["load"],
            error=error,
        )
        for place, (one, error) in enumerate(zip(figures["rounds"], errors, strict=True), 1)
    ]


def model_errors(
    folder: Path, partitions: Sequence[int], rounds: int, length: int
) -> list[float]:
    """Return the largest error of the models after each round, which a server stored."""
    due, errors = np.zeros(length), []
    for number in range(1, rounds + 1):
        due += mean(partitions, number, length)
        found = np.load(folder / f"model-{number}.npy")
        errors.append(float(np.abs(found - due).max()))
    return errors


def check_errors(name: str, errors: Iterable[float]) -> None:
    """Raise SecAggError if the errors after each round are above the bound of a variant."""
    for number, error in enumerate(errors, 1):
        if not error <= number * VARIANTS[name].error:
            raise SecAggError(
                f"the model of {name} after round {number} has an error of {error:.2g}: please "
                "report this, with the command"
            )


def _processor_seconds(pids: Iterable[int]) -> float:
    """Return the processor seconds of processes, and of their children that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):  # it has ended just now
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime of proc(5)
    return ticks / _TICK
