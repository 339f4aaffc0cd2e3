"""A real PostgreSQL server of the system's packages, in a temporary folder, on a socket.

The server refuses to run as root, so for root it runs as the user "postgres".
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

OPTIONS = "-c listen_addresses='' -c fsync=off -c max_connections=50 -k {}"
"""Without fsync: tests end processes, not the machine."""


def missing() -> str:
    """Return the reason why no server can start here, or an empty text."""
    if programs() is None:
        return "PostgreSQL's server is not installed"
    if os.getuid() == 0 and not _user():
        return "PostgreSQL's server does not run as root, and there is no user postgres"
    try:
        import psycopg  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    return ""


@cache
def programs() -> Path | None:
    """Return the folder with initdb and pg_ctl, of the newest version."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(folders, key=lambda path: float(path.parts[-3]), default=None)
    return None if newest is None else newest.parent


class Server:
    """Server with its data in a folder, started by `start`.

    Attributes
    ----------
    url : str
        URL of an empty database.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._data = Path(folder), Path(folder) / "data"
        self.url = f"postgresql:///postgres?host={folder}&user=postgres"
        if user := _user():
            shutil.chown(folder, user)
        _run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--no-sync")

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        more = ("-w", "-l", self._folder / "log", "-o", OPTIONS.format(self._folder))
        _run("pg_ctl", "-D", self._data, *more, "start")

    def crash(self) -> None:
        """End the server at once; the next start recovers the database."""
        _run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")


@contextmanager
def server() -> Iterator[Server]:
    """Yield a server that has started, and end the server with the block."""
    # a short path: sockets have at most 107 characters
    with tempfile.TemporaryDirectory(prefix="pg", dir=_ram()) as folder:
        made = Server(folder)
        made.start()
        try:
            yield made
        finally:
            made.crash()


def _run(program: str, *words: object) -> None:
    folder = programs()
    assert folder is not None
    command = [str(folder / program), *map(str, words)]
    subprocess.run(  # noqa: S603
        command, user=_user(), check=True, stdout=subprocess.DEVNULL, cwd="/"
    )


def _user() -> str | None:
    """Return the user to change to, for root."""
    if os.getuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    return "postgres" if "postgres" in names else None


def _ram() -> str | None:
    shared = "/dev/shm"  # noqa: S108
    return shared if os.access(shared, os.W_OK) else None
