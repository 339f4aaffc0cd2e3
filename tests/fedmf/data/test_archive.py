"""Damaged and unusual zip files are unpacked whole or raise a DataError."""

from __future__ import annotations

import io
import re
import stat
import zipfile

import pytest

from fedmf.data.fetch import archive as module
from fedmf.data.fetch.archive import unpack
from fedmf.errors import DataError
from file_server import FILES, GOOD, NAME, zipped


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


def member(name: str = "x", *, to: bytes = GOOD, **attributes: object) -> bytes:
    """Return an archive with another member."""
    info = zipfile.ZipInfo(name)
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    packed = io.BytesIO(to)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(info, b"x")
    return packed.getvalue()


def locked() -> bytes:
    content = bytearray(GOOD)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.rindex(mark) + offset] |= 1
    return bytes(content)


def short_field() -> bytes:
    """Return an archive whose sizes are said to be in a field with half a number."""
    content = bytearray(member(extra=b"\x01\x00\x04\x00abcd", to=zipped({})))
    at = content.rindex(b"PK\x01\x02") + 20
    content[at : at + 8] = b"\xff" * 8
    return bytes(content)


UNSAFE = [f"{NAME}/../../x", "/etc/x", "a\\..\\x", "C:x"]
LINK = {"external_attr": (stat.S_IFLNK | 0o777) << 16}
# zipfile itself asks for the last letter of an empty name, unless the member is a folder
EMPTY = {"filename": "", "orig_filename": "", "external_attr": 1}
TWO = {name: FILES[name] for name in ("ratings.csv", "movies.csv")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((member(name), re.escape(repr(name))) for name in UNSAFE),
        (member(f"{NAME}/tags.csx").replace(b"csx", b"csv"), "tags.csv' .*twice"),
        (member(**LINK), "'x' with a link"),
        (member(compress_type=zipfile.ZIP_BZIP2), "'x' .*compression"),
        (member(compress_type=zipfile.ZIP_LZMA), "'x' .*compression"),
        (member(**EMPTY), "member ''"),
        (locked(), f"'{NAME}/README.txt' .*password: "),
        (zipped({"ü": b""}).replace("ü".encode(), b"\xff\xff"), "zip"),
        (short_field(), "zip"),
        (b"<html>no</html>", "zip"),
        (zipped({"other.csv": b""}), r"^the archive .*ratings\.csv"),
        (zipped(TWO), r"^the archive .*tags\.csv .*ratings\.csv"),
        (GOOD.replace(b"B,(no genres", b"C,(no genres"), "CRC-32"),
    ],
)
def test_unsound_archive_raises(content, message, tmp_path):
    (tmp_path / "archive.zip").write_bytes(content)
    (tmp_path / "a" / "there").mkdir(parents=True)
    with pytest.raises(DataError, match=message):
        unpack(tmp_path / "archive.zip", tmp_path / "a" / "there", FILES)
    assert not list(tmp_path.rglob("x"))


def test_archive_that_unpacks_beyond_the_limit_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 100)
    (tmp_path / "archive.zip").write_bytes(GOOD)
    with pytest.raises(DataError, match=r" \d+ bytes.* 100: "):
        unpack(tmp_path / "archive.zip", tmp_path, FILES)
