"""Clients that live for one message, in processes of their own, there to be killed.

As a script: a nursery, which forks a process for each connection to its socket. The process
restores a client, if it is given a state, lets it answer, and suspends it. Before each system
call of the vault it waits for its peer to let it go on, and afterwards reports the change.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from functools import partialmethod
from multiprocessing.connection import Client as connect
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

import nursery
from harness import make_identity, registry_of
from secagg import Client, Phase, RoundParams, SecAggError, Vault, testing
from secagg import _files as files
from secagg.vault import vault as module
from vault_mutants import MUTANTS

PLAIN = "as it is"
Call = tuple[str, ...]


class Job(NamedTuple):
    """One message of a client; `state` is None for a new client."""

    path: str
    params: RoundParams
    client_id: int
    state: bytes | None
    data: bytes
    vector: np.ndarray
    mutant: str = PLAIN


class Watched:
    """The functions of `os` for the vault; each waits for leave and reports what it changed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names: dict[int, str] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def _call(self, function: Callable[..., object], *arguments: object) -> object:
        self._connection.send(("call", function.__name__))
        self._connection.recv()
        return function(*arguments)

    def _changed(self, *change: object) -> None:
        self._connection.send(("changed", change))

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        before = os.path.exists(path)
        descriptor = self._call(os.open, path, flags, mode)
        self._names[descriptor] = str(path)
        if flags & os.O_CREAT and (not before or flags & os.O_TRUNC):
            self._changed("create", str(path))
        return descriptor

    def write(self, descriptor: int, data: bytes) -> int:
        done = self._call(os.write, descriptor, data)
        self._changed("write", self._names[descriptor], bytes(data))
        return done

    def fsync(self, descriptor: int) -> None:
        self._call(os.fsync, descriptor)
        self._changed("sync", self._names[descriptor])

    def rename(self, old: str, new: str, *, by: Callable[..., None] = os.rename) -> None:
        self._call(by, old, new)
        self._changed("rename", str(old), str(new))

    replace = partialmethod(rename, by=os.replace)

    def unlink(self, path: str) -> None:
        self._call(os.unlink, path)
        self._changed("unlink", str(path))

    def read(self, descriptor: int, size: int) -> bytes:
        return self._call(os.read, descriptor, size)

    def close(self, descriptor: int) -> None:
        self._call(os.close, descriptor)


class Visit:
    """A process at work on a job, one event at a time."""

    def __init__(self, address: str, job: Job) -> None:
        self.job = job
        self.alive = True
        self._connection = connect(address, "AF_UNIX")
        self._connection.send(job)
        self._pid = self._connection.recv()

    def step(self) -> list[tuple[str, object]]:
        """Let the process go on to where it waits or ends, and return the events until then."""
        self._connection.send("go")
        events = []
        while True:
            events.append(self._connection.recv())
            if events[-1][0] == "end":
                self.alive = False
                self._connection.close()
            if events[-1][0] != "changed":
                return events

    def kill(self) -> None:
        """Kill −9 where it waits."""
        os.kill(self._pid, signal.SIGKILL)
        self.alive = False
        nursery.until_dead(self._connection)


def start_nursery(address: str) -> subprocess.Popen[bytes]:
    """Return when it listens."""
    return nursery.start(__file__, address)


def serve(connection: Connection) -> None:
    job: Job = connection.recv()
    connection.send(os.getpid())
    connection.recv()
    module.os = files.os = Watched(connection)

    def tell(*event: object) -> None:
        connection.send(event)
        connection.recv()

    params, u = job.params, job.client_id
    client = Client(
        u,
        params,
        policy=testing.toy_policy(params),
        identity=make_identity(u) if params.active else None,
        registry=registry_of(range(params.n_clients)) if params.active else None,
    )
    vault = MUTANTS.get(job.mutant, Vault)(job.path)
    try:
        if job.state is not None:
            client.restore(job.state, vault)
            tell("restored", None)
        tell("answered", client.answer(job.data, job.vector))
        if job.mutant == "DeletedLate":
            vault.late()
        if client.phase is not Phase.FINISHED:
            tell("suspended", client.suspend(vault))
        if job.mutant == "StoredLate":
            vault.late()
    except SecAggError as error:
        connection.send(("end", getattr(error, "check", type(error).__name__)))
    else:
        connection.send(("end", None))


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets the dead
    nursery.main(serve, wait=False)
