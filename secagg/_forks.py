"""Identification of a process and its forks, which must not use what they share."""

from __future__ import annotations

import os

_forks: list[None] = []
"""As many items as there were forks between the first process and this one."""
if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=lambda: _forks.append(None))


def process() -> tuple[int, int]:
    """Return a mark of this process; in a container, a fork can have the id of its parent."""
    return os.getpid(), len(_forks)
