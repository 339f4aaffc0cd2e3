"""The example of a transport through a folder adds up vectors of processes; one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from effort import pure_repeats

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/folder_queue.py"
SECONDS = 120  # only so that a deadlock fails instead of lasting
DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from folder_queue import FolderLink
from secagg import RemoteProtocolError
from secagg.session import take_part

async def main():
    link = FolderLink(Path(sys.argv[1]), 3)
    try:
        await link.send(b"no frame")
    except RemoteProtocolError as error:
        print(error.check, flush=True)
    await take_part(link, 3, lambda *_: os.kill(os.getpid(), signal.SIGKILL))

asyncio.run(main())
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Function that starts a Python process, which does not outlive the test."""
    processes: list[subprocess.Popen[str]] = []
    paths = os.pathsep.join([str(ROOT), str(ROOT / "examples")])

    def start(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.large
@pure_repeats
def test_a_member_killed_before_its_input_is_missing_in_the_sum(
    start: Start, tmp_path: Path
) -> None:
    """Member 3 also learns why the server rejects its first answer."""
    dead = start("-c", DIES, tmp_path)
    members = [start(EXAMPLE, tmp_path, "member", u) for u in (0, 1, 2, 4)]
    server = start("-W", "error", EXAMPLE, tmp_path, "server", 5)
    printed, errors = server.communicate(timeout=SECONDS)
    assert server.returncode == 0, errors
    assert dead.communicate(timeout=SECONDS)[0] == "version\n"
    assert dead.returncode == -signal.SIGKILL
    assert printed.splitlines() == [
        "survivors 0 1 2 4 sum 5.25 6.25 7.25",  # a quarter of 3u, 3u + 1 and 3u + 2
        "numpy 5.25 6.25 7.25",
    ]
    for member in members:
        _, errors = member.communicate(timeout=SECONDS)
        assert (member.returncode, errors) == (0, "")
