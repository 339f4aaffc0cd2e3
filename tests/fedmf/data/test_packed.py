"""Packed files: what the standard library unpacks is read, the rest raises with the remedy."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import pytest

from fedmf import read_ratings
from fedmf.errors import DataError

TEXT = b"user,item,rating\nAda,Dune,5\nBo,Alien,3\n" + b"Cy,Dune,4\n\n" * 3000
TEXT = TEXT.replace(b"Cy", b"Cy%d") % tuple(range(3000))


def zipped(*names):
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, b"" if name.endswith("/") else TEXT)
    return body.getvalue()


def packed_gzip(text):
    return gzip.compress(text, mtime=0)


READ = {
    "gzip": packed_gzip(TEXT),
    "twice": packed_gzip(packed_gzip(TEXT)),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zip": zipped("ratings.csv"),
    "zip of a folder": zipped("data/", "data/ratings.csv"),
    "zip of a Mac": zipped("ratings.csv", "__MACOSX/._ratings.csv"),
    "gzip of UTF-8 with BOM": packed_gzip(b"\xef\xbb\xbf" + TEXT),
}


@pytest.mark.parametrize("kind", READ)
def test_packed_file_is_read_whatever_its_name(tmp_path, kind):
    path = tmp_path / ("ratings.gz" if kind == "xz" else "ratings.csv")
    path.write_bytes(READ[kind])
    ratings = read_ratings(path, scale=(1, 5))
    assert (len(ratings), ratings.user_ids[:2].tolist()) == (3002, ["Ada", "Bo"])


WRONG = {
    "zstd": (b"\x28\xb5\x2f\xfd\x04", "zstd"),
    "tar": (b"ratings.csv".ljust(257, b"\0") + b"ustar\0", "tar"),
    "tar.gz": (packed_gzip(b"ratings.csv".ljust(257, b"\0") + b"ustar\0"), "tar"),
    "zip of two": (zipped("a.csv", "b.csv"), "a.csv.*b.csv"),
    "Excel": (zipped("[Content_Types].xml", "xl/workbook.xml"), "Excel"),
    "Parquet in gzip": (packed_gzip(b"PAR1\x15\x04"), "parquet"),
    "UTF-16": (TEXT.decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without BOM": (TEXT.decode().encode("utf-16-le"), r"line 1.*UTF-16"),
    "UTF-32": (TEXT.decode().encode("utf-32"), "UTF-32"),
    "gzip, cut short": (packed_gzip(TEXT)[:-9], "unpacked"),
    "gzip, damaged": (packed_gzip(TEXT)[:-8] + bytes(8), "unpacked"),
    "gzip, a header": (packed_gzip(TEXT)[:4], "unpacked"),
    "xz, cut short": (lzma.compress(TEXT)[:-9], "unpacked"),
    "zip, cut short": (zipped("a.csv")[:-9], "unpacked"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_other_format_raises_with_its_name(tmp_path, kind):
    body, name = WRONG[kind]
    path = tmp_path / "ratings.csv"
    path.write_bytes(body)
    with pytest.raises(DataError, match=name):
        read_ratings(path, scale=(1, 5))


def test_text_that_starts_like_a_format_is_text(tmp_path):
    path = tmp_path / "ratings.csv"
    for name in ("BZh9", "PAR1", "PK", "Rar!", "ORC"):
        path.write_text(f"{name},user,item,rating\n0,a,x,3\n")
        assert len(read_ratings(path, scale=(1, 5))) == 1
