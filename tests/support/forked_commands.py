"""Processes of `secagg` that are forked from one that has imported the command already.

An import takes most of the time of a command. The fork is that of a server without threads or
state of a test, by `multiprocessing`, and ends as an interpreter of its own would.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from types import TracebackType
from typing import Any, Self, TextIO

IMPORTED = ("secagg.cli", "secagg.http", "secagg.collect", "asyncio", "httpx", "uvicorn")
"""Modules of the server; a command imports the others, or what an extra lacks, by itself."""


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED])
    return context


class Forked:
    """A running command; the members are as in `subprocess.Popen`."""

    def __init__(
        self, arguments: Sequence[str], env: Mapping[str, str], encoding: str | None
    ) -> None:
        context = _context()
        pipes = [context.Pipe(duplex=False) for _ in range(2)]
        written = [end for _, end in pipes]
        self._process = context.Process(
            target=_run, args=(arguments, dict(env), encoding, os.getcwd(), *written)
        )
        self._process.start()
        for end in written:
            end.close()
        self.stdout, self.stderr = (_text(end, encoding) for end, _ in pipes)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self.communicate()
        self.stdout.close()
        self.stderr.close()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    poll = returncode.fget

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise TimeoutError(f"the process has not ended in {timeout} s")
        return code

    def communicate(self) -> tuple[str, str]:
        with ThreadPoolExecutor(2) as readers:
            out, error = readers.map(lambda stream: stream.read(), (self.stdout, self.stderr))
        self.wait()
        return out, error

    def send_signal(self, number: int) -> None:
        if self._process.is_alive():  # else the id may be of another process
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _text(end: Connection, encoding: str | None) -> TextIO:
    descriptor = os.dup(end.fileno())
    end.close()
    return open(descriptor, encoding=encoding)


def _run(
    arguments: Sequence[str],
    env: Mapping[str, str],
    encoding: str | None,
    folder: str,
    out: Connection,
    error: Connection,
) -> None:
    """Run the command in the fork, with streams as those of a new interpreter."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    for number, end in enumerate((out, error), start=1):
        os.dup2(end.fileno(), number)
        end.close()
    like: dict[str, Any] = {"mode": "w", "encoding": encoding, "closefd": False}
    sys.stdout = sys.__stdout__ = open(1, **like)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # noqa: SIM115
        2, buffering=1, errors="backslashreplace", **like
    )
    sys.argv = ["-c", *arguments]
    from secagg.cli import main

    main()
