"""Where data sets are sought: below ``FEDMF_DATA``, then in the cache that ``fetch`` fills."""

from __future__ import annotations

import os
from pathlib import Path

from fedmf.data.sets.sources import Source
from fedmf.errors import DataError

__all__ = ["cache_folder", "folder_of", "found_folder"]


def cache_folder() -> Path:
    """Return the folder that ``fedmf data fetch`` fills; it need not exist.

    It is the one that the environment variable ``FEDMF_CACHE`` names, else "fedmf" in
    ``XDG_CACHE_HOME`` or in "~/.cache".
    """
    if named := os.environ.get("FEDMF_CACHE", ""):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path there is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "fedmf"


def found_folder(source: Source, root: Path | None = None) -> Path | None:
    """Return the folder that holds this source's files, or None if it is nowhere.

    Parameters
    ----------
    root
        Where to look, and nowhere else; None looks in ``FEDMF_DATA``, then in the cache.
    """
    if root is not None:
        roots = [root]
    else:
        named = os.environ.get("FEDMF_DATA", "")
        roots = [*([Path(named)] if named else []), cache_folder()]
    return next((one / source.folder for one in roots if (one / source.folder).is_dir()), None)


def folder_of(source: Source, root: Path | None = None) -> Path:
    """Return the folder that holds this source's files, as `found_folder`.

    Raises
    ------
    DataError
        If there is no such folder; the message tells the ways to get it.
    """
    folder = found_folder(source, root)
    if folder is not None:
        return folder
    named = os.environ.get("FEDMF_DATA", "")
    if root is not None:
        places = f"in {root}"
    elif named:
        places = f"in {named} nor in the cache {cache_folder()}"
    else:
        places = f"in the cache {cache_folder()}, and FEDMF_DATA is not set"
    raise DataError(
        f"there is no folder {source.folder!r} {places}: run 'fedmf data fetch {source.name}', "
        f"or download {source.archive} yourself, unzip it, and set FEDMF_DATA to the folder "
        f"that holds {source.folder!r}; the data set 'simulated' needs none of this"
    )
