"""Unpacking a data set's zip file, which is not trusted: only plain files, only where told."""

from __future__ import annotations

import errno
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from fedmf.errors import DataError

__all__ = ["LARGEST", "unpack"]

LARGEST = 2 * 1024**3  # bytes in all, unpacked; MovieLens 10M has 0.3 GB


USUAL = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile raises on bytes that are no zip file, or half of one: a name that is no text is a
# ValueError, an empty one an IndexError.
UNSOUND = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    IndexError,
    NotImplementedError,
    ValueError,
)


def unpack(archive: Path, folder: Path, needed: Iterable[str]) -> None:
    """Unpack the files of one folder of a zip file.

    That folder is the one, at any depth, in which the first of the `needed` files lies: some
    archives hold a folder of the data set's name and some hold the bare files.

    Parameters
    ----------
    folder
        Where to put them; it must exist and be empty.
    needed
        The names of the files that must be there.

    Raises
    ------
    DataError
        If it is not a sound zip file, a needed file is missing, or it holds what no data set
        holds: a path that leads out of the folder, a link, a password, a name twice, a rare
        compression, more than `LARGEST` bytes.
    OSError
        If a file cannot be written.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            members = packed.infolist()
            _refuse_tricks(members)
            wanted = _of_one_folder(members, list(needed))
            for name, member in wanted.items():
                with packed.open(member) as source, (folder / name).open("xb") as target:
                    shutil.copyfileobj(source, target)
    except UNSOUND as error:
        raise _unsound(error) from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # that is no write, but a seek to before the beginning
            raise
        raise _unsound(error) from None


def _unsound(error: Exception) -> DataError:
    return DataError(f"the archive is not a sound zip file: {error}; fetch it again")


def _refuse_tricks(members: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for member in members:
        name = member.orig_filename  # as written: zipfile itself cuts at a NUL
        parts = PurePosixPath(name).parts
        what = ""
        if name.startswith("/") or ".." in parts or set(name) & set("\\:\0"):
            what = "a path that may lead out of the folder"
        elif stat.S_ISLNK(member.external_attr >> 16):
            what = "a link"
        elif member.flag_bits & 1:
            what = "a password"
        elif name in seen:
            what = "the same name twice"
        elif member.compress_type not in USUAL:
            what = "a compression that data sets do not have"
        if what:
            raise DataError(f"the archive is refused: {name!r} is or has {what}")
        seen.add(name)
    size = sum(member.file_size for member in members)
    if size > LARGEST:
        raise DataError(f"the archive is refused: it unpacks to {size} bytes, over {LARGEST}")


def _of_one_folder(
    members: list[zipfile.ZipInfo], needed: list[str]
) -> dict[str, zipfile.ZipInfo]:
    """Return the members beside the first needed file, by their bare names."""
    files = {PurePosixPath(one.filename): one for one in members if not one.is_dir()}
    homes = sorted((path.parent for path in files if path.name == needed[0]), key=str)
    if not homes:
        raise DataError(f"the archive holds no file {needed[0]}: it is not this data set's")
    found = {path.name: one for path, one in files.items() if path.parent == homes[0]}
    for name in needed:
        if name not in found:
            raise DataError(f"the archive holds no file {name} beside {needed[0]}")
    return found
