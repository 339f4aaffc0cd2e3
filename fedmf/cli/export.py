"""``fedmf export``: write the factors of a saved model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedmf.cli.manners import errors_in_one_line
from fedmf.cli.models import load_model
from fedmf.models import Factors
from fedmf.models.export import Format, export

EXAMPLES = """
[bold]Examples[/bold]

fedmf export runs/demo --to parquet --out factors.parquet

fedmf export runs/demo --to implicit --out als.npz  [dim]# and als.ids.npz[/dim]
"""


def export_(
    model: Annotated[
        Path, typer.Argument(help="The file model.fedmf, or the folder of fedmf train --out.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    to: Annotated[Format, typer.Option(help="The format.")] = "npz",
) -> None:
    """Write factors and ids; the products are predictions on the scale of the ratings."""
    with errors_in_one_line("before the file was written"):
        trained = load_model(model)
        factors = trained if isinstance(trained, Factors) else trained.factors()
        written = export(factors, out, to)
        typer.echo(f"{written}: {factors.n_users} users, {factors.n_items} items")
