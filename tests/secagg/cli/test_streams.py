"""Commands print in every encoding, with similar text for what it lacks."""

from __future__ import annotations

import io
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cli_processes import command
from secagg.cli.streams import print_in_any_encoding

ENCODINGS = ["ascii", "cp1252", "shift_jis", "utf-8"]
COMMANDS = [
    "fedmf train --data ł→€.csv",
    "secagg params --help",
    "secagg params --clients ε",
    "secagg identity register ł→€ 界 é",
    "secagg stats plan ł→€.toml",
    "secagg stats join --help",
]


@pytest.mark.parametrize("encoding", ENCODINGS[:2])
@pytest.mark.parametrize("line", COMMANDS)
def test_commands_print_in_any_encoding(line, encoding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, *words = line.split()
    ran = CliRunner(charset=encoding).invoke(command(program), words)
    assert isinstance(ran.exception, SystemExit | None), ran.exception
    assert ran.exit_code in (0, 2)
    assert ran.output_bytes


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ε = .6, δ ≤ 1", "epsilon = .6, delta <= 1"),
        ("1.5 µs ± 2", "1.5 us +/- 2"),
        ("2³² – 1", "2^3^2 - 1"),
        ("Łódź", "Lodz"),
        ("½", "1/2"),
        ("界", r"\u754c"),
        ("\udcff", r"\udcff"),
        ("…", "..."),
    ],
)
def test_text_in_ascii_is_similar(text, shown, monkeypatch):
    assert written(text, "ascii", monkeypatch) == shown


@given(st.text(), st.sampled_from(ENCODINGS))
def test_any_text_can_be_printed(text: str, encoding: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shown = written(text, encoding, patch)
    ours = text.encode(encoding, "ignore").decode(encoding)
    assert shown == text or ours != text


def written(text: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    print_in_any_encoding()
    print(text, end="", flush=True)
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
