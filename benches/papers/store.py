"""Finished runs, each a JSON file of its own, so that nothing that was measured is lost."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from fedmf.errors import SettingError

__all__ = ["Record", "Store", "Task", "write_at_once"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What determines a run, and so whether a run that was kept is this one.

    The sources are not part of it: a new comment would throw hours of work away. The version
    of the package is, and every record says which state of the sources it comes from.

    Parameters
    ----------
    table, row
        The key and the name.
    data, settings
        As of `Row`.
    seed, quick
        As of `Run`.
    version
        Of the package.
    """

    table: str
    row: str
    data: str
    settings: Mapping[str, object]
    seed: int
    quick: bool
    version: str

    @property
    def digest(self) -> str:
        """SHA-256 over all of it, in hexadecimal."""
        text = json.dumps(asdict(self), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Record:
    """A finished run.

    Parameters
    ----------
    task
        What was run.
    figures
        What came out, by metric.
    seconds
        How long it took, loading the data included.
    date
        When it was finished, UTC, as ISO 8601 writes it.
    state
        A digest of the sources and the data that it comes from.
    machine
        Where: processor and versions.
    """

    task: Task
    figures: Mapping[str, float]
    seconds: float
    date: str
    state: str
    machine: Mapping[str, str]


class Store:
    """Records in a folder, found by their task.

    Parameters
    ----------
    folder
        Made when the first record is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, task: Task) -> Record | None:
        """Return the record of a task; None if there is none that can be read."""
        try:
            found = json.loads(self._path(task).read_bytes())
            record = Record(**found | {"task": Task(**found["task"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return record if record.task.digest == task.digest else None

    def put(self, record: Record) -> None:
        """Keep a record, at once and to stay.

        Raises
        ------
        SettingError
            If the file cannot be written.
        """
        content = {field.name: getattr(record, field.name) for field in fields(record)}
        text = json.dumps(content | {"task": asdict(record.task)}, indent=2, allow_nan=False)
        write_at_once(self._path(record.task), f"{text}\n".encode())

    def _path(self, task: Task) -> Path:
        row = re.sub(r"\W+", "-", task.row.lower()).strip("-")[:60]
        return self.folder / task.table / f"{row}-{task.seed}-{task.digest[:16]}.json"


def write_at_once(path: Path, content: bytes) -> None:
    """Write a file such that readers see the old one or the new one, and nothing between.

    Raises
    ------
    SettingError
        If it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
            try:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
                os.chmod(part.name, 0o644)  # a temporary file is its owner's only
                os.replace(part.name, path)
            except BaseException:
                os.unlink(part.name)
                raise
    except OSError as error:
        raise SettingError(f"{path} cannot be written: {error.strerror}") from error
