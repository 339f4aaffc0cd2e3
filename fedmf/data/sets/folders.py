"""Folders of the data sets: first in ``FEDMF_DATA``, then in the cache of ``fetch``."""

from __future__ import annotations

import os
from pathlib import Path

from fedmf.data.sets.sources import Source
from fedmf.errors import DataError


def cache_folder() -> Path:
    """Return the folder of ``fedmf data fetch`` for data sets, which may not exist yet.

    The environment variable ``FEDMF_CACHE`` names the folder. The default is the folder "fedmf"
    in ``XDG_CACHE_HOME``, or else in "~/.cache".
    """
    if named := os.environ.get("FEDMF_CACHE", ""):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path there is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "fedmf"


def found_folder(source: Source, root: Path | None = None) -> Path | None:
    """Return the folder with the files of a source, or None if there is none.

    The search is in `root` alone; if `root` is None, in ``FEDMF_DATA`` and then in the cache.
    """
    named = os.environ.get("FEDMF_DATA", "")
    roots = [root] if root else [*([Path(named)] if named else []), cache_folder()]
    return next((one / source.folder for one in roots if (one / source.folder).is_dir()), None)


def folder_of(source: Source, root: Path | None = None) -> Path:
    """Return the folder with the files of a source; raises DataError if there is none."""
    if folder := found_folder(source, root):
        return folder
    named = os.environ.get("FEDMF_DATA", "")
    if root is not None:
        places = f"in {root}"
    elif named:
        places = f"in {named} nor in the cache {cache_folder()}"
    else:
        places = f"in the cache {cache_folder()}, and FEDMF_DATA is not set"
    if source.archive:
        remedy = (
            f"run 'fedmf data fetch {source.name}', or unzip {source.archive} into the folder "
            "that FEDMF_DATA names"
        )
    else:
        remedy = (
            f"it has no stable public download; see {source.page}, and put "
            f"{', '.join(source.files)} into that folder inside the one that FEDMF_DATA names"
        )
    raise DataError(
        f"there is no folder {source.folder!r} {places}: {remedy}; the data set 'simulated' "
        "needs no file"
    )
