"""Lines on standard error: short for people, with times for a log, or JSON for a collector."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

import typer

from secagg.cli.schedule import iso
from secagg.errors import ParameterError

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


@dataclass(frozen=True)
class Form:
    """Form of the lines of a command.

    Attributes
    ----------
    level : int or None
        Least level of the records that are printed, with times. None: warnings and waits are
        printed, without times.
    json : bool
        True: each line is a JSON object.
    """

    level: int | None = None
    json: bool = False


form = ContextVar("form", default=Form())  # noqa: B039 -- frozen
"""Form of the lines of the command that runs."""


def log_as(log: str | None, *, json: bool) -> None:
    """Print lines in the form of the options ``--log`` and ``--log-json`` from now on.

    Raises
    ------
    ParameterError
        There is no such level.
    """
    if log is not None and log not in LEVELS:
        raise ParameterError(f"log must be {', '.join(LEVELS)}, not {log!r}")
    level = LEVELS[log or "info"] if log is not None or json else None
    form.set(Form(level, json))


def write(
    record: logging.LogRecord,
    text: str,
    fields: Mapping[str, object] | None = None,
    prefix: str = "secagg: ",
) -> None:
    """Print a record as one line on standard error.

    Parameters
    ----------
    record : LogRecord
        Record with the time and the level.
    text : str
        Words of the record, printable.
    fields : mapping, optional
        Fields of the record for JSON.
    prefix : str
        Begin of a line without time.
    """
    time, level = iso(time_of(record)), record.levelname.lower()
    line = f"{prefix}{text}"
    if form.get().json:
        document = {"time": time, "level": level, "logger": record.name, "message": text}
        line = json.dumps(document | dict(fields or {}) | document, default=str)
    elif form.get().level is not None:
        line = f"{time} {level}: {text}"
    typer.echo(line, err=True)


def say(text: str, level: int = logging.WARNING, prefix: str = "secagg: ") -> None:
    """Print a line that no record stands for, whatever the least level is."""
    known = {"name": "secagg.cli", "levelno": level, "levelname": logging.getLevelName(level)}
    write(logging.makeLogRecord(known), text, prefix=prefix)


def fact(text: str) -> None:
    """Print a line of what a command does, such as an address."""
    say(text, logging.INFO, prefix="")


def time_of(record: logging.LogRecord) -> datetime:
    """Return the time of a record in UTC."""
    return datetime.fromtimestamp(record.created, UTC)
