"""A party of a system in a process of its own, with its processor time and peak memory.

Processor time, of all threads of the party, leaves out other processes and waiting.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from secagg.bench.timing import Peak
from secagg.errors import SecAggError

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")

# A server that has imported once what this process has of the library forks in milliseconds,
# and what it forks has none of this process's memory.
_context = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Took(Generic[R_co]):
    """Result of a step, and its seconds of processor time."""

    result: R_co
    seconds: float


class Role(Generic[T]):
    """A party that lives in a process of its own until the end of the ``with`` block.

    Parameters
    ----------
    name : str
        For errors.
    make : callable
        Makes the party; it can be pickled, and is called in the process.

    Attributes
    ----------
    setup_seconds : float
        Processor time of making the party.

    Raises
    ------
    SecAggError
        The party raised an error, here or in `do`; the message names both.
    """

    def __init__(self, name: str, make: Callable[[], T]) -> None:
        self._name = name
        self._link, theirs = _context.Pipe()
        _context.set_forkserver_preload([one for one in sys.modules if _is_ours(one)])
        self._process = _context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self._link.send(make)
            self.setup_seconds = self._receive().seconds
        except BaseException:
            self.close()
            raise

    def do(
        self, step: Callable[Concatenate[T, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> Took[R]:
        """Let the party take a step: a method of its class, and the arguments."""
        self._link.send((step, args, kwargs))
        return cast(Took[R], self._receive())

    def memory(self) -> int:
        """Return the bytes the party's process has held at most, beyond the library itself."""
        self._link.send(None)
        return int(cast(Took[int], self._receive()).result)

    def close(self) -> None:
        """End the process."""
        self._link.close()
        self._process.terminate()
        self._process.join()

    def __enter__(self) -> Self:
        """Return the role."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def _receive(self) -> Took[object]:
        try:
            answer: Took[object] | str = self._link.recv()
        except (EOFError, ConnectionError):
            raise SecAggError(
                f"the process of the {self._name} was ended, for want of memory perhaps; "
                "measure fewer clients or shorter vectors"
            ) from None
        if isinstance(answer, str):
            raise SecAggError(f"the {self._name} failed: {answer}")
        return answer


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "secagg"


def _serve(link: Connection) -> None:
    """Make the party, then take its steps until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that asked for it
    party: list[object] = []
    try:
        make = link.recv()  # imports the modules of the party
        peak = Peak()
        _answer(link, peak, lambda: party.append(make()))
        while True:
            asked = link.recv()
            if asked is None:
                link.send(Took(peak.grown(), 0.0))
            else:
                step, args, kwargs = asked
                _answer(link, peak, partial(step, *party, *args, **kwargs))
    except (EOFError, ConnectionError):
        pass


def _answer(link: Connection, peak: Peak, call: Callable[[], object]) -> None:
    """Send what the call returns and how long it took, or what went wrong."""
    try:
        with peak.watching():
            start = time.process_time()
            result = call()
            seconds = time.process_time() - start
    except Exception as error:
        link.send(f"{type(error).__name__}: {error}")
    else:
        link.send(Took(result, seconds))
