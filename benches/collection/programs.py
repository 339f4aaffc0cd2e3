"""Programs of a run: started, measured, stopped for a look, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECAGG = (sys.executable, "-c", "from secagg.cli import main; main()")
LIBRARY = "import secagg.cli, secagg.http, secagg.collect.postgres, secagg.collect.service"
_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


class Program:
    """Process of a command, which can be started again after its end.

    Attributes
    ----------
    name : str
        Name, also in PostgreSQL's list of connections.
    lives : int
        Number of starts.
    memory : int
        Peak memory of all lives, in bytes.
    """

    def __init__(self, name: str, words: Iterable[object], folder: Path, ready: str) -> None:
        self.name, self.lives, self.memory = name, 0, 0
        self._words, self._log, self._ready = (
            list(map(str, words)),
            folder / f"{name}.log",
            ready,
        )
        self._from = self._before = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = 0

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start a process."""
        self.lives += 1
        self._seen = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=os.environ | {"PGAPPNAME": self.name},
            )

    def is_ready(self) -> bool:
        """Return whether the process printed that it is ready."""
        with self._log.open("rb") as log:
            log.seek(self._seen)
            return self._ready.encode() in log.read()

    def await_ready(self, seconds: float = 300.0) -> None:
        """Wait until the process is ready."""
        end = time.monotonic() + seconds
        while not self.is_ready():
            assert self.is_running, f"{self.name} ended: {self.tail()}"
            assert time.monotonic() < end, f"{self.name} is not ready: {self.tail()}"
            time.sleep(0.05)

    def mark(self) -> None:
        """Count processor time from now on."""
        self._from = seconds_of(self.pid)

    def seconds(self) -> float:
        """Return the processor time since `mark`; the process may have ended unwatched."""
        return seconds_of(self.pid) - self._from

    def measure(self) -> None:
        """Note the peak memory of the process so far."""
        with suppress(FileNotFoundError, ProcessLookupError, KeyError):
            self.memory = max(self.memory, status_of(self.pid)["VmHWM"])

    def wait(self) -> int:
        """Wait for the end, and measure until then; return the exit code."""
        assert self._process is not None
        while self._process.poll() is None:
            self.measure()
            time.sleep(0.05)
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process, and wait for its end."""
        if self._process is not None:
            self.measure()
            self._process.kill()
            self._process.wait()

    def tail(self) -> str:
        """Return the end of what the processes printed."""
        return self._log.read_text(errors="replace")[-2000:]


def seconds_of(pid: int, *, children: bool = False) -> float:
    """Return the processor time of a process, or also of children that have ended."""
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if children else 13])) / _TICKS


def status_of(pid: int) -> Mapping[str, int]:
    """Return the fields of a process's status that are sizes, in bytes."""
    lines = (line.split() for line in (_PROC / str(pid) / "status").read_text().splitlines())
    return {line[0][:-1]: 1024 * int(line[1]) for line in lines if line[-1] == "kB"}


def children_of(pid: int) -> list[int]:
    """Return the running children of a process."""
    found = (_PROC / str(pid) / "task" / str(pid) / "children").read_text()
    return list(map(int, found.split()))


def library_memory() -> int:
    """Return the peak memory of a process that imports the library alone, in bytes."""
    show = f"{LIBRARY}; print(open('/proc/self/status').read())"
    command = [sys.executable, "-c", show]
    out = subprocess.run(  # noqa: S603
        command, check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
    (line,) = (line for line in out.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def is_computing(pid: int) -> bool:
    """Return whether a thread of a process runs, or waits for a core only."""
    for task in (_PROC / str(pid) / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            if (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
    return False


def is_connected(pid: int, ports: Iterable[int]) -> bool:
    """Return whether a process has a connection to one of the ports of this machine."""
    wanted, inodes = set(ports), set[str]()
    for line in (_PROC / "net" / "tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "01" and int(fields[2].rpartition(":")[2], 16) in wanted:
            inodes.add(f"socket:[{fields[9]}]")
    with suppress(FileNotFoundError):
        for one in (_PROC / str(pid) / "fd").iterdir():
            with suppress(FileNotFoundError):
                if str(one.readlink()) in inodes:
                    return True
    return False
