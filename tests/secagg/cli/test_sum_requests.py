"""Message of a sum: canonical bytes, and strict reading."""

from __future__ import annotations

import json

import pytest

from secagg import ParameterError, RemoteProtocolError
from secagg.cli.requests import LONGEST_NAME, MOST_BYTES, Request

ALL = b'{"secagg request 1":{"columns":["a","b\\u00e9"],"number":0,"period":"2026-W07"}}'
BYTES = {
    b"": Request(),
    b"sum 3": Request(number=3),
    b'{"secagg request 1":{"period":"2026-03"}}': Request("2026-03"),
    ALL: Request("2026-W07", ("a", "bé"), 0),
}


@pytest.mark.parametrize("message", BYTES, ids=["none", "number", "period", "all"])
def test_bytes_are_canonical(message):
    assert BYTES[message].to_bytes() == message
    assert Request.from_bytes(message) == BYTES[message]


def test_message_of_another_application_demands_nothing():
    assert Request.from_bytes(b"a model") == Request()
    assert Request.from_bytes(b'{"model": 1}') == Request()


def of(**fields: object) -> bytes:
    return json.dumps(
        {"secagg request 1": fields}, sort_keys=True, separators=(",", ":")
    ).encode()


WRONG = {
    "nothing set": of(),
    "number alone": of(number=1),
    "field twice": of(period="2026-03").replace(b'"period"', b'"period":"2026-02","period"'),
    "unknown field": of(period="2026-03", sites=3),
    "unknown label": b'{"secagg request 2":{"period":"2026-03"}}',
    "two labels": b'{"secagg request 1":{"period":"2026-03"},"x":1}',
    "no object": b'{"secagg request 1":[]}',
    "spaces": of(period="2026-03") + b" ",
    "another order": b'{"secagg request 1":{"period":"2026-03","columns":["a"]}}',
    "another escape": of(columns=["a"]).replace(b'"a"', b'"\\u0061"'),
    "no JSON": of(period="2026-03")[:-1],
    "no UTF-8": of(period="2026-03").replace(b"2026", b"\xff026"),
    "deep": b'{"secagg request 1":' + b"[" * 100_000,
    "long number": b'{"secagg request 1":' + b"1" * 10_000 + b"}",
    "too long": of(columns=["a" * 150 + str(i) for i in range(7000)]),
    "period is a number": of(period=2026),
    "period climbs": of(period="2026/../../etc"),
    "period is empty": of(period="", number=3),
    "number is a truth": of(number=True, period="2026-03"),
    "number is a float": of(number=1.0, period="2026-03"),
    "number is negative": of(number=-1, period="2026-03"),
    "number with zeros": b"sum 03",
    "number is huge": b"sum 9999999999",
    "columns are a text": of(columns="ab"),
    "column is a number": of(columns=["a", 1]),
    "column is empty": of(columns=["a", ""]),
    "column is long": of(columns=["a" * (LONGEST_NAME + 1)]),
    "column twice": of(columns=["a", "b", "a"]),
    "spaces at the end": of(columns=["a "]),
    "terminal escape": of(columns=["a\x1b[2J"]),
    "reversed letters": of(columns=["a\u202eb"]),
    "surrogate": of(columns=["\ud800"]),
    "not composed": of(columns=["e\u0301"]),
    **{f"formula {c}": of(columns=[f"{c}1"]) for c in "=+-@"},
}


@pytest.mark.parametrize("name", WRONG)
def test_other_bytes_are_rejected(name):
    with pytest.raises(RemoteProtocolError) as caught:
        Request.from_bytes(WRONG[name])
    assert caught.value.check == "request"
    assert str(caught.value).isprintable()


def test_request_that_nobody_could_read_is_not_made():
    assert len(WRONG["too long"]) > MOST_BYTES
    for fields in (
        {"period": "March"},
        {"columns": ["a"]},
        {"number": "1"},
        {"columns": ("",)},
    ):
        with pytest.raises(ParameterError):
            Request(**fields)
