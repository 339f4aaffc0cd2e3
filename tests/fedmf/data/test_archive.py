"""Damaged and unusual zip files are unpacked whole or raise a DataError."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from fedmf.data.fetch.archive import unpack
from fedmf.errors import DataError

NAME = "ml-latest-small"
FILES = dict.fromkeys(("ratings.csv", "movies.csv", "tags.csv"), b"a,b\r\n1,2\r\n")


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{NAME}/{name}", content)
    return packed.getvalue()


GOOD = zipped(FILES | {"README.txt": b"terms\n"})


def rejects(content: bytes, folder: Path, message: str) -> None:
    archive = folder / "archive.zip"
    archive.write_bytes(content)
    (folder / "there").mkdir(exist_ok=True)
    with pytest.raises(DataError, match=message):
        unpack(archive, folder / "there", FILES)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archive_with_a_rare_compression_raises(tmp_path, method):
    """Their damage would show as errors of their own kinds."""
    packed = io.BytesIO(GOOD)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("x", b"x" * 100, compress_type=method)
    rejects(packed.getvalue(), tmp_path, "'x' .*compression")


def test_archive_with_any_damage_is_read_or_raises(tmp_path):
    """Every byte of the directory, and some of the rest, with a bit turned."""
    start = GOOD.index(b"PK\x01\x02")
    places = [*range(start, len(GOOD)), *range(0, start, 11)]
    archive = tmp_path / "archive.zip"
    failed = 0
    for number, place in enumerate(places):
        content = bytearray(GOOD)
        content[place] ^= 0x80 >> number % 8
        archive.write_bytes(content)
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            unpack(archive, folder, FILES)
        except DataError:
            failed += 1
    assert failed > len(places) // 2


def test_archive_with_an_empty_name_raises(tmp_path):
    packed = io.BytesIO(GOOD)
    with zipfile.ZipFile(packed, "a") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = info.orig_filename = ""
        info.external_attr = 1  # or zipfile itself asks for the name's last letter
        with archive.open(info, "w"):
            pass
    rejects(packed.getvalue(), tmp_path, "member ''")


def test_undecodable_names_and_short_fields_are_rejected(tmp_path):
    """Names that are no text and fields that end early raise."""
    name = zipped({"ü": b""})  # marked as UTF-8
    rejects(name.replace("ü".encode(), b"\xff\xff"), tmp_path, "zip")
    odd = zipfile.ZipInfo(f"{NAME}/x")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        odd.extra = b"\x01\x00\x04\x00abcd"  # a field of 64-bit sizes with half a number
        archive.writestr(odd, b"x")
    content = bytearray(packed.getvalue())
    at = content.index(b"PK\x01\x02") + 20
    content[at : at + 8] = b"\xff" * 8  # both sizes are said to be in the field
    rejects(bytes(content), tmp_path, "zip")
