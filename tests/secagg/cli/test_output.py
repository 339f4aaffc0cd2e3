"""Output of every command on a narrow terminal, redirected, as JSON and under cp1252."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli_processes import address, command, invoke, process


def commands(parent: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command and of all commands in it."""
    yield path
    for name, one in getattr(parent, "commands", {}).items():
        yield from commands(one, (*path, name))


EVERY = [
    path for program in ("secagg", "fedmf") for path in commands(command(program), (program,))
]


def found(path: tuple[str, ...]) -> Any:
    """Return the command of some words."""
    one = command(path[0])
    for name in path[1:]:
        one = one.commands[name]
    return one


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_fits_the_terminal_and_has_all_options(path, width):
    program, *words = path
    size, help_ = {"COLUMNS": str(width)}, [*words, "--help"]
    ran = CliRunner().invoke(command(program), help_, env=size, prog_name=program)
    assert ran.exit_code == 0
    assert [line for line in ran.stdout.splitlines() if len(line) > width] == []
    options = [name for one in found(path).params for name in one.opts if name[:2] == "--"]
    assert [name for name in options if name not in ran.stdout] == []
    assert "\\[" not in ran.stdout
    if width == 60:
        narrow = CliRunner(charset="cp1252").invoke(command(program), help_, env=size)
        assert narrow.output_bytes.decode("cp1252")


def test_paragraphs_of_a_help_are_wrapped_at_the_width():
    ran = invoke("serve", "--help", env={"COLUMNS": "132"})
    assert "A record beside each sum" in ran.stdout


NAMES = ("bern", "Łódź 界", "C\u0332ork")


@pytest.mark.large
def test_commands_print_names_under_cp1252(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All commands run with 60 columns, redirected; each JSON output is one document."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    monkeypatch.setenv("COLUMNS", "60")

    def run(*arguments: object) -> str:
        with process(*arguments, encoding="cp1252") as started:
            out, error = started.communicate()
        assert started.returncode == 0, error
        assert "Traceback" not in error
        return out

    for name in NAMES:
        key = json.loads(run("identity", "keygen", f"{name}.pem", "--json"))["ed25519"]
        assert run("identity", "register", "r.json", name, key)
        (tmp_path / f"{name}.csv").write_text("Äpfel,界\n1,2\n", encoding="utf-8")
    size = ("--columns", "Äpfel,界", "--integers", "--clip", 9, "--out", "sums", "--name", "界")
    ports = ("--port", 0, "--operator-port", 0, "--log", "info", "--json")
    with ExitStack() as stack:
        server = stack.enter_context(
            process("serve", "r.json", *size, *ports, encoding="cp1252")
        )
        url = address(server, r".*members")
        members = []
        for name in NAMES:
            files = ("--identity", f"{name}.pem", "--vector", f"{name}.csv", "--integers")
            joined = ("join", url, "--client", name, *files, "--json")
            members.append(stack.enter_context(process(*joined, encoding="cp1252")))
        for name, one in zip(NAMES, members, strict=True):
            out, error = one.communicate()
            assert (one.returncode, json.loads(out)["client"]) == (0, name), error
        out, error = server.communicate()
    assert server.returncode == 0, error
    assert sorted(json.loads(out)["sums"][0]["clients"]) == sorted(NAMES)
    assert (tmp_path / "sums" / "sum-0.csv").read_text(encoding="utf-8") == "Äpfel,界\n3,6\n"
    assert "sum of 3" in run("verify", "sums")
    assert json.loads(run("verify", "sums", "--json"))["faults"] == {}
    made = run("helper", "keygen", "h.journal")
    assert "ed25519" in made
