"""Sources of the data sets in sets.toml: archives, terms of use, and checksums of files.

GroupLens publishes the MD5 of an archive. The MD5 detects damage; authenticity rests on https.
The SHA-256 of a file is from the copy that gave this library's published figures. A file listed
with "" has no checksum, as editions differ in line ends or time stamps. The content of such a
file is validated instead, by the published numbers of users, items and ratings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import TypeVar

import msgspec

Row = TypeVar("Row")
_TABLES = msgspec.toml.decode(files("fedmf.data.sets").joinpath("sets.toml").read_bytes())


@dataclass(frozen=True)
class Source:
    """Archive on the web with at least one data set.

    Parameters
    ----------
    name : name for ``fedmf data fetch``
    page : address of a description with the full terms
    terms : summary of the terms of use
    files : names of the files that are read, each with the SHA-256 in hexadecimal, or ""
    folder : name of the folder with the files; by default `name`
    sets : names of the data sets for `fedmf.data.load`; by default `name` alone
    archive, md5
        Address of the zip file, and the MD5 of the file or None. The address is empty without a
        stable public download.
    """

    name: str
    page: str
    terms: str
    files: Mapping[str, str]
    folder: str = ""
    sets: tuple[str, ...] = ()
    archive: str = ""
    md5: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", self.folder or self.name)
        object.__setattr__(self, "sets", self.sets or (self.name,))


def rows(kind: str, form: type[Row]) -> dict[str, Row]:
    """Return the tables ``[[kind]]`` of sets.toml as dataclasses, by the name of the set."""
    found = (msgspec.convert(row, form) for row in _TABLES[kind])
    return {row["name"]: one for row, one in zip(_TABLES[kind], found, strict=True)}


SOURCES: Mapping[str, Source] = MappingProxyType(rows("source", Source))
