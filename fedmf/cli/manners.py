"""What all commands of ``fedmf`` share: the console, errors in one line, folders, Ctrl-C."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from fedmf.errors import FedMFError, SettingError

__all__ = ["INTERRUPTED", "errors_in_one_line", "make_folder", "stderr", "undisturbed"]

INTERRUPTED = 130  # what shells report for a command that Ctrl-C ended


def stderr() -> Console:
    """Return the console for progress, warnings and errors."""
    return Console(stderr=True, highlight=False)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a second, impatient Ctrl-C not cut the files short."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def errors_in_one_line(interrupted: str) -> Iterator[None]:
    """End the command with 2 on an error of ours, and with 130 on Ctrl-C.

    Parameters
    ----------
    interrupted
        What to say of Ctrl-C: what it came before, and what is kept.
    """
    try:
        yield
    except FedMFError as error:
        typer.echo(f"fedmf: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(f"fedmf: interrupted {interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def make_folder(out: Path) -> None:
    """Refuse before the training what could not be written after it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"--out {out} cannot be a folder: {error.strerror}") from error
    try:
        with tempfile.NamedTemporaryFile(dir=out):
            pass
    except OSError as error:
        raise SettingError(
            f"--out {out} cannot be written to: {error.strerror}; choose another folder"
        ) from error
