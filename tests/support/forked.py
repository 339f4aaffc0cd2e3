"""Calls in a fork of the test's process."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_fork(fork: Callable[[], int], call: Callable[[], object], same_id: bool = True) -> str:
    """Return what a call returns in a fork, or the class of its error; with its parent's id."""
    reader, writer = os.pipe()
    parent, child = os.getpid(), fork()
    if child == 0:
        if same_id:
            os.getpid = lambda: parent
        try:
            answer = repr(call())
        except BaseException as error:
            answer = type(error).__name__
        os.write(writer, answer.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        return pipe.read()
