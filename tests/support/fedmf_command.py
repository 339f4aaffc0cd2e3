"""The command ``fedmf`` in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from cli_processes import command


def call(*arguments: object, code: int = 0) -> Result:
    """Run the command, which has to end with this code."""
    ran = CliRunner().invoke(command("fedmf"), [*map(str, arguments)])
    assert ran.exit_code == code, ran.output
    return ran
