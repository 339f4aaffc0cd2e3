"""Files that may be packed: gzip, bzip2, xz and zip are read, others raise with the remedy."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from fedmf.errors import DataError

OPENERS = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\0": lzma.open,
    b"]\0\0": lzma.open,  # the older format .lzma
    **{b"BZh%d1AY&SY" % level: bz2.open for level in range(1, 10)},
}
ZIP = b"PK\x03\x04"
UNPACK = "unpack it, for example with {}"
CSV = "save it as CSV in UTF-8"
FORMATS = {
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", UNPACK.format("zstd -d")),
    b"\x04\x22\x4d\x18": ("compressed with lz4", UNPACK.format("lz4 -d")),
    b"\x1f\x9d": ("compressed with compress", UNPACK.format("gzip -d")),
    b"7z\xbc\xaf\x27\x1c": ("a compressed archive of 7-Zip", UNPACK.format("7z x")),
    b"Rar!\x1a": ("a compressed archive of RAR", UNPACK.format("unrar x")),
    b"\xff\xfe\0\0": ("in UTF-32", "save it in UTF-8"),
    b"\xff\xfe": ("in UTF-16", "save it in UTF-8"),
    b"\xfe\xff": ("in UTF-16", "save it in UTF-8"),
    b"PAR1\x15": ("a Parquet file", "let its name end in .parquet"),
    b"ARROW1\0": ("a Feather file of Arrow", "pass the table that pyarrow.feather reads"),
    b"\xd0\xcf\x11\xe0": ("a workbook of Excel", CSV),
    b"\x89HDF": ("a file of HDF5", "read it into a frame and pass that"),
    b"SQLite format 3": ("a database of SQLite", "pass a frame of its table"),
    b"\x93NUMPY": ("an array of numpy", "pass its columns to from_triples"),
    b"\x80\x04": ("a pickle", CSV),
    b"\x80\x05": ("a pickle", CSV),
}
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of text for reading, unpacked.

    Raises
    ------
    DataError
        If the file cannot be opened or read, is damaged, or is of a format that is not read.
    """
    try:
        with ExitStack() as stack:
            file: Any = stack.enter_context(path.open("rb"))
            while opens := _opener(file.peek(16)):
                file = stack.enter_context(opens(file))
            head = file.peek(512)
            if found := _foreign(head):
                raise DataError(f"{path} is {found[0]}: {found[1]}")
            yield file
    except DAMAGED as error:
        raise DataError(f"{path} cannot be unpacked: {error}: copy or pack it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _opener(head: bytes) -> Any:
    """Return the function that unpacks a file with these first bytes, or None."""
    if head.startswith(ZIP):
        return _member
    return next((opens for mark, opens in OPENERS.items() if head.startswith(mark)), None)


def _foreign(head: bytes) -> tuple[str, str] | None:
    """Return the format of a file that is no text, and the remedy; None for other bytes."""
    if head[257:262] == b"ustar":
        return "an archive of tar", UNPACK.format("tar -xf")
    return next((found for mark, found in FORMATS.items() if head.startswith(mark)), None)


def _member(file: IO[bytes]) -> IO[bytes]:
    """Open the only file in a zip archive; raises DataError for several files or none."""
    archive = zipfile.ZipFile(file)
    names = [name for name in archive.namelist() if not name.endswith("/")]
    names = [name for name in names if not name.startswith("__MACOSX/")]
    if "[Content_Types].xml" in names:
        raise DataError(f"{file.name} is a workbook of Excel: {CSV}")
    if len(names) != 1:
        shown = ", ".join(map(repr, names[:5])) or "none"
        raise DataError(
            f"{file.name} is a zip archive of {len(names)} files ({shown}): unpack it, and "
            "pass the file with the ratings"
        )
    try:
        return archive.open(names[0])
    except (NotImplementedError, RuntimeError) as error:
        # an encrypted file, or a method that zipfile lacks
        raise DataError(f"{file.name} cannot be unpacked here: {error}: unpack it") from error
