"""Whether a data set's files are those that the figures of this library were measured on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from fedmf.data.loading import read
from fedmf.data.ratings import Ratings
from fedmf.data.sets.profiles import FORMS, read_profiles
from fedmf.data.sets.sources import Source
from fedmf.data.sets.tags import TAGGED, read_tags
from fedmf.errors import DataError

__all__ = ["CheckedFile", "State", "check_content", "check_files"]


class State(Enum):
    """What a file's checksum says."""

    KNOWN = "as known"
    DIFFERENT = "another content than known"
    MISSING = "missing"
    UNRECORDED = "no checksum on record"


@dataclass(frozen=True)
class CheckedFile:
    """One file and what its SHA-256 says; `good` unless it is missing or another."""

    name: str
    state: State

    @property
    def good(self) -> bool:
        """Whether there is nothing against this file."""
        return self.state in (State.KNOWN, State.UNRECORDED)


def check_files(source: Source, folder: Path) -> list[CheckedFile]:
    """Compare each file of a source in this folder with its known SHA-256.

    Raises
    ------
    DataError
        If a file cannot be read.
    """
    return [CheckedFile(name, _state(folder / name, sha)) for name, sha in source.files.items()]


def check_content(source: Source, folder: Path) -> Ratings:
    """Read all that fedmf reads of a source, and return its ratings.

    Raises
    ------
    DataError
        If the ratings, items, profiles or tags are damaged, do not fit together, or are not
        as many as published.
    """
    ratings = read(source.sets[0], folder)
    if ratings.name in FORMS:
        read_profiles(ratings, folder.parent)
    if ratings.name in TAGGED:
        read_tags(ratings, folder.parent)
    return ratings


def _state(path: Path, sha256: str) -> State:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return State.MISSING
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if not sha256:
        return State.UNRECORDED
    return State.KNOWN if found == sha256 else State.DIFFERENT
