"""The command ``fedmf``: the list of its commands, each in a file of `fedmf.commands`."""

from __future__ import annotations

import sys

try:
    import typer

    from fedmf.cli import attack, data, recommend, train
    from fedmf.commands import reproduce
except ModuleNotFoundError as error:
    missing = str(error.name).partition(".")[0]
    if missing not in ("typer", "rich"):
        raise
    print(
        f"fedmf: the command line needs {missing}: pip install 'secagg[cli]'",
        file=sys.stderr,
    )
    raise SystemExit(2) from None

__all__ = ["app", "main"]

app = typer.Typer(
    help="Federated recommenders, trained through secure aggregation.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command(epilog=train.EXAMPLES)(train.train)
app.command(epilog=recommend.EXAMPLES)(recommend.recommend)
app.command(epilog=reproduce.EXAMPLES)(reproduce.reproduce)
app.command(epilog=attack.EXAMPLES)(attack.attack)
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app()
