"""Threads that wait for calls, shared by all long batches, without a lock.

A signal handler runs between two instructions of the main thread. A handler may begin a long
batch or fork, and would wait for ever for a lock that the interrupted code has. So state
changes by single operations of `deque`, `dict`, `set` and `SimpleQueue`, which are atomic.
Threads start below `threading`, where `start` waits for the new thread under a lock.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from secagg._secrets import process


class Event:
    """Event that several threads and their signal handlers may wait for."""

    def __init__(self) -> None:
        self._happened = False
        self._waiting: list[SimpleQueue[None]] = []

    def set(self) -> None:
        """Wake all waiting threads and handlers."""
        self._happened = True  # first, so that a later `wait` returns at once
        for queue in self._waiting.copy():
            queue.put(None)

    def wait(self) -> None:
        """Wait until the event has happened; after an interruption, wait again."""
        if not self._happened:
            queue = SimpleQueue[None]()
            self._waiting.append(queue)
            while not self._happened:
                queue.get()


class Call:
    """Call of a function, which must not raise, by a thread of the pool.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function
        self._begun: dict[None, bool] = {}
        self._over = Event()

    def run(self) -> None:
        """Call the function, unless `end` came first."""
        # the first of `run` and `end` decides, however often an interrupted `end` is repeated
        function = self._function
        if self._begun.setdefault(None, True) and function is not None:
            try:
                function()
            finally:
                del function  # an error's frames lead back to this frame
                self._over.set()

    def end(self) -> None:
        """Prevent the call, or wait for the end of a call that has begun."""
        if self._begun.setdefault(None, False):
            self._over.wait()
        self._function = None  # the queue may keep a prevented call, but not its vectors


class _Pool:
    """Threads that take calls from a shared queue while this pool is the current pool."""

    def __init__(self) -> None:
        self.calls = SimpleQueue[Call | None]()
        self.idle = deque[None]()
        self.begun = deque[None]()

    def begin(self, most: int) -> None:
        """Begin a thread, unless there are `most`; RuntimeError if no thread can begin."""
        self.begun.append(None)
        try:
            if len(self.begun) <= most:  # threads that race never exceed `most`
                _thread.start_new_thread(_Worker(self).work, ())
                return
        except BaseException:
            self.begun.pop()
            raise
        self.begun.pop()


class _Worker:
    """Thread of a pool."""

    def __init__(self, pool: _Pool) -> None:
        self.pool = pool
        self.over = Event()

    def work(self) -> None:
        """Make calls until another pool is the current pool."""
        pool = self.pool
        # first: else `end_threads` could miss this thread, and the loop the new pool
        _workers.add(self)
        _local.is_worker = True
        try:
            while pool is _pool:
                call = pool.calls.get()
                if call is not None:
                    call.run()
                    del call  # the call's vectors are free now, not only after the next call
                    pool.idle.append(None)
        finally:
            _workers.discard(self)
            self.over.set()


_process = process()
_pool = _Pool()
_workers = set[_Worker]()
_local = threading.local()


def submit(call: Call, most: int) -> None:
    """Pass a call to an idle thread, or to a new thread if there are fewer than `most`.

    The call stays undone if all threads are busy until the call's `end`. RuntimeError is raised
    if no more threads can begin.
    """
    _forget_former_process()
    pool = _pool
    try:
        pool.idle.pop()
    except IndexError:
        pool.begin(most)
    pool.calls.put(call)


def end_threads(*, wait: bool) -> None:
    """End the threads after their present calls; the next call begins other threads.

    Threads of the pool never wait here: two of them would wait for each other.
    """
    global _pool  # noqa: PLW0603 - one pool per process
    _forget_former_process()
    _pool = _Pool()
    # all old threads, also of a pool that a handler or another thread made in between
    old = [worker for worker in _workers.copy() if worker.pool is not _pool]
    for worker in old:
        worker.pool.calls.put(None)
    if wait and not getattr(_local, "is_worker", False):
        for worker in old:
            worker.over.wait()


def _before_fork() -> None:
    end_threads(wait=True)  # an interrupted batch in the child misses no part that they had


def _forget_former_process() -> None:
    """Forget the threads in a fork, also by C code, because a fork does not have them."""
    global _pool, _process  # noqa: PLW0603
    if _process != process():
        _pool = _Pool()
        _workers.clear()
        _local.is_worker = False
        _process = process()


atexit.register(end_threads, wait=True)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_forget_former_process)
