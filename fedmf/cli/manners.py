"""Helpers shared by all commands: options, console, one-line errors, folders, Ctrl-C."""

from __future__ import annotations

import shlex
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console

from fedmf.data import NAMES
from fedmf.errors import FedMFError, SettingError
from secagg.cli.console import with_options
from secagg.cli.streams import is_of_disk
from secagg.kit.timing import INTERRUPTED


def option(text: str, shown: str | bool = True, *names: str) -> Any:
    """Return an option with a help text, the default to show, and other names."""
    return typer.Option(*names, help=text, show_default=shown)


def flag(name: str, text: str) -> Any:
    """Return an option without a value."""
    return typer.Option(name, metavar="", help=text)


Data = Annotated[str, option(f"The data set: {', '.join(NAMES)}.")]
Table = Annotated[
    str, option(f"The data set, or a CSV or Parquet file: {', '.join(NAMES)}, FILE.")
]
Columns = Annotated[
    str | None,
    option(
        "FILE: the columns of users, items, ratings and, optionally, times.", "user,item,rating"
    ),
]
Scale = Annotated[
    str | None, option("FILE: the lowest and highest possible rating, such as 1,5.")
]
Duplicates = Annotated[
    str | None,
    option(
        "FILE: keep the last of several ratings of an item by a user, their mean, or end with "
        "an error: last, mean, error.",
        "error",
    ),
]
WORDS = {
    "set duplicates to 'last' or 'mean'": "pass --duplicates last or mean",
    "set columns to names of its header": "set --columns to names of its header",
    "widen scale": "widen --scale",
    "lower min_raters": "lower --min-raters",
    "possible rating, such as 1 and 5": "possible rating, such as --scale 1,5",
    "read a column of times": "name a column of times as the fourth of --columns",
    "pass Features(array, names), or MeanMask as the mask": "pass --mask mean",
    "less than rounds = ": "less than --rounds = ",
    "choose the format 'npz'": "choose --to npz",
    "choose the format 'parquet'": "choose --to parquet",
    "; for tests, pass key=secagg.paillier.generate_insecure_keypair()": "",
    "trust = 'threshold' and no key": "--trust threshold",
    "trust = 'threshold'": "--trust threshold",
    "trustees = None and threshold = None: ": "",
    "trustees = None and ": "",
    " and threshold = None": "",
    "trustees = ": "--trustees ",
    "threshold = ": "--threshold ",
}
"""Words of Python in errors, and the words of the commands."""


def stderr() -> Console:
    """Return a console that writes progress, warnings and errors to stderr."""
    return Console(stderr=True, highlight=False, markup=False)


@contextmanager
def errors_in_one_line(interrupted: str) -> Iterator[None]:
    """End the command with exit status 2 on an error of fedmf, and with 130 on Ctrl-C.

    Service managers end a command by SIGTERM, which has the effect of Ctrl-C. The status is 1
    for a full or broken disk. `interrupted` completes the message for Ctrl-C, such as "before
    the end; nothing is kept".
    """
    try:
        with _terminable():
            yield
    except FedMFError as error:
        text = str(error)
        for python, option in WORDS.items():
            text = text.replace(python, option)
        typer.echo(f"fedmf: {with_options(text)}", err=True)
        raise typer.Exit(1 if is_of_disk(error) else 2) from None
    except KeyboardInterrupt:
        typer.echo(f"fedmf: interrupted {interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _terminable() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM in the block, in the main thread."""
    # Python sets handlers of signals in the main thread only
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def command_line(command: str, options: Mapping[str, object]) -> str:
    """Return a command with options; values None and False leave an option out."""
    words = [
        option_name(name) + ("" if value is True else f" {shlex.quote(str(value))}")
        for name, value in options.items()
        if value is not None and value is not False
    ]
    return " ".join((command, *words))


def option_name(name: str) -> str:
    """Return the option of a setting, such as -k or --min-raters."""
    return "-k" if name == "k" else f"--{name.replace('_', '-')}"


def make_folder(out: Path) -> None:
    """Make a folder; raises SettingError if the folder is not writable."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out):
            pass
    except OSError as error:
        raise SettingError(
            f"--out {out} cannot be written into: {error.strerror}; choose another folder"
        ) from error
