"""SuperLink and SuperNodes on loopback, for a run of the application in `flower_app`.

Each process is the first of a session of its own. At the end all that have the network's folder
in their environment are ended, by their pids: what Flower starts detached, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from secagg import Identity
from secagg.oneshot import HelperJournal

HERE = Path(__file__).resolve().parent
APP = HERE / "flower_app"
BIN = Path(sys.executable).parent
PATIENCE = 120.0
"""Seconds until a process that does not come up fails the test."""


@dataclass
class Network:
    """A SuperLink and nodes; use it as a context manager.

    Parameters
    ----------
    nodes : int
    link, node : callable or sequence of str
        Arguments of the SuperLink, and of a node by its number; insecure by default.
    federation : str
        Lines of the connection in Flower's configuration file.
    registered : sequence of Path
        Public keys of nodes to register before the nodes start.
    helpers : int
        Number of processes that serve a helper of one-shot sums, whom the nodes trust.
    active : bool
        True: the nodes have identities, and are in active sums only.
    own : str
        More words of the configuration of each node.
    """

    nodes: int
    link: Sequence[str] = ("--insecure",)
    node: Callable[[int], Sequence[str]] = lambda _: ("--insecure",)
    federation: str = "insecure = true"
    registered: Sequence[Path] = ()
    helpers: int = 0
    active: bool = False
    own: str = ""

    def __post_init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="secagg-flower-"))
        self._trust = f' secagg-helpers="{self.folder}/helpers.json"' if self.helpers else ""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: list[IO[bytes]] = []
        self.port = free_port()
        self.environment = {
            **os.environ,
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_HOME": str(self.folder),
            "FLWR_TELEMETRY_ENABLED": "0",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": f"{HERE.parents[1]}:{os.environ.get('PYTHONPATH', '')}",
        }

    def __enter__(self) -> Self:
        try:
            (self.folder / "config.toml").write_text(
                '[superlink]\ndefault = "loop"\n[superlink.loop]\n'
                f'address = "127.0.0.1:{self.port}"\n{self.federation}\n'
            )
            address = ("--host", "127.0.0.1", "--port", str(self.port))
            self._write_identities()
            self.start("link", "flower-superlink", *self.link, *address)
            self.wait(lambda: listening(self.port), "link")
            for key in self.registered:
                self.flwr("supernode", "register", str(key), "loop", "--name", key.stem)
            if self.helpers:
                self._start_helpers()
            for number in range(self.nodes):
                self.start_node(number)
            for number in range(self.nodes):
                self.wait_log(f"node{number}", "SuperNode ID")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _write_identities(self) -> None:
        """Write a key for each node and the registry of all, for the active variant."""
        made = {f"n{number}": Identity.generate() for number in range(self.nodes)}
        for name, identity in made.items():
            (self.folder / f"{name}.pem").write_bytes(identity.to_pem())
        publics = {name: identity.public.hex() for name, identity in made.items()}
        (self.folder / "registry.json").write_text(json.dumps(publics))

    def start_node(self, number: int) -> None:
        words = [
            f"partition-id={number} num-partitions={self.nodes}",
            f'secagg-state-dir="{self.folder}/state{number}"',
            self.own,
        ]
        if self.active:
            words += [
                f'secagg-identity="{self.folder}/n{number}.pem"',
                f'secagg-registry="{self.folder}/registry.json"',
            ]
        link = ("--superlink", f"127.0.0.1:{self.port}")
        own = ("--host", "127.0.0.1", "--port", str(free_port()))
        config = ("--node-config", " ".join(words) + self._trust)
        command = ("flower-supernode", *self.node(number), *link, *own, *config)
        self.start(f"node{number}", *command)

    def _start_helpers(self) -> None:
        """Serve the helpers, each with a key of its own, and write the file of them."""
        aggregator = Identity.generate()
        (self.folder / "aggregator.pem").write_bytes(aggregator.to_pem())
        entries = []
        for number in range(self.helpers):
            journal = str(self.folder / f"helper{number}.journal")
            with HelperJournal.create(journal) as made:
                box, key = (one.hex() for one in made.public)
            entries.append({"suite": "hybrid", "hpke": box, "ed25519": key})
            words = ("helper", "serve", journal, "--aggregator", aggregator.public.hex())
            command = "from secagg.cli import main; main()"
            self.start(f"helper{number}", sys.executable, "-c", command, *words, "--port", "0")
        for number, entry in enumerate(entries):
            name = f"helper{number}"
            self.wait_log(name, "helper: http")
            entry["url"] = re.findall(r"helper: (\S+)", self.log(name))[0]
        (self.folder / "helpers.json").write_text(json.dumps(entries))

    def start(self, name: str, *command: str) -> None:
        log = (self.folder / f"{name}.log").open("wb")
        self._logs.append(log)
        self._processes[name] = subprocess.Popen(  # noqa: S603
            command,
            env=self.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait(self, true: Callable[[], bool], name: str = "link") -> None:
        """Wait until something is true, at most as long as a process of that name lives."""
        end = time.monotonic() + PATIENCE
        while not true():
            over = self._processes[name].poll() is not None or time.monotonic() > end
            assert not over, self.log(name)[-4000:]
            time.sleep(0.1)

    def wait_log(self, name: str, text: str) -> None:
        self.wait(lambda: text in self.log(name), name)

    def mark(self, name: str) -> Path:
        return self.folder / name

    def kill(self, name: str) -> None:
        """Kill a node with all its processes."""
        process = self._processes[name]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def flwr(self, *arguments: str) -> str:
        done = subprocess.run(  # noqa: S603
            ["flwr", *arguments],  # noqa: S607
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def begin(self, app: Path = APP, *, federation: str = "", **config: Any) -> int:
        """Begin a run of an application and return its id."""
        given = {"folder": str(self.folder), **config} if app == APP else config
        words = " ".join(f"{key.replace('_', '-')}={json.dumps(v)}" for key, v in given.items())
        more = ["--federation-config", federation] if federation else []
        more += ["--run-config", words, "--format", "json"]
        said = self.flwr("run", str(app), "loop", *more)
        return int(json.loads(said[said.index("{") :])["run-id"])

    def finish(self, run: int, seconds: float = 600.0) -> str:
        """Return the status of a run when it has ended."""
        end = time.monotonic() + seconds
        while True:
            said = self.flwr("list", "loop", "--run-id", str(run), "--format", "json")
            status = str(json.loads(said[said.index("{") :])["runs"][0]["status"])
            if status.startswith("finished"):
                return status
            assert time.monotonic() < end, self.server_log(run)[-4000:]
            time.sleep(1.0)

    def server_log(self, run: int) -> str:
        return self.flwr("log", str(run), "loop", "--show")

    def model(self, number: int) -> np.ndarray:
        """Return the model after a round."""
        found: np.ndarray = np.load(self.folder / f"{number}.npy")
        return found

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        while left := self.left():  # a process can have started another one meanwhile
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        for log in self._logs:
            log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def left(self) -> list[int]:
        """Return the pids of all processes that were started for this network and live."""
        word = f"FLWR_HOME={self.folder}\0".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                environment = path.read_bytes()
            except OSError:
                continue
            if word in environment + b"\0":
                found.append(int(path.parent.name))
        return found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def listening(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False
