"""Nurseries: scripts that fork a process, there to be killed, for each connection."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, Listener

from secagg import Journal
from secagg.oneshot import HelperJournal


def start(script: str, address: str) -> subprocess.Popen[bytes]:
    """Start a script that calls `main`, and return when the script listens."""
    command = [sys.executable, script, address]
    nursery = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, start_new_session=True
    )
    assert nursery.stdout is not None
    assert nursery.stdout.readline() == b"ready\n"
    return nursery


def main(serve: Callable[[Connection], object], *, wait: bool) -> None:
    """Fork for each connection; with `wait`, the next connection waits for the death."""
    with Listener(sys.argv[1], "AF_UNIX", backlog=8) as listener:
        print("ready", flush=True)
        while True:
            with listener.accept() as connection:
                pid = os.fork()
                if pid == 0:
                    try:
                        serve(connection)
                    except (EOFError, ConnectionError):
                        os._exit(0)
                    except BaseException:
                        traceback.print_exc()
                        os._exit(1)
                    os._exit(0)
                if wait:
                    os.waitpid(pid, 0)


def until_dead(connection: Connection) -> None:
    """Read to the end of the stream, which comes with the death of the peer."""
    with connection:
        try:
            while True:
                connection.recv()
        except (EOFError, ConnectionResetError):
            return


def die_at(journal: Journal | HelperJournal, statement: str) -> None:
    """Have this process killed when SQLite is about to do this."""

    def watch(text: str) -> None:
        if text.startswith(statement):
            os.kill(os.getpid(), signal.SIGKILL)

    with journal._lock.use() as connection:
        connection.set_trace_callback(watch)
