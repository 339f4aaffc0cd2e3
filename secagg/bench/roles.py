"""Party of a system in a separate process, with its processor time and peak memory.

Processor time covers all threads of the party, without other processes and waiting.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Generic, NamedTuple, TypeVar, cast

from secagg._threads import set_threads
from secagg.errors import SecAggError
from secagg.kit.timing import Peak

R = TypeVar("R")

# The fork server imports the library once and then forks in milliseconds. Its children have
# none of this process's memory.
_context = multiprocessing.get_context("forkserver")


class Took(NamedTuple, Generic[R]):
    """Result of a step, processor time in seconds, and peak memory of the party so far."""

    result: R
    seconds: float
    memory: int


class Role(AbstractContextManager["Role"]):
    """Party in a separate process, for a ``with`` block: the process ends with the block.

    The function `make` makes the party inside the process; `make` and all steps must be
    picklable. If the party raises any error, here or in `do`, SecAggError is raised with the
    party's `name`. `setup_seconds` is the processor time of `make`. `memory` is the peak memory
    of the process so far, in bytes beyond the library itself.
    """

    def __init__(self, name: str, make: Callable[[], object]) -> None:
        self._name, self.memory = name, 0
        self._link, theirs = _context.Pipe()
        ours = [one for one in sys.modules if one.partition(".")[0] == "secagg"]
        _context.set_forkserver_preload(ours)
        self._process = _context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        # an open copy of the child's end would hide that the child has ended
        theirs.close()
        try:
            self.setup_seconds = self._ask(make).seconds
        # also after Ctrl-C: without `__init__`, no `with` block ends the process
        except BaseException:
            self.__exit__()
            raise

    def do(self, step: Callable[..., R], *args: object) -> Took[R]:
        """Call ``step(party, *args)`` in the process; return the result, time and memory."""
        return cast(Took[R], self._ask((step, args)))

    def __exit__(self, *_: object) -> None:
        self._link.close()
        self._process.terminate()
        self._process.join()

    def _ask(self, work: object) -> Took[object]:
        try:
            self._link.send(work)
            answer: Took[object] | str = self._link.recv()
        except (EOFError, ConnectionError):
            raise SecAggError(
                f"the process of the {self._name} ended, perhaps out of memory; "
                "measure fewer clients or shorter vectors"
            ) from None
        if isinstance(answer, str):
            raise SecAggError(f"the {self._name} failed: {answer}")
        self.memory = answer.memory
        return answer


def _serve(link: Connection) -> None:
    """Make the party, then run the steps from `link` until `link` is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    set_threads(1)  # processor time of one core, without waiting threads
    with suppress(EOFError, ConnectionError):
        make = link.recv()  # imports the modules of the party
        peak, party = Peak(), list[object]()
        _answer(link, peak, lambda: party.append(make()))
        while True:
            step, args = link.recv()
            _answer(link, peak, partial(step, *party, *args))


def _answer(link: Connection, peak: Peak, call: Callable[[], object]) -> None:
    """Run `call` and send the result, time and memory, or the error."""
    try:
        with peak.watching():
            start = time.process_time()
            result = call()
            seconds = time.process_time() - start
    except (SecAggError, OSError, MemoryError) as error:
        link.send(str(error) or "out of memory")
    except Exception as error:  # a bug: the report of the bug needs the class
        link.send(f"{type(error).__name__}: {error}")
    else:
        link.send(Took(result, seconds, peak.grown()))
