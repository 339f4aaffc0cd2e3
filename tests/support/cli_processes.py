"""Commands of `secagg` in this process, and as processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from typer.main import get_command

from forked_commands import Forked

ROOT = Path(__file__).parents[2]
MAIN = "-c", "from secagg.cli import main; main()"
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests" / "support")))


@cache
def command(program: str) -> Any:
    """Return `secagg` or `fedmf` with all its commands, whose making takes 30 ms."""
    return get_command(import_module(f"{program}.cli").app)


def invoke(*arguments: object, env: dict[str, str] | None = None, **settings: str) -> Result:
    return CliRunner(**settings).invoke(command("secagg"), list(map(str, arguments)), env=env)


@contextmanager
def process(
    *arguments: object, encoding: str | None = None, main: Sequence[object] | None = None
) -> Iterator[Forked | subprocess.Popen[str]]:
    """Start a command; `main` is a script in its place, with the script's first arguments."""
    env = os.environ | {"PYTHONPATH": PATHS}
    if main is None and sys.platform != "win32":
        with Forked([*map(str, arguments)], env, encoding) as forked:
            yield forked
        return
    started = subprocess.Popen(  # noqa: S603
        [sys.executable, *map(str, (*(main or MAIN), *arguments))],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding=encoding,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def until(started: Forked | subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Return the match of the first line on a process's standard error that has a pattern."""
    assert started.stderr is not None
    before = []
    for line in started.stderr:
        if found := re.fullmatch(pattern, line.rstrip("\n")):
            return found
        before.append(line)
    raise AssertionError(f"the process has ended: {before}")


def address(started: Forked | subprocess.Popen[str], what: str) -> str:
    """Return the URL that a server prints on its standard error."""
    return until(started, rf"{what}: (http\S+)")[1]
