"""``fedmf reproduce`` of 0.4: a pointer to the command that replaced it."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["reproduce"]

REPLACED = 2


def reproduce(
    arguments: Annotated[list[str] | None, typer.Argument(show_default=False)] = None,
) -> None:
    """Print the command that measures the papers' tables, from a checkout."""
    typer.echo(
        "fedmf: the papers' tables left the package; in a checkout of secagg run "
        "make results, or python -m benches.papers " + " ".join(arguments or ["--help"]),
        err=True,
    )
    raise typer.Exit(REPLACED)
