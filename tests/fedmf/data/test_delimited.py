"""CSV files: quotes, headers, lines in messages, and the memory of a pass."""

from __future__ import annotations

import os
import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf import read_ratings
from fedmf.errors import DataError

HEAD = "user,item,rating\n"
BODY = "".join(f"user {row},item {row % 50},{row % 5 + 1}\n" for row in range(5000))


@pytest.fixture
def read(tmp_path):
    def of(text, columns=("user", "item", "rating"), **options):
        path = tmp_path / "ratings.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_ratings(path, columns, **{"scale": (1, 5), **options})

    return of


STRAY = {
    "never closed": ('a,"Film,3\n' + BODY, 2),
    "in the first field": ('"a,Film,3\n' + BODY, 2),
    "in the last field": ('a,Film,"3\n' + BODY, 2),
    "in the last line": (BODY + 'a,"Film,3\n', 5002),
    "below blank lines": ("\n\n" + 'a,"Film,3\n' + BODY, 4),
    "closed far below": ('a,"Film,3\n' + BODY + 'b,Film",4\n', 2),
    "before a quoted field": ('a,"Film,3\n' + BODY + 'b,"Blade, Runner",4\n', 2),
    "inside quotes": ('a,"Fi"lm",3\n' + BODY, 2),
    "past the limit of a field": ('a,"Film,3\n' + BODY * 2, 2),
    "below a field of two lines": ('"a\nb",Film,3\nc,"Film,3\n' + BODY, 4),
}


@pytest.mark.parametrize("end", ["\n", "\r"])
@pytest.mark.parametrize("kind", STRAY)
def test_stray_quote_raises_with_the_line_where_it_opens(read, kind, end):
    body, line = STRAY[kind]
    with pytest.raises(DataError, match=rf"line {line}: .*quote"):
        read((HEAD + body).replace("\n", end))


@pytest.mark.parametrize("head", ['"user,item,rating\n', 'user,"item,rating\n'])
@pytest.mark.parametrize("last", ["", 'b,Film",4\n'])
def test_stray_quote_in_the_header_raises_with_line_1(read, head, last):
    with pytest.raises(DataError, match=r"line 1: .*quote"):
        read(head + BODY + last)


