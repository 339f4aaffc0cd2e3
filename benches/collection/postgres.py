"""Durable PostgreSQL with its default settings, on a socket, with its processor time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from benches.collection.programs import children_of, seconds_of


class PostgreSQL:
    """Server with its data in a folder of a disk. For root, the user "postgres" runs it.

    Attributes
    ----------
    url : str
        URL of the database.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._data = folder, folder / "data"
        self._user = "postgres" if os.getuid() == 0 else None
        self._programs = self._find()
        folder.mkdir()
        if self._user:
            shutil.chown(folder, self._user)
        self.url = f"postgresql:///postgres?host={folder}&user=postgres"
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres")

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        words = f"-c listen_addresses='' -k {self._folder}"
        log = self._folder / "log"
        self._run("pg_ctl", "-D", self._data, "-w", "-t", 300, "-l", log, "-o", words, "start")

    def kill(self) -> None:
        """Kill the postmaster and all its children at once."""
        pid = self._pid
        everyone = [pid, *children_of(pid)]
        for one in everyone:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        while any(Path(f"/proc/{one}").exists() for one in everyone):
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the server, without regard to the data."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    def seconds(self) -> float:
        """Return the processor time of all processes since the start."""
        pid, total = self._pid, 0.0
        for one in children_of(pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                total += seconds_of(one)
        return total + seconds_of(pid, children=True)

    def disk(self) -> int:
        """Return the bytes of all files, the write-ahead log included."""
        out = subprocess.run(  # noqa: S603
            ["/usr/bin/du", "-sb", str(self._data)], capture_output=True, text=True, check=False
        ).stdout
        return int(out.split()[0])

    def connect(self) -> psycopg.Connection:
        """Return a connection of the driver, outside of transactions."""
        return psycopg.connect(self.url, autocommit=True, application_name="driver")

    @property
    def version(self) -> str:
        """Version of the server."""
        with self.connect() as connection:
            (found,) = connection.execute("SHOW server_version").fetchone() or ("",)
        return str(found).split()[0]

    @property
    def _pid(self) -> int:
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def _find(self) -> Path:
        if found := shutil.which("initdb"):
            return Path(found).resolve().parent
        folders = Path("/usr/lib/postgresql").glob("*/bin")
        return max(folders, key=lambda path: float(path.parts[-2]))

    def _run(self, program: str, *words: object) -> None:
        subprocess.run(  # noqa: S603
            [str(self._programs / program), *map(str, words)],
            user=self._user,
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )
