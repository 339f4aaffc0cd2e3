"""Identification of a process, its forks and its threads, which must not share secrets.

A page of memory has the generation of the process. Linux empties the page in a fork, also in a
fork by C code, and the fork begins the next generation. Elsewhere a hook of Python's forks
empties the page, and the process id tells forks by C code apart. A process that shares the
parent's memory, as after vfork, stays unnoticed.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from contextlib import suppress

from secagg.errors import LocalProtocolError

_GENERATION = struct.Struct("<Q")
_MADV_WIPEONFORK = 18
"""Advice of madvise(2), from Linux 4.14 on; older versions of Python do not name the advice."""


def _new_page() -> mmap.mmap | bytearray:
    if sys.platform == "win32":  # which cannot fork
        return bytearray(_GENERATION.size)
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux":
        with suppress(OSError):  # an older kernel
            page.madvise(_MADV_WIPEONFORK)
    return page


_page = _new_page()
_latest = 0
"""Generation of this process; in a fork before the first mark, generation of the parent."""


def process() -> tuple[int, int]:
    """Return a mark of this process; in a container, a fork can have the parent's process id.

    Forks of the same process have equal marks in this case, but nothing of each other.
    """
    global _latest  # noqa: PLW0603 - the page is global, too
    # Threads may begin the generation together. Each reads page and number in this order and
    # writes them in the reverse order, so all write the same.
    latest = _latest
    generation: int = _GENERATION.unpack_from(_page)[0]
    if generation == 0:
        generation = latest + 1
        _GENERATION.pack_into(_page, 0, generation)
        _latest = generation
    return os.getpid(), generation


class Exclusive:
    """Context manager for one thread at a time, and for one process; others get an error.

    Clients and servers have no other lock, and the kernels release the GIL. Two threads could
    mask two inputs with the same masks, or lose one of two additions to a total. A fork could
    mask another input, too. The error is a LocalProtocolError.
    """

    def __init__(self) -> None:
        self._token = [True]
        self._process: tuple[int, int] | None = None

    def bind(self) -> None:
        """Raise the error in all forks of this process from now on."""
        self._process = process()

    def __enter__(self) -> None:
        if self._process not in (None, process()):
            raise LocalProtocolError(
                "this client was copied into another process by a fork after it made its keys; "
                "make the client in the process that uses it"
            )
        try:
            self._token.pop()  # atomic: only one of two threads gets the token
        except IndexError:
            raise LocalProtocolError(
                "another call of this machine is under way; call it from one thread at a time"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._token.append(True)


def _empty() -> None:
    _GENERATION.pack_into(_page, 0, 0)


# the first generation: from now on an empty page is a fork's
process()
if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_empty)