@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from(["item", "user"]))
def test_no_quote_joins_ratings(tmp_path_factory, above, below, side):
    """A quote that opens in one line and closes in another loses the lines between."""
    path = tmp_path_factory.getbasetemp() / "joined.csv"
    rows = [[f"u{row}", f"i{row}", "3"] for row in range(above + below + 2)]
    place = ("user", "item").index(side)
    rows[above][place] = '"' + rows[above][place]
    rows[above + below][place] += '"'
    path.write_text(HEAD + "".join(",".join(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=rf"line {above + 2}: "):
        read_ratings(path, scale=(1, 5))


@pytest.mark.parametrize(
    "name",
    ["two\nlines", "a\n\nb", "a,b,c\nd", "a,b\nc,d", "x,y,z\nfar, far away\n1,2", 'a""b'],
)
def test_field_that_spans_lines_is_read(read, name):
    ratings = read(f'{HEAD}"{name}",x,3\nb,y,4\n')
    assert sorted(ratings.values.tolist()) == [3, 4]
    assert ratings.n_users == 2


@pytest.mark.parametrize(
    "value",
    ["4,5", "4/5", "3 stars", "★★★★", "***", "n/a", "", "Yes", "~4", "(3)"],
)
@pytest.mark.parametrize("lines", [2, 9])
def test_no_quote_joins_ratings_that_are_no_numbers(read, value, lines):
    """The last is a number, as the row is then one rating of an item with a long name."""
    rows = [f"u{row};i{row};{value}" for row in range(lines)]
    rows[0] = rows[0].replace("i0", '"i0')
    rows[-1] = 'u;Film";4'
    with pytest.raises(DataError, match=rf"line 2: .*quote joins the lines 2 to {lines + 1}"):
        read("\n".join(["user;item;rating", *rows]) + "\n")


@pytest.mark.parametrize("value", ["good", "B", "very bad", "3\n\n \n"])
def test_no_quote_joins_many_lines_of_words(read, value):
    """Two lines may be a name; many lines with the right number of fields are ratings."""
    rows = [f"u{row},i{row},{value}" for row in range(5)]
    rows[0] = rows[0].replace("i0", '"i0')
    with pytest.raises(DataError, match=r"line 2: .*quote"):
        read(HEAD + "\n".join([*rows, 'u,Film",4']) + "\n")


def test_long_field_is_compared_in_linear_time(read):
    """A field of the greatest length, of marks and then a letter."""
    marks = "." * 60_000 + "x"
    with pytest.raises(DataError, match="line 2"):
        read(f'{HEAD}a,"Film,{marks}\nb,Film",{marks}\n')


@pytest.mark.parametrize(
    "line", ["sep=;", "sep=;\r", "SEP=;", '"sep=;"', "sep=; ", "\ufeffsep=;", "\nsep=;"]
)
@pytest.mark.parametrize("mark", [";", ",", "\t", "|"])
def test_line_of_excel_is_not_the_header(read, line, mark):
    """It counts as a line."""
    text = f"{line}\nuser;item;rating\n1;x;3\n".replace(";", mark)
    assert read(text).item_ids.tolist() == ["x"]
    with pytest.raises(DataError, match=rf"line {line.count(chr(10)) + 3}: rating 'y'"):
        read(text.replace("3", "y"))


@pytest.mark.parametrize("line", ["sep=", "sep=:", "sep=;;", "separator=;", "sep;", "x sep=;"])
def test_other_lines_above_the_header_are_none_of_excel(read, line):
    with pytest.raises(DataError, match="line 2 has them: remove the lines above it"):
        read(f"{line}\nuser;item;rating\na;b;3\n")


@pytest.mark.parametrize(
    "text",
    [
        '[{"user": "a", "item": "b", "rating": 3}]',
        '[\n  {"user": "a", "item": "b", "rating": 3}\n]',
        '{"user": "a", "item": "b", "rating": 3}\n{"user": "b", "item": "b", "rating": 3}\n',
        '{\n"user": ["a"],\n"item": ["b"],\n"rating": [3]}',
        "[[1,2,3],[4,5,3]]",
        '\n\n[{"user":"a","item":"b","rating":3}]',
        '\ufeff[{"user":"a","item":"b","rating":3}]',
    ],
)
def test_json_raises_with_its_remedy(read, text):
    line = 1 + 2 * text.startswith("\n")
    with pytest.raises(DataError, match=rf"line {line} .*read_json"):
        read(text)


@pytest.mark.parametrize("names", [("[user", "item", "rating"), ("{user}", "item", "rating")])
def test_names_with_brackets_are_no_json(read, names):
    with pytest.raises(DataError, match="line 2 has them"):
        read(f"[mine]\n{HEAD}a,b,3\n")
    assert len(read(f"{','.join(names)}\na,b,3\n", names)) == 1


HEADERS = {
    "a decimal": ("Ada,Dune,4.5\n", "user,item,rating"),
    "capitals": ("USER,ITEM,RATING\na,b,3\n", "did you mean 'USER'"),
    "a comment": ("# mine\n" + HEAD + "a,b,3\n", "line 2 .*remove the lines"),
    "::": ("user::item::rating\na::b::3\n", "'::' by a tab$"),
    ":: without names": ("1::1193::5::978300760\n", "'::'.*tab, .*user,item,rating"),
    ":: with one number": ("ada::8::dune\n", "'::' by a tab$"),
    ":: with blanks": (" 7 :: 8 :: 4 \n", "'::'.*tab, .*user,item,rating"),
    "twice": ("user,item,rating,rating\na,b,3,1\n", "'rating'.* 3, 4"),
    "thrice": ("item;user;item;rating;item\na;b;c;3;d\n", "'item'.* 1, 3, 5"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_wrong_header_raises_with_its_remedy(read, kind):
    text, message = HEADERS[kind]
    with pytest.raises(DataError, match=message):
        read(text)


FILMS = [f"film_{i:05d}" for i in range(12_000)]
WIDE = {
    "a column for each item": "user," + ",".join(FILMS),
    "one long word with spaces": "x " * 100_000,
    "JSON in a line": "[" + '{"user":1},' * 20_000 + "]",
    "below a title": "films\n" + "y" * 200_000,
    "an open quote": '"' + "x" * 200_000,
}


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_first_lines_beyond_a_field_of_csv_raise(read, text):
    with pytest.raises(DataError):
        read(f"{text}\n")


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("above", ["", "\n\n", "  \n", "\ufeff\n"])
@pytest.mark.parametrize("marked", ["", "\ufeff"])
def test_blank_lines_above_the_header_do_not_count(read, above, mark, marked):
    """A mark of the byte order may stand below them, as in files that were put together."""
    text = marked + (HEAD + "a,b,3\n \nc,d,4\n").replace(",", mark)
    assert len(read(above + text)) == 2
    with pytest.raises(DataError, match=rf"line {above.count(chr(10)) + 4}"):
        read(above + text.replace("4", "x"))


@pytest.mark.parametrize(
    "columns",
    [
        (0, 1, 2),
        (None, "item", "rating"),
        ("user", 1.5, "rating"),
        (b"user", "item", "rating"),
        ("user", "item", ("rating",)),
        None,
        b"user",
        (float("nan"), "item", "rating"),
        {"user", "item", "rating"},  # the hash seed would decide who is a user
    ],
)
def test_columns_that_are_no_names_raise(read, columns):
    with pytest.raises(DataError):
        read(HEAD + "1,2,3\n", columns)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a,b,True\n", "line 5002.*'True'.*1 and 0"),
        ("a,b,2,5\n", "line 5002.*4 fields.*decimal points"),
        ("a,b\n", "line 5002.*2 fields"),
        ("a, \t,3\n", "line 5002.*item is empty"),
        ("a,b,inf\n", "line 5002.*inf"),
        ("a,b,6\n", "line 5002.* 6 "),
        ("a\0,b,3\n", r"line 5002.*NUL"),
        (f"a,b,{'y' * 5000}\n", r"line 5002.*'y{10,50}…"),
        ("x" * 200_000 + ",b,3\n", "line 5002.*131072"),
        (b"a,\xff,3\n", "line 5002.*0xff"),
    ],
)
def test_wrong_entry_far_below_raises_with_its_line(read, body, message):
    """Rows are read in batches, and bytes in chunks."""
    body = body.encode() if isinstance(body, str) else body
    with pytest.raises(DataError, match=message):
        read((HEAD + BODY).encode() + body + BODY.replace("u", "v").encode())


def test_file_that_cannot_be_read_twice_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(HEAD + BODY,))
    writer.start()
    try:
        assert len(read_ratings(path, scale=(1, 5))) == 5000
    finally:
        writer.join()


@pytest.mark.slow
@pytest.mark.parametrize("text", [False, True])
def test_reading_takes_at_most_100_bytes_a_rating(tmp_path, text):
    path = tmp_path / "ratings.csv"
    n, users = 1_000_000, 10_000
    with path.open("w") as file:
        file.write("user,item,rating,time\n")
        for row in range(n):
            user, item = row % users, (row // users * 37 + row % users) % 4000
            ids = f"user {user},film {item}" if text else f"{user},{item}"
            file.write(f"{ids},{row % 5 + 1},{1_000_000_000 + row * 7919 % n}\n")
    columns = ("user", "item", "rating", "time")
    tracemalloc.start()
    ratings = read_ratings(path, columns, scale=(1, 5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(ratings) == n
    assert peak <= 100 * n
