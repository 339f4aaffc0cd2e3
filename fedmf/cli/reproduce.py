"""Former commands ``fedmf reproduce`` and ``python -m fedmf.experiments`` of version 0.4.

Both print the command that replaces them and end with 2.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

REPLACED = 2


def reproduce(
    arguments: Annotated[list[str] | None, typer.Argument(show_default=False)] = None,
) -> None:
    """Print the command that measures the papers' tables, from a checkout."""
    typer.echo(
        "fedmf: the papers' tables are in the repository only: in a checkout of secagg run "
        "make results, or python -m benches.papers " + " ".join(arguments or ["--help"]),
        err=True,
    )
    raise typer.Exit(REPLACED)


if __name__ == "__main__":  # python -m fedmf.experiments
    print(
        "fedmf: the experiments are in the repository only: in a checkout of secagg run "
        "python -m benches.papers.experiments " + " ".join(sys.argv[1:] or ["--help"]),
        file=sys.stderr,
    )
    raise SystemExit(REPLACED)
