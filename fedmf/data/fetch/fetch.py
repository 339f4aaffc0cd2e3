"""Fetching of a data set into the cache, and validation of the files."""

from __future__ import annotations

import hashlib
import tempfile
from enum import Enum
from pathlib import Path

from fedmf.data.fetch.archive import unpack
from fedmf.data.fetch.download import Progress, download
from fedmf.data.loading import read
from fedmf.data.ratings import Ratings
from fedmf.data.sets.folders import cache_folder, folder_of
from fedmf.data.sets.profiles import FORMS, read_profiles
from fedmf.data.sets.sources import Source
from fedmf.data.sets.tags import TAGGED, read_tags
from fedmf.errors import DataError


class State(Enum):
    """Result of comparing a file with the known checksum."""

    KNOWN = "as known"
    DIFFERENT = "different from the known content"
    MISSING = "missing"
    UNRECORDED = "no checksum on record"

    @property
    def good(self) -> bool:
        """True unless the file is missing or differs from the known content."""
        return self in (State.KNOWN, State.UNRECORDED)


def fetch(
    source: Source, *, address: str | None = None, progress: Progress | None = None
) -> Path:
    """Download, validate and unpack an archive into the cache, and return the folder.

    Known checksums of archive and files are compared, and all files are read (`check_content`).
    Then the folder is put into the cache in one step. A cached set is not fetched again. Raises
    DataError if the download, a check or the unpacking fails; the cache is then unchanged.
    Raises MissingExtra if pooch is not installed.

    Parameters
    ----------
    source : source of the data set
    address : address of a copy of the archive; by default ``source.archive``
    progress : see `Progress`
    """
    cache = cache_folder()
    final = cache / source.folder
    if final.is_dir():
        return final
    if not (address or source.archive):
        return folder_of(source)  # in FEDMF_DATA, else an error with the remedy
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # Beside the final place, so that the last step is a rename on one file system.
        with tempfile.TemporaryDirectory(dir=cache, prefix=f".{source.folder}-") as scratch:
            archive, folder = Path(scratch) / "archive.zip", Path(scratch) / source.folder
            folder.mkdir()
            download(address or source.archive, archive, md5=source.md5, progress=progress)
            unpack(archive, folder, source.files)
            for name, state in check_files(source, folder).items():
                if not state.good:
                    raise DataError(
                        f"{name} of the archive is {state.value}: give the --url of the "
                        f"published edition of {source.name}"
                    )
            check_content(source, folder)
            folder.rename(final)
    except OSError as error:
        # another process was faster, and that process renames complete folders only
        if final.is_dir():
            return final
        raise DataError(
            f"{source.name} cannot be put into {cache}: {error.strerror or error}; make room, "
            "or set FEDMF_CACHE to another folder"
        ) from error
    return final


def check_files(source: Source, folder: Path) -> dict[str, State]:
    """Compare each file of a source with the SHA-256; DataError for an unreadable file."""
    return {name: _state(folder / name, sha256) for name, sha256 in source.files.items()}


def check_content(source: Source, folder: Path) -> Ratings:
    """Read all files of a source that fedmf uses, and return the ratings.

    Raises DataError if the ratings, items, profiles or tags are damaged or do not fit together,
    or the numbers differ from the published numbers.
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
