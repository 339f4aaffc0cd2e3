"""Help of every command of every application: flags are listed without a type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from click.testing import CliRunner

import fedmf.cli
import secagg.cli
from benches.papers import __main__ as papers
from benches.papers import experiments

APPS = {"secagg": secagg.cli.app, "fedmf": fedmf.cli.app}
APPS |= {"papers": papers.app, "experiments": experiments.app}


def commands(command: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the names that lead to each command."""
    yield names
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*names, name))


@pytest.mark.parametrize("name", APPS)
def test_help_lists_flags_without_a_type(name: str) -> None:
    root = typer.main.get_command(APPS[name])
    shown = {
        path: CliRunner().invoke(root, [*path, "--help"], env={"COLUMNS": "200"}).output
        for path in commands(root)
    }
    assert any("--help" in text for text in shown.values())
    assert [path for path, text in shown.items() if "<bool>" in text] == []
