"""Fetching a data set into the cache: all of it, checked, or nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fedmf.data.fetch.archive import unpack
from fedmf.data.fetch.download import Progress, download
from fedmf.data.fetch.integrity import check_content, check_files
from fedmf.data.sets.folders import cache_folder
from fedmf.data.sets.sources import Source
from fedmf.errors import DataError

__all__ = ["fetch"]


def fetch(
    source: Source, *, address: str | None = None, progress: Progress | None = None
) -> Path:
    """Download an archive, check it, unpack it into the cache, and return the folder.

    The download is held to the md5 of the archive and its files to their SHA-256, where these
    are known; then all of it is read, as `check_content` does. Only then does the folder
    appear, in one step. What is in the cache already is not fetched again.

    Parameters
    ----------
    address
        Of a copy of the archive; by default ``source.archive``.
    progress
        Called with the bytes so far and, if known, their number.

    Raises
    ------
    DataError
        If any of this fails; the cache is then as before.
    """
    cache = cache_folder()
    final = cache / source.folder
    if final.is_dir():
        return final
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # Beside the final place, so that the last step is a rename on one file system.
        with tempfile.TemporaryDirectory(dir=cache, prefix=f".{source.folder}-") as scratch:
            archive, folder = Path(scratch) / "archive.zip", Path(scratch) / source.folder
            folder.mkdir()
            download(address or source.archive, archive, md5=source.md5, progress=progress)
            unpack(archive, folder, source.files)
            _refuse_other_files(source, folder)
            check_content(source, folder)
            folder.rename(final)
    except OSError as error:
        if final.is_dir():  # another process was faster, and what it put there is complete
            return final
        raise DataError(
            f"{source.name} cannot be put into {cache}: {error.strerror or error}; make room, "
            "or set FEDMF_CACHE to another folder"
        ) from error
    return final


def _refuse_other_files(source: Source, folder: Path) -> None:
    for file in check_files(source, folder):
        if not file.good:
            raise DataError(
                f"{file.name} of the archive is {file.state.value}: it is another edition of "
                f"{source.name}; nothing is kept"
            )
