"""Servers in processes of their own, there to be killed.

As a script: a nursery. For each connection to its socket it forks a process that serves it,
and closes its own end when that process is dead: the peer reads the end of the stream no
sooner than the journal's lock is free.
"""

from __future__ import annotations

import os
import signal
import subprocess
from multiprocessing.connection import Client as connect
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import nursery
from harness import ReplayedEntropy, registry_of
from secagg import Journal, RoundParams, SecAggError, Server


class Process:
    """A server process, new or resumed from the file at `path`.

    Attributes
    ----------
    phase, outbox, result
        Where it stands, what it sends again, and the sum, if it is finished.
    """

    def __init__(self, address: str, path: Path, params: RoundParams, seed: object) -> None:
        self._connection = connect(address, "AF_UNIX")
        self._connection.send((path, params, seed))
        self._pid, self.phase, self.outbox, self.result = self._answer()

    def call(self, name: str, *arguments: object) -> Any:
        """Call the server and wait for its answer; "acknowledged" is that it came."""
        self.send(name, *arguments)
        return self._answer()

    def send(self, name: str, *arguments: object) -> None:
        self._connection.send((name, *arguments))

    def wait_until_it_has_answered(self) -> None:
        assert self._connection.poll(60), "it hangs"

    def kill(self) -> None:
        """Send −9, unless that has happened."""
        if not self._connection.closed:
            os.kill(self._pid, signal.SIGKILL)
            self.wait_until_it_is_dead()

    def wait_until_it_is_dead(self) -> None:
        nursery.until_dead(self._connection)

    def _answer(self) -> Any:
        self.wait_until_it_has_answered()
        return self._connection.recv()


def start_nursery(address: str) -> subprocess.Popen[bytes]:
    """Return when it listens."""
    return nursery.start(__file__, address)


def serve(connection: Connection) -> None:
    path, params, seed = connection.recv()
    registry = registry_of(range(params.n_clients)) if params.active else None
    if path.exists():
        journal = Journal.open(path, params)
        server = Server.resume(journal, registry=registry)
    else:
        journal = Journal.create(path, params)
        entropy = ReplayedEntropy(seed)
        server = Server(params, registry=registry, journal=journal, entropy=entropy)
    connection.send((os.getpid(), server.phase, server.outbox, result(server)))
    while True:
        name, *arguments = connection.recv()
        if name == "die_at":
            nursery.die_at(journal, *arguments)
            connection.send(None)
            continue
        try:
            answer = getattr(server, name)(*arguments) if name != "result" else result(server)
        except SecAggError as error:
            answer = type(error).__name__
        connection.send(answer)


def result(server: Server) -> tuple[list[int], tuple[int, ...], int | None] | None:
    if server.phase != "finished":
        return None
    done = server.result()
    return done.integers.tolist(), done.survivors, done.weight


if __name__ == "__main__":
    nursery.main(serve, wait=True)
