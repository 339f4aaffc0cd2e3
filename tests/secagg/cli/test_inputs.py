"""Files of `secagg join`, judged before a server is asked, and agreed with each sum."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest

from cli_processes import invoke
from secagg import (
    FixedPoint,
    Integers,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    RoundParams,
)
from secagg.cli.files import create_identity
from secagg.cli.inputs import newest, read_given
from secagg.cli.requests import Request
from secagg.cli.tables import as_columns, as_table
from secagg.cli.vectors import Vectors
from secagg.session import LocalLink, Session, take_part

# a number that no message may have
SECRET = 987654


def array(values: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(values))
    return file.getvalue()


WRONG: dict[str, tuple[str, bytes, bool]] = {
    "no file": ("v.csv", b"", False),
    "no row": ("v.csv", b"a,b\n", False),
    "several rows": ("v.csv", b"a,b\n1,2\n3,%d\n" % SECRET, False),
    "no header": ("v.csv", b"%d,2.5\n1,2\n" % SECRET, False),
    "no header, and one line": ("v.csv", b"%d,%d\n" % (SECRET, SECRET), False),
    "short row": ("v.csv", b"a,b\n%d\n" % SECRET, False),
    "decimal comma, split": ("v.csv", b"a,b\n1,5,%d\n" % SECRET, False),
    "decimal comma, quoted": ("v.csv", b'a,b\n"%d,5",2\n' % SECRET, False),
    "decimal comma, German": ("v.csv", b"a;b\n%d,5;2\n" % SECRET, False),
    "thousands": ("v.csv", b'a\n"1,%d"\n' % SECRET, False),
    "empty cell": ("v.csv", b"a,b\n%d,\n" % SECRET, False),
    "beyond float64": ("v.csv", b"a\n1e400\n", False),
    "NaN": ("v.csv", b"a\nNaN\n", False),
    "infinite": ("v.csv", b"a\n-inf\n", False),
    "underscore": ("v.csv", b"a\n1_0\n", False),
    "text": ("v.csv", b"a\nabc\n", False),
    "digits of another script": ("v.csv", "a\n٣\n".encode(), False),
    "no CSV": ("v.csv", b'a\n"1"2\n', False),
    "no UTF-8": ("v.csv", "é\n1\n".encode("cp1252"), False),
    "UTF-16": ("v.csv", "a\n1\n".encode("utf-16"), False),
    "column twice": ("v.csv", b"a,a\n1,2\n", False),
    "column without a name": ("v.csv", b"a,,b\n1,2,3\n", False),
    "formula": ("v.csv", b"=A1\n1\n", False),
    "terminal": ("v.csv", b"a\x1b[2J\n1\n", False),
    "fraction": ("v.csv", b"a\n1.5\n", True),
    "whole float": ("v.csv", b"a\n1.0\n", True),
    "negative": ("v.csv", b"a\n-1\n", True),
    "beyond 2^62": ("v.csv", b"a\n4611686018427387905\n", True),
    "beyond int64": ("v.csv", b"a\n9223372036854775808\n", True),
    "long integer": ("v.csv", b"a\n" + b"9" * 5000 + b"\n", True),
    "integers in a sum of floats": ("v.npy", array([SECRET]), False),
    "flags in a sum of floats": ("v.npy", array([True]), False),
    "NaN in an array": ("v.npy", array([1.0, np.nan]), False),
    "infinity in an array": ("v.npy", array([np.inf]), False),
    "floats in a sum of integers": ("v.npy", array([1.0, SECRET]), True),
    "negative in an array": ("v.npy", array([-SECRET]), True),
    "beyond 2^62 in an array": ("v.npy", array([1 << 63]), True),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_file_ends_a_client_before_it_connects(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, content, integers = WRONG[name]
    if name != "no file":
        (tmp_path / file).write_bytes(content)
    create_identity(tmp_path / "a.pem")
    more = ["--integers"] if integers else []
    files = ("--identity", "a.pem", "--vector", file, *more, "--patience", "0.01")
    # the URL has no server, which is an error of the connection
    ran = invoke("join", "http://127.0.0.1:9", "--client", "a", *files)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
    assert file in ran.stderr
    assert ";" in ran.stderr  # a remedy
    assert str(SECRET) not in ran.stderr
    assert ran.stderr.rstrip().isprintable()


RIGHT: dict[str, tuple[bytes, bool, tuple[str, ...], list[float]]] = {
    "floats": (b"a,b\n1,-2.5e-3\n", False, ("a", "b"), [1, -0.0025]),
    "semicolons, CRLF, BOM": ("\ufeffa;ü\r\n1;2\r\n".encode(), False, ("a", "ü"), [1, 2]),
    "quotes and spaces": (b'"a, b", c\n"1", 2 \n', False, ("a, b", "c"), [1, 2]),
    "not composed": ("u\u0308\n1\n".encode(), False, ("ü",), [1]),
    "largest": (b"a\n4611686018427387904\n", True, ("a",), [1 << 62]),
    "beyond float64's integers": (b"a\n9007199254740993\n", True, ("a",), [(1 << 53) + 1]),
    "one column, blank end": (b"a\r\n1\r\n\r\n", True, ("a",), [1]),
    "blank lines": (b"a,b\n\n1,2\n\n", True, ("a", "b"), [1, 2]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_table_is_read_exactly(name, tmp_path):
    content, integers, columns, numbers = RIGHT[name]
    (tmp_path / "v.CSV").write_bytes(content)
    given = read_given(tmp_path / "v.CSV", integers=integers)
    assert (given.columns, given.vector.tolist()) == (columns, numbers)
    assert given.vector.dtype == (np.int64 if integers else np.float64)


@pytest.mark.parametrize("numbers", [[1 << 62, 3], [0.1, -5e-324]])
def test_table_of_a_sum_is_read_back_exactly(numbers, tmp_path):
    text = as_table(["a, b", "ü"], np.array(numbers))
    (tmp_path / "sum.csv").write_text(text, encoding="utf-8")
    given = read_given(tmp_path / "sum.csv", integers=isinstance(numbers[0], int))
    assert (given.columns, given.vector.tolist()) == (("a, b", "ü"), numbers)
    assert as_columns(str(tmp_path / "sum.csv")) == as_columns('"a, b", ü') == ("a, b", "ü")


FLOATS = RoundParams(n_clients=4, threshold=3, length=2, encoding=FixedPoint(8.0), session=b"s")
COUNTS = RoundParams(n_clients=4, threshold=3, length=2, encoding=Integers(9), session=b"s")
REQUEST = Request(columns=("a", "b"))
DIFFERENT = {
    "other columns": (REQUEST, Request(columns=("a", "c")), FLOATS),
    "another order": (REQUEST, Request(columns=("b", "a")), FLOATS),
    "fewer columns": (REQUEST, Request(columns=("a",)), FLOATS),
    "no columns": (REQUEST, Request(), FLOATS),
    "another length": (Request(columns=("a",)), Request(columns=("a",)), FLOATS),
    "integers": (REQUEST, REQUEST, COUNTS),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_client_leaves_a_sum_that_its_file_is_not_for(name, tmp_path):
    mine, theirs, params = DIFFERENT[name]
    columns = mine.columns
    (tmp_path / "v.csv").write_text(f"{','.join(columns)}\n{','.join('1' * len(columns))}\n")
    with pytest.raises(LocalProtocolError):
        Vectors([tmp_path / "v.csv"])(theirs.to_bytes(), params)
    # the same file of a period: the client stays
    (tmp_path / "v.csv").rename(tmp_path / "v-2026-03.csv")
    told: list[str] = []
    train = Vectors([tmp_path / "v-{period}.csv"], tell=told.append)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError):
            train(Request("2026-03", theirs.columns).to_bytes(), params)
    assert len(told) == 1


def test_file_of_the_sum_is_sent(tmp_path):
    (tmp_path / "v.csv").write_text("a,b\n1,2\n")
    train = Vectors([tmp_path / "v.csv"])
    assert train(REQUEST.to_bytes(), FLOATS).tolist() == [1, 2]


def test_newest_file_of_a_pattern_is_judged_first(tmp_path):
    pattern = tmp_path / "[{period}]" / "v-{period}.csv"
    told: list[str] = []
    Vectors([pattern], tell=told.append)
    assert str(pattern) in told[0]
    for label, name in ("2026-03", "2026-03"), ("2026-02", "2026-02"), ("2026-04", "2026-05"):
        (tmp_path / f"[{label}]").mkdir()
        (tmp_path / f"[{label}]" / f"v-{name}.csv").write_text("a\n1\n")
    assert newest(pattern) == tmp_path / "[2026-03]" / "v-2026-03.csv"
    newest(pattern).write_text("a\nx\n")
    ran = invoke(
        "join",
        "http://127.0.0.1:9",
        "--client",
        "a",
        "--identity",
        "a.pem",
        "--vector",
        pattern,
    )
    assert ran.exit_code == 2
    assert "2026-03.csv" in ran.stderr


def test_client_of_periods_declines_a_sum_without_a_file_and_stays(tmp_path):
    """The server asks for March twice, and for a month that three clients have only."""
    told: dict[int, list[str]] = {u: [] for u in range(4)}
    for u in range(4):
        for month, missing in ("2026-02", False), ("2026-03", u == 0), ("2026-04", False):
            if not missing:
                b = COUNTS.encoding.max + 1 if (u, month) == (1, "2026-04") else 1
                (tmp_path / f"{u}-{month}.csv").write_text(f"a,b\n{u},{b}\n")

    async def run() -> list[list[int]]:
        session, sums = Session(range(4), deadlines=60), []
        members = []
        for u in range(4):
            path = tmp_path / f"{u}-{{period}}.csv"
            train = Vectors([path], integers=True, tell=told[u].append)
            members.append(asyncio.create_task(take_part(LocalLink(session, u), u, train)))
        for period in ("2026-02", "2026-03", "2026-04"):
            message = Request(period, ("a", "b")).to_bytes()
            sums.append((await session.round(COUNTS, message)).sum.tolist())
        await session.close()
        assert [await members[u] for u in (0, 2, 3)] == [2, 3, 3]
        with pytest.raises(ParameterError):
            await members[1]
        return sums

    assert asyncio.run(run()) == [[6, 4], [6, 3], [5, 3]]
    assert [len(lines) for lines in told.values()] == [1, 1, 0, 0]
    assert "'b'" in told[1][0]
    assert "2026-03" in told[0][0]


def test_period_is_sent_once(tmp_path):
    (tmp_path / "v-2026-03.csv").write_text("a,b\n1,2\n")
    train = Vectors([tmp_path / "v-{period}.csv"], tell=lambda _: None)
    message = Request("2026-03", ("a", "b")).to_bytes()
    assert train(message, FLOATS).tolist() == [1, 2]
    with pytest.raises(RemoteProtocolError):
        train(message, FLOATS)
    with pytest.raises(LocalProtocolError, match="--every"):
        train(REQUEST.to_bytes(), FLOATS)


def test_period_of_a_lying_server_is_no_path(tmp_path):
    (tmp_path / "v-2026").mkdir()
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    train = Vectors([tmp_path / "v-{period}.csv"], tell=lambda _: None)
    message = Request("2026-03", ("a", "b")).to_bytes().replace(b"2026-03", b"2026/../secret")
    with pytest.raises(RemoteProtocolError) as caught:
        train(message, FLOATS)
    assert caught.value.check == "request"
