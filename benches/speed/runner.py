"""Measurement of rows and series: worker processes that are asked in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

from benches.speed import releases
from benches.speed.releases import PRESENT
from benches.speed.rows import Arguments, Rival, Row
from secagg import _fast
from secagg.errors import SecAggError

Show = Callable[[str], None]

FORMER_TIERS = {"vaes512": "ifma", "vaes": "aesni", "armv8": "portable"}
"""Tiers of earlier releases on a processor with these of today; the others had their names."""


class Absent(SecAggError):
    """A package of a rival is not installed."""


class Worker:
    """Process with the code of a commit and its kernels of a tier; end it with ``close``.

    Ctrl-C in a terminal does not reach it. SecAggError is raised if it does not start, or has
    other code or another tier than asked for.
    """

    def __init__(self, code: str, tier: str) -> None:
        place = releases.folder(code)
        if code != PRESENT:
            tier = FORMER_TIERS.get(tier, tier)
        paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
        settings = {"SECAGG_TIER": tier, "PYTHONPATH": os.pathsep.join(paths)}
        # else BLAS has a thread for each core of the machine, and all wait for the bound core
        settings["OMP_NUM_THREADS"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benches.speed.worker"],
            cwd=place,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        hello = self._answer()
        if not Path(hello["secagg"]).is_relative_to(place) or hello["tier"] != tier:
            self.close()
            raise SecAggError(f"a worker of {code}, {tier}, has {hello}: please report this")

    def ask(self, case: str, arguments: Arguments, threads: int) -> float:
        """Run a case once and return its seconds.

        Absent is raised if a module is missing, SecAggError for any other error of the case.
        """
        request = {"case": case, "arguments": dict(arguments), "threads": threads}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "missing" in answer:
            raise Absent(f"{answer['missing']} is not installed")
        if "error" in answer:
            raise SecAggError(f"{case}: {answer['error']}")
        return float(answer["seconds"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise SecAggError("a worker died, perhaps for lack of memory: use --row for fewer")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Against:
    """Seconds of a rival in each repetition; none if `absent` says why."""

    rival: Rival
    seconds: list[float] = field(default_factory=list)
    absent: str | None = None


@dataclass(frozen=True)
class Measured:
    """Seconds of a row in each repetition, by the number of cores, and those of its rivals."""

    row: Row
    tier: str
    seconds: dict[int, list[float]]
    against: list[Against]

    def ratio(self, against: Against, cores: int) -> float:
        """Return the median of the rival ÷ that of this library on so many cores."""
        return median(against.seconds) / median(self.seconds[cores])

    def document(self) -> dict[str, object]:
        """Return the figures for JSON, with ratios and required ratios."""
        rivals = [
            {
                "label": one.rival.label,
                "code": one.rival.code,
                "seconds": one.seconds,
                "absent": one.absent,
                "ratios": [self.ratio(one, cores) for cores in self.row.cores]
                if one.seconds
                else None,
                "at_least": one.rival.least,
            }
            for one in self.against
        ]
        return {
            "name": self.row.name,
            "what": self.row.what,
            "tier": self.tier,
            "seconds": self.seconds,
            "at_most": self.row.most,
            "against": rivals,
        }


def measure(row: Row, tier: str, repeats: int, show: Show, *, quick: bool = False) -> Measured:
    """Measure a row and its rivals, each once in every repetition, in processes of their own.

    `show` is called with what is being done. SecAggError is raised if a case fails; a rival
    whose package or tier is missing, or whose tier is the row's own, is left out.
    """
    chosen = row.quick if quick else row.arguments
    ours = {cores: list[float]() for cores in row.cores}
    others = [None, *(other for other in _fast.TIERS if other != tier)]
    rivals = [Against(rival) for rival in row.rivals if rival.tier in others]
    with ExitStack() as stack:
        workers: dict[tuple[str, str, str], Worker] = {}

        def ask(case: str, arguments: Arguments, code: str, of: str, threads: int) -> float:
            key = case.partition(".")[0], code, of  # other packages get their own process
            if key not in workers:
                workers[key] = stack.enter_context(Worker(code, of))
            return workers[key].ask(case, arguments, threads)

        def run_rival(at: int) -> float | None:
            rival = rivals[at].rival
            arguments = {**chosen, **rival.arguments}
            try:
                return ask(rival.case, arguments, rival.code, rival.tier or tier, 1)
            except Absent as error:
                rivals[at] = Against(rival, absent=str(error))
                return None

        for at, one in enumerate(rivals):
            if one.rival.runs != 1:  # a warm-up of what takes minutes would take as long
                show(f"{row.name}: {one.rival.label}, warming up")
                run_rival(at)
        if row.runs != 1:
            show(f"{row.name}: warming up")
            ask(row.case, chosen, PRESENT, tier, row.cores[0])
        for turn in range(min(repeats, row.runs or repeats)):
            for cores, seconds in ours.items():
                show(f"{row.name}: turn {turn + 1}, {cores} cores")
                seconds.append(ask(row.case, chosen, PRESENT, tier, cores))
            for at, one in enumerate(rivals):
                if one.absent is None and turn < (one.rival.runs or repeats):
                    show(f"{row.name}: turn {turn + 1}, {one.rival.label}")
                    taken = run_rival(at)
                    if taken is not None:
                        one.seconds.append(taken)
    return Measured(row, tier, ours, rivals)


def known_tiers(wanted: str | None, available: Sequence[str]) -> list[str]:
    """Return the tiers of a list separated by commas, "all" for all with compiled code.

    None is the fastest. SecAggError is raised for a tier that this machine does not have.
    """
    if wanted is None:
        return list(available[:1])
    if wanted == "all":
        return [tier for tier in available if tier != "pure"]
    tiers = wanted.split(",")
    for tier in tiers:
        if tier not in available:
            raise SecAggError(f"--tier {tier} is not one of {', '.join(available)}, or all")
    return tiers
