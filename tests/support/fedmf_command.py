"""The command ``fedmf`` in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from fedmf.cli import app


def call(*arguments: object, code: int = 0) -> Result:
    """Run the command, which has to end with this code."""
    ran = CliRunner().invoke(app, [*map(str, arguments)])
    assert ran.exit_code == code, ran.output
    return ran
