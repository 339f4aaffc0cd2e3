"""Rating files: every kind of damage is an error that names the file and the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf.data.sets.lines import read_bytes, read_lines, read_rating_table
from fedmf.errors import DataError

SOUND = b"1::10::5::100\n1::20::3::90\n2::10::4::0\n"


def table(folder: Path, content: bytes, **changes):
    path = folder / "ratings.dat"
    path.write_bytes(content)
    form = {"separator": "::", "header": "", "scale": (1.0, 5.0)} | changes
    return read_rating_table(path, **form)


def test_columns_are_as_written_in_the_files_order(tmp_path):
    read = table(tmp_path, SOUND)
    assert read.users.tolist() == [1, 1, 2]
    assert read.items.tolist() == [10, 20, 10]
    assert read.values.tolist() == [5.0, 3.0, 4.0]
    assert read.times.tolist() == [100, 90, 0]


def test_crlf_and_a_header_are_read(tmp_path):
    content = b"user,item\r\n1,10,0.5,100\r\n1,999999998,5.0,999999999999\r\n"
    form = {"separator": ",", "header": "user,item", "scale": (0.5, 5.0)}
    read = table(tmp_path, content, **form)
    assert read.values.tolist() == [0.5, 5.0]
    assert (read.items[1], read.times[1]) == (999999998, 999999999999)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (b"2::20::3", "4 fields"),
        (b"", "4 fields"),
        (b"2:: 20::3::4", "item id"),
        (b"2::20::nan::4", "rating 'nan'"),
        (b"2::2\xff0::3::4", r"item id '2\\\\xff0'"),
        (b"2::1234567890::3::4", "item id"),
        (b"2::20::3::1234567890123", "time"),
        (b"2::20::6::4", "rating 6"),
        (b"2::20::0::4", "rating 0"),
        (b"2::20::3.5::4", "rating 3.5"),
        (b"2::10::3::4", "user 2 .*item 10"),
    ],
)
def test_damaged_line_raises_with_its_number(tmp_path, bad, field):
    with pytest.raises(DataError, match=rf"ratings\.dat, line 4: .*{field}"):
        table(tmp_path, SOUND + bad + b"\n3::10::3::4\n")


def test_several_damages_raise_for_the_first(tmp_path):
    with pytest.raises(DataError, match=r"line 4: user 2 .*item 10"):
        table(tmp_path, SOUND + b"2::10::3::4\n1::10::3::4\n")
    with pytest.raises(DataError, match="line 4: rating 7"):
        table(tmp_path, SOUND + b"2::30::7::4\n1::30::0::4\n")
    with pytest.raises(DataError, match=r"line 4: .*rating 'a'"):
        table(tmp_path, SOUND + b"2::30::a::4\n1::30::3\n")


def test_lines_are_counted_with_the_header(tmp_path):
    head = {"header": "head", "separator": ","}
    for bad in (b"1,2,x,4\n", b"1,1,9,1\n", b"1,1,1,1\n"):
        with pytest.raises(DataError, match="line 3:"):
            table(tmp_path, b"head\n1,1,1,1\n" + bad, **head)


def test_wrong_or_missing_header_raises(tmp_path):
    with pytest.raises(DataError, match=r"line 1: .*'head'.*'1::10"):
        table(tmp_path, SOUND, header="head")
    with pytest.raises(DataError):
        table(tmp_path, b"head\r\n", header="head")


@given(cut=st.integers(0, len(SOUND) - 1))
def test_file_cut_inside_a_line_raises(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("cut")
    rest = SOUND[:cut]
    if rest.endswith(b"\n"):  # between two lines: found by the counts (test_movielens)
        assert table(folder, rest).users.size == rest.count(b"\n")
        return
    expected = f"line {rest.count(bytes([10])) + 1}:"
    with pytest.raises(DataError, match=expected if cut else r"ratings\.dat"):
        table(folder, rest)


@given(at=st.integers(0, len(SOUND) - 1), byte=st.integers(0, 255))
def test_changed_byte_gives_numbers_or_one_kind_of_error(tmp_path_factory, at, byte):
    """Any changed byte gives four numbers or one kind of error."""
    content = SOUND[:at] + bytes([byte]) + SOUND[at + 1 :]
    try:
        read = table(tmp_path_factory.mktemp("byte"), content)
    except DataError as error:
        assert re.search(r"ratings\.dat, line [1-3]:", str(error))
    else:
        columns = (read.users, read.items, read.values.astype(int), read.times)
        lines = [b"%d::%d::%d::%d" % row for row in zip(*columns, strict=True)]
        spelled = [re.sub(rb"\b0+(?=[0-9])|\.0+\b", b"", line) for line in content.split()]
        assert lines == spelled


def test_missing_file_or_folder_in_its_place_raises(tmp_path):
    with pytest.raises(DataError, match=r"u\.data"):
        read_bytes(tmp_path / "u.data")
    (tmp_path / "u.item").mkdir()
    with pytest.raises(DataError, match=r"u\.item"):
        read_bytes(tmp_path / "u.item")


def test_read_lines_decodes_and_takes_the_ends_off(tmp_path):
    path = tmp_path / "names"
    path.write_bytes("Amélie\r\nTítulo\n".encode("latin-1"))
    assert read_lines(path, "latin-1") == ["Amélie", "Título"]
    with pytest.raises(DataError, match="names, line 1: byte 0xe9"):
        read_lines(path, "utf-8")
    path.write_bytes(b"A\nB\x00C\n")
    with pytest.raises(DataError, match="names, line 2"):
        read_lines(path, "utf-8")
