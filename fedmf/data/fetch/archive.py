"""Unpacking of a data set's untrusted zip file."""

from __future__ import annotations

import errno
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from fedmf.errors import DataError

LARGEST = 2 * 1024**3  # bytes in all, unpacked; MovieLens 10M has 0.3 GB
USUAL = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# raised for damaged bytes; ValueError by an undecodable name
UNSOUND = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError)


def unpack(archive: Path, folder: Path, needed: Iterable[str]) -> None:
    """Unpack the files of a single folder of a zip file; the folder may be at any depth.

    Parameters
    ----------
    archive : the zip file
    folder : existing and empty folder for the files
    needed
        Names of the files that must be in the archive. The folder of the first file is
        unpacked.

    Raises
    ------
    DataError
        If the zip file is damaged, lacks a needed file, or unpacks to more than `LARGEST`
        bytes. Also if a member has a path out of the folder, a link, a password, a repeated
        name or a rare compression.
    OSError
        If a file cannot be written.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            members = packed.infolist()
            _check_members(members)
            for name, member in _of_one_folder(members, list(needed)).items():
                with packed.open(member) as source, (folder / name).open("xb") as target:
                    shutil.copyfileobj(source, target)
    except (*UNSOUND, OSError) as error:
        # EINVAL means a seek before the beginning, not a failed write
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise DataError(
            f"the archive is a damaged zip file ({error}): fetch it again"
        ) from None


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for member in members:
        # as written in the archive: zipfile cuts a name at a NUL
        name = member.orig_filename
        flaws = {
            "a path that may lead out of the folder": name.startswith("/")
            or ".." in PurePosixPath(name).parts
            or not set(name).isdisjoint("\\:\0"),
            # from Python 3.12 on, zipfile accepts an empty name
            "no letter": not name,
            "a link": stat.S_ISLNK(member.external_attr >> 16),
            "a password": member.flag_bits & 1,
            "the same name twice": name in seen,
            "a compression that data sets do not have": member.compress_type not in USUAL,
        }
        for flaw, found in flaws.items():
            if found:
                raise DataError(
                    f"the archive has a member {name!r} with {flaw}: give another --url"
                )
        seen.add(name)
    size = sum(member.file_size for member in members)
    if size > LARGEST:
        raise DataError(
            f"the archive unpacks to {size} bytes, over {LARGEST}: give another --url"
        )


def _of_one_folder(
    members: list[zipfile.ZipInfo], needed: list[str]
) -> dict[str, zipfile.ZipInfo]:
    """Return the members in the folder of the first needed file, by file name."""
    files = {PurePosixPath(one.filename): one for one in members if not one.is_dir()}
    homes = sorted((path.parent for path in files if path.name == needed[0]), key=str)
    if not homes:
        raise DataError(f"the archive has no file {needed[0]}: give the --url of this data set")
    found = {path.name: one for path, one in files.items() if path.parent == homes[0]}
    for name in needed:
        if name not in found:
            raise DataError(
                f"the archive has no file {name} beside {needed[0]}: give another --url"
            )
    return found
