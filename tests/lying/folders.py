"""Folders in memory, where sync is free, and journals of helpers in one."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from oneshot_parties import ram_folder
from secagg.oneshot import HelperJournal


def folder_in(stack: ExitStack) -> Path:
    """Return a new folder that is deleted when the stack is closed."""
    return stack.enter_context(ram_folder())


def journals_in(stack: ExitStack, *, active: bool) -> list[HelperJournal]:
    """Return the journals of three helpers, or of four for active sums."""
    folder = folder_in(stack)
    return [
        stack.enter_context(HelperJournal.create(folder / f"{j}", "x25519"))
        for j in range(4 if active else 3)
    ]
